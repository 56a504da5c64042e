package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
)

// trained is the folder of a small run, and an input for it.
func trained(t *testing.T, task string) (dir, input string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	args := small("--task="+task, "--layers=2", "--out="+dir)
	input = "abca"
	switch task {
	case "add":
		input = "7+35"
	case datesTask:
		input = "Thu, 7 March 2024"
	case textTask:
		args = append(args, "--max-len=16", "--text="+foxText(t))
		input = "quick fox"
	}
	succeed(t, args...)
	return dir, input
}

// For every task: the maps of all layers, cross-attention first, with a label for every position and no padding, and
// weights that sum to 1 in every row and never look ahead where the model can't.
func TestAttention(t *testing.T) {
	for _, task := range taskNames() {
		t.Run(task, func(t *testing.T) {
			dir, input := trained(t, task)
			e, err := openRun(dir, "", false)
			if err != nil {
				t.Fatal(err)
			}
			f, err := e.attention(input, "")
			if err != nil {
				t.Fatal(err)
			}
			answer, err := e.predict(input)
			if err != nil {
				t.Fatal(err)
			}
			if want := task + ": " + input + " → " + shortened(answer); f.Title != want {
				t.Errorf("the title is %q, want %q", f.Title, want)
			}
			names := []string{"blocks.0.attention", "blocks.1.attention"}
			source := "abca■"
			switch task {
			case "add":
				source = "07+35■" // as the model has it, in columns
			case textTask:
				source = "quick·fox"
			case datesTask:
				names = []string{"decoder.blocks.0.cross", "decoder.blocks.1.cross", "encoder.blocks.0.attention", "encoder.blocks.1.attention",
					"decoder.blocks.0.attention", "decoder.blocks.1.attention"}
				source = "thu,·7·march·2024"
			}
			if len(f.Layers) != len(names) {
				t.Fatalf("there are %d layers, want %q", len(f.Layers), names)
			}
			for i, l := range f.Layers {
				if !strings.HasPrefix(l.Heading, names[i]+": ") || len(l.Heads) != 2 || l.Heads[1].Title != "head 1" {
					t.Errorf("layer %d has heading %q and %d heads, want %s and 2", i, l.Heading, len(l.Heads), names[i])
				}
				rows, columns := strings.Join(l.Rows, ""), strings.Join(l.Columns, "")
				causal := task == textTask
				if strings.HasPrefix(names[i], "decoder.") {
					written := strings.TrimSuffix(rows, "■")
					if !strings.HasPrefix(written, answer) || len(l.Rows) > 11 {
						t.Errorf("%s has rows %q, want those of %q and what ended it", names[i], rows, answer)
					}
					rows = source
					if strings.HasSuffix(names[i], ".attention") {
						causal = true
						if want := "►" + answer; columns != want && columns+written[len(written)-1:] != want {
							t.Errorf("%s has columns %q, want %q", names[i], columns, want)
						}
						columns = source
					}
				}
				if rows != source || columns != source {
					t.Errorf("%s has rows %q and columns %q, want %q", names[i], rows, columns, source)
				}
				for _, h := range l.Heads {
					for r := range l.Rows {
						var sum float64
						for c, weight := range h.Weights[r*len(l.Columns):][:len(l.Columns)] {
							sum += float64(weight)
							if causal && c > r && weight != 0 {
								t.Errorf("%s, %s: position %d attends to %d, which comes later", names[i], h.Title, r, c)
							}
						}
						if math.Abs(sum-1) > 1e-5 {
							t.Errorf("%s, %s: the weights of row %d sum to %v", names[i], h.Title, r, sum)
						}
					}
				}
			}
			out := succeed(t, "attention", dir, input)
			for _, want := range append(names, f.Title, "head 0", "head 1", "█ from 75 %") {
				if !strings.Contains(out, want) {
					t.Errorf("it prints no %q:\n%s", want, out)
				}
			}
		})
	}
}

