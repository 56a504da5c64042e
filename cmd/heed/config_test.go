package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train/task"
)

// A config.json may come from an attacker: whatever it holds, a command must report an error.
func TestHostileConfigs(t *testing.T) {
	t.Parallel()
	dir := copied(t, "--task=copy")
	os.Remove(filepath.Join(dir, runfolder.SummaryFile)) // an unfinished run, for --resume
	path := filepath.Join(dir, runfolder.ConfigFile)
	good := read(t, path)

	// with returns the good configuration with some members replaced. The pairs are a path, such as model.dim, and a
	// JSON value. The result has no checksum.
	with := func(pairs ...string) string {
		var config map[string]any
		must.Do(t, json.Unmarshal([]byte(good), &config))
		delete(config, "sha256")
		for i := 0; i < len(pairs); i += 2 {
			object, path := config, strings.Split(pairs[i], ".")
			for _, part := range path[:len(path)-1] {
				object = object[part].(map[string]any)
			}
			object[path[len(path)-1]] = json.RawMessage(pairs[i+1])
		}
		b := must.Get(json.Marshal(config))(t)
		return string(b)
	}
	asText := func(alphabet string) string {
		return with("task.name", `"text"`, "task.kind", `"text"`, "task.alphabet", alphabet, "data.file", `"x"`)
	}
	type hostile struct{ name, content, want string }
	refuse := func(calls [][]string, tests []hostile) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				write(t, path, test.content)
				for _, args := range calls {
					c := heed(args...)
					fail(t, c, 1, test.want, path)
					if strings.Contains(c.stderr, "--") {
						t.Errorf("the error is %q, want no flags in it", c.stderr)
					}
					if c.stdout != "" {
						t.Errorf("heed %s prints %q, want nothing", args[0], c.stdout)
					}
				}
			})
		}
	}
	refuse([][]string{{"eval", dir}, {"predict", dir, "abc"}, {"train", "--resume=" + dir}}, []hostile{
		{"empty", "", "isn't complete JSON (unexpected end"},
		{"cut", good[:len(good)/2], path + ": it isn't complete JSON (unexpected end of JSON input): restore it"},
		{"null", "null", `has no "format"`},
		{"an empty object", "{}", `has no "format"`},
		{"text after the object", good + "x", "after top-level value"},
		{"changed", strings.Replace(good, `"max_epochs": 3`, `"max_epochs": 7`, 1), "its content doesn't match its sha256: it was changed after heed wrote it; restore it"},
		{"unknown field", with("evil", "1"), `unknown key "evil"`},
		{"a key twice, within", strings.Replace(good, `"dim":`, `"dim": 8, "dim":`, 1), `"dim" in "model" is given twice`},
		{"a key in capitals, within", strings.Replace(good, `"heads":`, `"Heads":`, 1), `unknown key "Heads" in "model.block.attention"`},
		{"bytes that aren't UTF-8", strings.Replace(good, `"a word`, "\"a\xffword", 1), "UTF-8"},
		{"a megabyte", good + strings.Repeat(" ", 1_000_001-len(good)), "has 1000001 bytes, but at most 1000000 are read"},
		{"format 1", `{"format": 1, "task": "copy", "dim": 16}`, "this run folder has the older format 1, and heed reads format 5: train it again"},
		{"format 6", with("format", "6"), "the newer format 6"},
		{"a name of another task", with("task.name", `"sort2"`, "spelled", "true"), "the task sort2 isn't one of Heed's own"},
		{"another task of that name", with("task.alphabet", `"abc"`), "the run's task copy differs from the known task of that name"},
		{"no such kind", with("task.kind", `"nope"`), `"], got "nope"`},
		{"task null", with("task", "null"), "task.max_len must be"},
		{"no name", with("task.name", `""`), "a rule's Name must have"},
		{"a name with an escape", with("task.name", `"x\u001b[2J"`), `got "x\x1b[2J"`},
		{"classes for copy", with("task.classes", `["a", "b"]`), "Classes"},
		{"a file for copy", with("data.file", `"x.txt"`), "data.tokenizers_sha256 must have"},
		{"text without symbols", asText(`""`), "Alphabet"},
		{"symbols twice", asText(`"aa"`), path + `: task "text": the Alphabet: `},
		{"terabytes", with("model.dim", "16384", "model.layers", "128"), "GiB"},
		{"a huge batch", with("training.batch_size", "65536", "model.dim", "4096"), "GiB"},
		{"dim zero", with("model.dim", "0"), "dim must be"},
		{"heads that don't divide", with("model.block.attention.heads", "5"), ": model.dim must be a multiple of model.block.attention.heads"},
		{"another vocabulary", with("model.vocab", "1000000000"), ": model.vocab must be 28"},
		{"no such positions", with("model.positions", `{"kind": "nope"}`), `"nope"`},
		{"wide heads", with("model.block.attention.head_dim", "1000000000000"), "head_dim must be"},
		{"grouped heads that don't divide", with("model.block.attention.key_value_heads", "3"), "KeyValueHeads"},
		{"no such activation", with("model.block.feed_forward.activation", `"nope"`), "nope"},
		{"max_len beyond the task's", with("task.max_len", "65"), "1 to 64"},
	})
	// What belongs to learning doesn't concern a model that answers.
	refuse([][]string{{"eval", dir}, {"train", "--resume=" + dir}}, []hostile{
		{"a text without a file", with("task.kind", `"text"`), "the run's task copy differs from the known task of that name"},
		{"batch of letters", with("training.batch_size", `"64"`), ": training.batch_size must be a whole number of at most 64 bits, got string"},
		{"learning rate negative", with("training.optimizer.learning_rate", "-1"), ": training.optimizer.learning_rate must be"},
		{"no such monitor", with("training.stopping.monitor", `"val_acc"`), `: training.stopping.monitor must be one of train_loss, train_accuracy, val_loss, val_accuracy, got "val_acc"`},
		{"no such mode", with("training.stopping.mode", `"auto"`), ": training.stopping.mode must be min or max"},
		{"an endless threshold", with("training.stopping.divergence_threshold", "1e300"), ": training.stopping.divergence_threshold must be"},
		{"no end", with("training.max_epochs", "0", "training.stopping.patience", "0"), "set training.stopping.patience or training.max_epochs"},
	})

	// heed predict doesn't read the data. It reports an error too, because the weights belong to another config.json.
	write(t, path, with("data.validation", "2000000"))
	fail(t, heed("eval", dir), 1, path, "2000000", "data.validation")
	fail(t, heed("predict", dir, "abc"), 1, runfolder.WeightsFile, "they are the weights of another run, \"config.json ")
	write(t, path, good)
	succeed(t, "predict", dir, "abc")

	os.Remove(path)
	os.Mkdir(path, 0o777)
	fail(t, heed("eval", dir), 1, "can't be read as a run folder")
}

