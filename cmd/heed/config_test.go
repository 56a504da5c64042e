package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A config.json may come from anybody.
func TestHostileConfigs(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "run")
	succeed(t, small("--task=copy", "--out="+dir)...)
	os.Remove(filepath.Join(dir, summaryFile)) // an unfinished run, for --resume
	path := filepath.Join(dir, configFile)
	good := read(t, path)

	// with is the good one with one member that is another JSON value.
	with := func(name, value string) string {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(good), &members); err != nil {
			t.Fatal(err)
		}
		members[name] = json.RawMessage(value)
		b, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "isn't whole JSON (EOF)"},
		{"cut", good[:len(good)/2], path + " isn't whole JSON (unexpected EOF): restore it, or train again"},
		{"a brace short", strings.TrimRight(good, "}\n"), "isn't whole JSON"},
		{"no JSON", "hello", "isn't whole JSON (invalid character"},
		{"null", "null", "format 0"},
		{"an array", "[]", "array"},
		{"an empty object", "{}", "format 0"},
		{"two objects", good + good, "something follows"},
		{"text after it", good + "x", "something follows"},
		{"NUL bytes", strings.Repeat("\x00", 4096), configFile},
		{"deep", strings.Repeat("[", 100_000), configFile},
		{"unknown field", with("evil", "1"), "evil"},
		{"format 2", with("format", "2"), "format 2, this heed reads format 1"},
		{"format of another type", with("format", `"1"`), "format"},
		{"no such task", with("task", `"nope"`), `must be one of reverse, copy`},
		{"task of another type", with("task", "7"), "task"},
		{"task null", with("task", `""`), "must be one of"},
		{"a text for copy", with("text", `"x.txt"`), "task text must come with text"},
		{"text without one", with("task", `"text"`), "task text must come with text"},
		{"text without symbols", strings.Replace(strings.Replace(good, `"copy"`, `"text", "text": "x"`, 1), `"max_len": 0`, `"max_len": 8`, 1), "symbols"},
		{"symbols twice", strings.Replace(strings.Replace(good, `"copy"`, `"text", "text": "x", "symbols": "aa"`, 1), `"max_len": 0`, `"max_len": 8`, 1), path + ": symbols: "},
		{"terabytes", strings.Replace(with("dim", "16384"), `"layers":1`, `"layers":128`, 1), "choose a smaller dim, hidden, layers, max_len or batch"},
		{"a wide layer", strings.Replace(with("dim", "16384"), `"hidden":0`, `"hidden":65536`, 1), "GiB"},
		{"a huge batch", strings.Replace(with("batch", "65536"), `"dim":16`, `"dim":4096`, 1), "GiB"},
		{"dim beyond bounds", with("dim", "1000000000000"), "dim must be from 1 to 16384"},
		{"dim beyond 64 bits", with("dim", "1e30"), "dim"},
		{"dim zero", with("dim", "0"), "dim must be"},
		{"dim negative", with("dim", "-16"), "dim must be"},
		{"dim a string", with("dim", `"16"`), "dim"},
		{"dim a fraction", with("dim", "16.5"), "dim"},
		{"heads that don't divide", with("heads", "5"), ": dim must be a multiple of heads"},
		{"heads zero", with("heads", "0"), "heads must be"},
		{"layers beyond bounds", with("layers", "1000000"), "layers must be"},
		{"hidden negative", with("hidden", "-1"), "hidden must be"},
		{"dropout 1", with("dropout", "1"), "dropout must be"},
		{"dropout beyond float64", with("dropout", "1e999"), "dropout"},
		{"batch zero", with("batch", "0"), "batch must be"},
		{"batch beyond bounds", with("batch", "9000000000000000000"), "batch must be"},
		{"steps zero", with("steps", "0"), "steps must be"},
		{"learning rate negative", with("learning_rate", "-1"), ": learning_rate must be"},
		{"max_len negative", with("max_len", "-1"), ": max_len must be"},
		{"max_len beyond the task's", with("max_len", "65"), "1 to 64"},
		{"seed negative", with("seed", "-1"), "seed"},
		{"no end", strings.Replace(with("epochs", "0"), `"patience":3`, `"patience":0`, 1), "set patience or epochs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, path, test.content)
			for _, args := range [][]string{{"eval", dir}, {"predict", dir, "abc"}, {"train", "--resume=" + dir}} {
				c := heed(args...)
				fail(t, c, 1, test.want, path)
				if strings.Contains(c.stderr, "--") {
					t.Errorf("the error is %q, and has flags in it", c.stderr)
				}
				if c.stdout != "" {
					t.Errorf("heed %s printed %q", args[0], c.stdout)
				}
			}
		})
	}

	// Of the data, predicting needs none.
	write(t, path, with("validation", "2000000"))
	fail(t, heed("eval", dir), 1, path, "2000000", "(validation)")
	succeed(t, "predict", dir, "abc")

	os.Remove(path)
	os.Mkdir(path, 0o777)
	fail(t, heed("eval", dir), 1, "isn't a run folder")
}

// A model too large for any machine is refused before anything is allocated for it.
func TestAbsurdModels(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "text", strings.Repeat("a text of some length\n", 50_000))
	for _, args := range [][]string{
		{"--dim=16384", "--layers=128"},
		{"--dim=16384", "--hidden=65536"},
		{"--dim=4096", "--batch=65536"},
		{"--task=text", "--text=text", "--max-len=65536", "--batch=65536"},
	} {
		fail(t, heed(append([]string{"train"}, args...)...), 2, "GiB", "choose a smaller --dim")
	}
	if _, err := os.Stat("runs"); err == nil {
		t.Error("there is a run folder all the same")
	}
}

// Whatever is in a config.json, reading it gives settings that pass the checks, or an error.
func FuzzReadConfig(f *testing.F) {
	c := defaults("reverse")
	good, err := json.Marshal(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format": 1, "task": "text", "text": "x", "symbols": "ab", "dim": 1e3}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, configFile), string(content))
		c, err := readConfig(dir)
		if err != nil {
			return
		}
		if err := c.check(); err != nil {
			t.Errorf("it was read, but: %v", err)
		}
		c.model(100, 100, 100) // must not panic
	})
}