// The weights shown, of a graph without padding, are those of the graph that predicts, padding and all, and so are the
// classes.
func TestAttentionIsWhatPredicts(t *testing.T) {
	for _, task := range []string{"reverse", "add", datesTask, textTask} {
		t.Run(task, func(t *testing.T) {
			dir, input := trained(t, task)
			e, err := openRun(dir, "", false)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := e.predict(input)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.reading(input, answer)
			if err != nil {
				t.Fatal(err)
			}
			got, classes, err := e.capture(r, "")
			if err != nil {
				t.Fatal(err)
			}
			label, err := e.labeler(r.inputs)
			if err != nil {
				t.Fatal(err)
			}
			want, err := label(r.ids...)
			if err != nil || !slices.Equal(classes, want) {
				t.Errorf("the classes are %v, but what predicts gives %v, %v", classes, want, err)
			}

			padded := *r
			padded.inputs, padded.ids = e.inputs, nil
			for i, in := range e.inputs {
				ids := slices.Clone(r.ids[i])
				for len(ids) < in.len {
					ids = append(ids, 0)
				}
				padded.ids = append(padded.ids, ids)
			}
			whole, _, err := e.capture(&padded, "")
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range got {
				rows, columns := r.inputs[0].len, r.inputs[0].len
				allRows, allColumns := e.inputs[0].len, e.inputs[0].len
				if last := len(e.inputs) - 1; strings.HasPrefix(c.name, "decoder.") {
					rows, allRows = r.inputs[last].len, e.inputs[last].len
					if !strings.HasSuffix(c.name, ".cross") {
						columns, allColumns = rows, allRows
					}
				}
				for j, weight := range c.weights {
					h, row, column := j/(rows*columns), j/columns%rows, j%columns
					if w := whole[i].weights[(h*allRows+row)*allColumns+column]; math.Abs(float64(weight-w)) > 1e-6 {
						t.Fatalf("%s, head %d: the weight (%d, %d) is %v, with padding %v", c.name, h, row, column, weight, w)
					}
				}
			}
		})
	}
}

func TestAttentionFiles(t *testing.T) {
	dir, input := trained(t, datesTask)
	base := t.TempDir()
	for _, name := range []string{"a.png", "b.PNG", "c.svg", "d.html"} {
		path := filepath.Join(base, name)
		write(t, path, "what was there before")
		out := succeed(t, "attention", dir, input, "--out="+path)
		if !strings.HasPrefix(out, "dates: "+input+" → ") || !strings.HasSuffix(out, ", drawn in "+path+"\n") {
			t.Errorf("it prints %q", out)
		}
		content := read(t, path)
		switch strings.ToLower(filepath.Ext(name)) {
		case ".png":
			img, err := png.Decode(strings.NewReader(content))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if size := img.Bounds(); size.Dx() < 500 || size.Dy() < 1500 {
				t.Errorf("%s has %v", name, size)
			}
		case ".svg":
			isXML(t, content)
		case ".html":
			if !strings.HasPrefix(content, "<!DOCTYPE html>") || !strings.Contains(content, "<h2>decoder.blocks.1.cross: ") || strings.Count(content, "<table>") != 6*2 {
				t.Errorf("%s doesn't show all maps: %.300s", name, content)
			}
		}
	}
	if files := folder(t, base); len(files) != 4 {
		t.Errorf("there are %d files, want 4", len(files))
	}
}

func isXML(t *testing.T, content string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(content))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("it isn't XML: %v", err)
		}
	}
}

func TestAttentionLayers(t *testing.T) {
	dir, input := trained(t, datesTask)
	for part, want := range map[string]int{"cross": 2, "decoder.blocks.1": 2, "encoder.blocks.0.attention": 1, "": 6} {
		out := succeed(t, "attention", dir, input, "--layer="+part)
		if got := strings.Count(out, "(rows)"); got != want {
			t.Errorf("--layer %q shows %d layers, want %d", part, got, want)
		}
		if strings.Contains(out, "► the start") != strings.Contains(out, "\n  ►") {
			t.Errorf("--layer %q: the key isn't that of what is shown:\n%s", part, out)
		}
	}
	fail(t, heed("attention", dir, input, "--layer=Cross"), 2, `got "Cross"`, "the layers are encoder.blocks.0.attention, ")
}