// A given flag overrides the preset. The preset's other settings stay, except for those that belong to the flag's
// value.
func TestFlagsBeatPresets(t *testing.T) {
	change := func(preset task.Preset, flag, value string) (task.Config, *pflag.FlagSet) {
		s := must.Get(defaults(string(preset.Kind), 0))(t)
		given := s.flagSet()
		given.Set("preset", preset.Name)
		if flag != "" {
			must.Do(t, given.Set(flag, value))
		}
		c := must.Get(s.fromFlags(given))(t)
		return c, (&settings{Config: c, dropout: c.Model.Dropout}).flagSet()
	}
	// Flags without a number or a text: a value for each, and the resulting part of the configuration.
	names := map[string][2]string{
		"precision": {"bfloat16", `"precision":"bfloat16"`}, "solver": {"sgd", `"solver":{"kind":"sgd"}`}, "positions": {"alibi", `"positions":{"kind":"alibi"}`},
		"norm": {"rms", `"norm":{"kind":"rms"}`}, "activation": {"silu", `"activation":"silu"`}, "schedule": {"linear", `"kind":"linear"`},
		"experts": {"7", `"experts":{"count":7`}, "baseline": {"0.7", `"baseline":0.7`}, "stopping-threshold": {"0.7", `"stopping_threshold":0.7`}, "divergence-threshold": {"0.7", `"divergence_threshold":0.7`},
	}
	// After they are set, the flags of a Config don't show these values.
	unset := []string{"experts", "baseline", "stopping-threshold", "divergence-threshold"}
	with := map[string][]string{"monitor": {"mode"}}
	// These flags have no field of their own in a Config.
	others := []string{"task", "preset", "from", "data", "validation-data", "columns", "targets", "units", "max-len"}
	for _, preset := range task.Presets() {
		_, before := change(preset, "", "")
		before.VisitAll(func(flag *pflag.Flag) {
			value := cmp.Or(map[string]string{"bool": "true", "float64": "0.7"}[flag.Value.Type()], names[flag.Name][0], "7")
			if slices.Contains(others, flag.Name) {
				return
			}
			for _, value := range []string{value, flag.Value.String()} { // the second value is the default
				if value == "" {
					continue
				}
				c, flags := change(preset, flag.Name, value)
				if content, err := json.Marshal(c); err != nil || value == names[flag.Name][0] && !strings.Contains(string(content), names[flag.Name][1]) {
					t.Errorf("--preset %s --%s %s: the configuration is %s, %v", preset.Name, flag.Name, value, content, err)
				}
				flags.VisitAll(func(f *pflag.Flag) {
					want := before.Lookup(f.Name).Value.String()
					switch {
					case f.Name == flag.Name && !slices.Contains(unset, f.Name):
						want = value
					case value != flag.Value.String() && slices.Contains(with[flag.Name], f.Name):
						want = map[bool]string{true: "", false: "0"}[f.Name == "mode"]
					}
					if got := f.Value.String(); got != want {
						t.Errorf("--preset %s --%s %s: --%s is %q, want %q", preset.Name, flag.Name, value, f.Name, got, want)
					}
				})
			}
		})
	}
}

// A model that is too large for any machine is an error before anything is allocated.
func TestAbsurdModels(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "text", strings.Repeat("a text of some length\n", 50_000))
	for _, args := range [][]string{
		{"--dim=16384", "--layers=128"},
		{"--task=text", "--data=text", "--max-len=65536", "--batch-size=65536"},
	} {
		fail(t, heed(append([]string{"train"}, args...)...), 2, "GiB", "reduce --dim")
	}
	absent(t, "runs")
}