func TestAttentionWrongCalls(t *testing.T) {
	word, _ := trained(t, "reverse")
	sum, _ := trained(t, "add")
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no arguments", nil, "takes two arguments, a run folder and one input, got 0:"},
		{"no input", []string{word}, "got 1:"},
		{"two inputs", []string{word, "a", "b"}, "several words in quotes"},
		{"no folder", []string{"", "abc"}, "name is empty"},
		{"another kind of file", []string{word, "abc", "--out=x.gif"}, `.png, .svg or .html, got "x.gif"`},
		{"no kind of file", []string{word, "abc", "--out=x"}, `got "x"`},
		{"no file", []string{word, "abc", "--out="}, `got ""`},
		{"another kind of file and no run", []string{"none", "abc", "--out=x.gif"}, `got "x.gif"`},
		{"an unknown flag", []string{word, "abc", "--nope"}, "unknown flag: --nope"},
		{"an input with a dash", []string{word, "-abc"}, "put -- before an input"},
		{"an unknown character", []string{word, "größe", "--out=x.png"}, `"größe": task reverse: source "größe": symbol 'ö' at position 2`},
		{"a capital letter", []string{word, "Abc"}, "symbol 'A'"},
		{"too long", []string{word, "abcdefghijk", "--out=x.html"}, "at most 10 symbols, got 11"},
		{"empty", []string{word, ""}, "the source is empty"},
		{"no UTF-8", []string{word, "a\xff"}, "UTF-8"},
		{"a line break", []string{word, "a\nb"}, `'\n'`},
		{"no sum", []string{sum, "1+"}, "1+"},
		{"a negative number", []string{sum, "--", "-1+2"}, "'-'"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := heed(append([]string{"attention"}, test.args...)...)
			fail(t, c, 2, test.want)
			if c.stdout != "" {
				t.Errorf("it printed %q, want nothing", c.stdout)
			}
		})
	}
	fail(t, heed("attention", "none", "abc"), 1, "isn't a run folder")
	fail(t, heed("attention", "none", "abc", "--out=none/x.png"), 1, "--out's folder none doesn't exist") // before the run is opened
	if left := folder(t, "."); len(left) > 0 {
		t.Errorf("wrong calls made files: %q", left)
	}
}

func TestAttentionFilesThatCantBeWritten(t *testing.T) {
	dir, input := trained(t, "copy")
	base := t.TempDir()
	write(t, filepath.Join(base, "file"), "keep me")
	if err := os.Mkdir(filepath.Join(base, "folder.png"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none/x.png", "file/x.svg", "folder.png", ".html/"} {
		path := base + "/" + name
		c := heed("attention", dir, input, "--out="+path)
		want := map[string]string{
			"none/x.png": "heed: --out's folder " + base + "/none doesn't exist: make it first\n",
			"file/x.svg": "heed: --out's folder " + base + "/file is a file\n",
			"folder.png": "heed: --out " + path + " is a folder\n",
		}[name]
		if name == ".html/" {
			fail(t, c, 2, "--out must be a file's name")
		} else if fail(t, c, 1); c.stderr != want {
			t.Errorf("%s: the error is %q, want %q", name, c.stderr, want)
		}
		if c.stdout != "" {
			t.Errorf("%s: it printed %q, want nothing", name, c.stdout)
		}
	}
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) != 2 || read(t, filepath.Join(base, "file")) != "keep me" {
		t.Errorf("something has changed: %v, %v", entries, err)
	}
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"attention", dir, input}, failing{}, &stderr)
	fail(t, called{code, "", stderr.String()}, 1, "no space left")
	path := filepath.Join(base, "x.png")
	fail(t, heedContext(cancelled(t, 0), "attention", dir, input, "--out="+path), 1, "interrupted")
	if _, err := os.Stat(path); err == nil {
		t.Error("an interrupted call wrote its file")
	}
}

// Texts have any characters: none is markup in a file, and each has a label.
func TestAttentionOfHostileTexts(t *testing.T) {
	base := t.TempDir()
	path := filepath.Join(base, "odd.txt")
	line := "<b onload=\"x('1')\">&amp;</script>\t文 e\u0301 \x01\u200d·\n"
	write(t, path, strings.Repeat(line, 80))
	dir := filepath.Join(base, "run")
	succeed(t, small("--task=text", "--steps=2", "--max-len=64", "--text="+path, "--out="+dir)...)
	for _, name := range []string{"x.html", "x.svg", "x.png"} {
		out := succeed(t, "attention", dir, line, "--out="+filepath.Join(base, name))
		if boxes := strings.Contains(out, `□ stands for "文"`); boxes != (name == "x.png") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: it prints %q", name, out)
		}
	}
	for name, bad := range map[string][]string{"x.html": {"<b", "</script", "ZgotmplZ", "\x01"}, "x.svg": {"<b", "<script", "\x01"}} {
		content := read(t, filepath.Join(base, name))
		for _, bad := range bad {
			if strings.Contains(strings.ReplaceAll(content, "<body>", ""), bad) {
				t.Errorf("%s has %q in it", name, bad)
			}
		}
	}
	isXML(t, read(t, filepath.Join(base, "x.svg")))
	out := succeed(t, "attention", dir, line)
	if strings.ContainsAny(out, "\t\x01\u200d") {
		t.Errorf("it prints what can't be printed: %q", out)
	}
	for _, want := range []string{"→ a tab", "▫ a space", "¤ a character that can't be printed", "¶ a new line", "\n文 ", "\n◌\u0301 ", "\n·  "} {
		if !strings.Contains(out, want) {
			t.Errorf("it prints no %q:\n%s", want, out)
		}
	}
	fail(t, heed("attention", dir, "<z>"), 2, `symbol 'z'`)
	fail(t, heed("attention", dir, ""), 2, "the input is empty")
}

// Of a text longer than the context, the end counts, as it does for heed predict.
func TestAttentionOfLongTexts(t *testing.T) {
	dir, _ := trained(t, textTask)
	long := strings.Repeat("the lazy dog ", 10)
	title := func(s string) (string, string) {
		first, rest, _ := strings.Cut(s, "\n")
		return first, rest
	}
	first, maps := title(succeed(t, "attention", dir, long))
	_, want := title(succeed(t, "attention", dir, long[len(long)-16:]))
	if maps != want {
		t.Errorf("of a long text it prints\n%s\nof its end\n%s", maps, want)
	}
	if !strings.HasPrefix(first, `text: "…`) || len(first) > 100 {
		t.Errorf("the title is %q", first)
	}
}

func TestChoose(t *testing.T) {
	all := func(shapes ...[]int) []layers.Captured {
		g := G.NewGraph()
		var all []layers.Captured
		for i, shape := range shapes {
			name := []string{"decoder.blocks.0.attention", "decoder.blocks.0.cross"}[i]
			all = append(all, layers.Captured{Layer: name, Weights: G.NewTensor(g, tensor.Float32, 4, G.WithShape(shape...), G.WithName(name))})
		}
		return all
	}
	got, err := choose(all([]int{1, 2, 3, 3}, []int{1, 2, 3, 5}), "")
	if err != nil || len(got) != 2 || got[0].Layer != "decoder.blocks.0.cross" {
		t.Errorf("got %v, %v; want cross-attention first", got, err)
	}
	large, small := []int{1, 4, 600, 600}, []int{1, 4, 3, 3}
	_, err = choose(all(large, small), "")
	var usage *usageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "1440036 attention weights to show") || !strings.Contains(err.Error(), "--layer") {
		t.Errorf("too many to show: got %v", err)
	}
	if got, err := choose(all(large, small), "cross"); err != nil || len(got) != 1 {
		t.Errorf("a small layer beside a large one: got %v, %v", got, err)
	}
	if _, err := choose(all([]int{1, 4, 6000, 6000}, small), "cross"); err == nil || !strings.Contains(err.Error(), "shorter input") {
		t.Errorf("too many to compute: got %v", err)
	}
}

func TestMarks(t *testing.T) {
	for symbols, want := range map[string]string{
		"a \n\té\u0301\x00": "a·¶→é◌\u0301¤",
		"□\u20dd\x00":       "□◌\u20dd¤", // a circle around what is before it
		"¤\x00":             "¤■",
		"·¶→ \n\t":          "·¶→▫◊►",
		"·▫ ":               "·▫▫", // every mark is a symbol
	} {
		vocab, err := data.NewVocab(symbols)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := vocab.Encode(symbols)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(newMarks(vocab, nil).labels(ids), ""); got != want {
			t.Errorf("the labels of %q are %q, want %q", symbols, got, want)
		}
	}
}

func TestShortened(t *testing.T) {
	for s, want := range map[string]string{
		"abc": "abc", "": `""`, " ": `" "`, "a b": "a b", "a\nb": `"a\nb"`, " a": `" a"`,
		strings.Repeat("é", 61): "…" + strings.Repeat("é", 60),
	} {
		if got := shortened(s); got != want {
			t.Errorf("shortened(%q) is %s, want %s", s, got, want)
		}
	}
}
