package main

import (
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// trained returns the folder of a small run, which the caller must not change, and an input for the model.
func trained(t *testing.T, name string) (dir, input string) {
	t.Helper()
	dir = ran(t, append(dataFlags(t, name), "--task="+name, "--layers=2")...)
	if name == "text" {
		return dir, "quick fox"
	}
	c := must.Get(task.ReadConfig(dir))(t)
	return dir, c.Task.Example
}

func TestAttentionFiles(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir, input := trained(t, "dates")
	base := t.TempDir()
	for _, name := range []string{"a.png", "b.PNG", "c.svg", "d.html"} {
		path := filepath.Join(base, name)
		write(t, path, "an earlier file")
		out := succeed(t, "attention", dir, input, "--out="+path)
		if !strings.HasPrefix(out, "dates: "+input+" → ") || !strings.HasSuffix(out, ", drawn in "+path+"\n") {
			t.Errorf("heed attention prints %q, want the answer and the path %s", out, path)
		}
		content := read(t, path)
		switch strings.ToLower(filepath.Ext(name)) {
		case ".png":
			img := must.Get(png.Decode(strings.NewReader(content)))(t)
			if size := img.Bounds(); size.Dx() < 500 || size.Dy() < 1500 {
				t.Errorf("%s has size %v, want at least 500×1500", name, size)
			}
		case ".svg":
			isXML(t, content)
		case ".html":
			if !strings.HasPrefix(content, "<!DOCTYPE html>") || !strings.Contains(content, "<h3>decoder.blocks.1.cross: ") || strings.Count(content, "<table>") != 6*2 {
				t.Errorf("%s is %.300s, want a page with the maps of 6 layers and 2 heads", name, content)
			}
		}
	}
	if files := folder(t, base); len(files) != 4 {
		t.Errorf("the folder has %d files, want 4", len(files))
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
			t.Fatalf("the content isn't XML: %v", err)
		}
	}
}

func TestAttentionLayers(t *testing.T) {
	t.Parallel()
	dir, input := trained(t, "dates")
	for part, want := range map[string]int{"cross": 2, "decoder.blocks.1": 2, "encoder.blocks.0.attention": 1, "": 6} {
		out := succeed(t, "attention", dir, input, "--layer="+part)
		if got := strings.Count(out, "(rows)"); got != want {
			t.Errorf("--layer %q shows %d layers, want %d", part, got, want)
		}
		if strings.Contains(out, "► the start") != strings.Contains(out, "\n  ►") {
			t.Errorf("--layer %q: the key and the maps don't match:\n%s", part, out)
		}
	}
	fail(t, heed("attention", dir, input, "--layer=Cross"), 2, `contains "Cross"`, "the layers are encoder.blocks.0.attention, ")
}

func TestAttentionWrongCalls(t *testing.T) {
	word, sum := ran(t, "--task=reverse"), ran(t, "--task=add")
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{word}, "one input, in quotes if it has several words, got "},
		{[]string{word, "abc", "--out="}, `got ""`},
		{[]string{"none", "abc", "--out=x.gif"}, `got "x.gif"`},
		{[]string{word, "größe", "--out=x.png"}, `"größe": task reverse: source "größe": symbol 'ö' at position 2`},
		{[]string{word, "abcdefghijk", "--out=x.html"}, "at most 10 symbols, got 11"},
		{[]string{sum, "--", "-1+2"}, "'-'"},
	} {
		rejected(t, heed(append([]string{"attention"}, test.args...)...), 2, test.want)
	}
	// The file is checked before the run is opened.
	fail(t, heed("attention", "none", "abc", "--out=none/x.png"), 1, "--out's folder none doesn't exist")
	unchanged(t, ".", nil)
}

func TestAttentionFilesThatCantBeWritten(t *testing.T) {
	t.Parallel()
	dir, input := trained(t, "copy")
	base := t.TempDir()
	rejected(t, heed("attention", dir, input, "--out="+base+"/.html/"), 2, "--out must be a file's name")
	fail(t, heedTo(t.Context(), failing{}, "attention", dir, input), 1, "no space left")
	path := filepath.Join(base, "x.png")
	fail(t, heedContext(cancelled(t, 0), "attention", dir, input, "--out="+path), 1, "interrupted")
	absent(t, path)
}

// A text may have any characters. No character becomes markup in a file, and each has a label.
func TestAttentionOfHostileTexts(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := filepath.Join(base, "odd.txt")
	line := "<b onload=\"x('1')\">&amp;</script>\t文 e\u0301 \x01\u200d·\n"
	write(t, path, strings.Repeat(line, 80))
	dir := filepath.Join(base, "run")
	succeed(t, small("--task=text", "--steps-per-epoch=2", "--max-len=64", "--data="+path, "--out="+dir)...)
	for _, name := range []string{"x.html", "x.svg", "x.png"} {
		out := succeed(t, "attention", dir, line, "--out="+filepath.Join(base, name))
		if boxes := strings.Contains(out, `□ stands for "文"`); boxes != (name == "x.png") || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: heed attention prints %q, want one line, with a note about □ only for a PNG", name, out)
		}
	}
	for name, bad := range map[string][]string{"x.html": {"<b", "ZgotmplZ", "\x01"}, "x.svg": {"<b", "<script", "\x01"}} {
		content := read(t, filepath.Join(base, name))
		must.Lack(t, strings.ReplaceAll(content, "<body>", ""), bad...)
	}
	content := read(t, filepath.Join(base, "x.html"))
	// Only the page's own scripts are left.
	if opened, closed := strings.Count(content, "<script"), strings.Count(content, "</script"); opened != 3 || closed != 3 {
		t.Errorf("x.html opens %d scripts and closes %d, want 3", opened, closed)
	}
	isXML(t, read(t, filepath.Join(base, "x.svg")))
	out := succeed(t, "attention", dir, line)
	if strings.ContainsAny(out, "\t\x01\u200d") {
		t.Errorf("heed attention prints %q, want control characters escaped", out)
	}
	must.Have(t, out, "→ a tab", "▫ a space", "¤ a character that can't be printed", "¶ a new line", "\n文 ", "\n◌\u0301 ", "\n·  ")
	fail(t, heed("attention", dir, "<z>"), 2, `symbol 'z'`)
	fail(t, heed("attention", dir, ""), 2, "the input is empty")
}

// If a text is longer than the context, the model sees only its end, like in heed predict.
func TestAttentionOfLongTexts(t *testing.T) {
	t.Parallel()
	dir, _ := trained(t, "text")
	long := strings.Repeat("the lazy dog ", 10)
	title := func(s string) (string, string) {
		first, rest, _ := strings.Cut(s, "\n")
		return first, rest
	}
	first, maps := title(heed("attention", dir, long).stdout)
	_, want := title(succeed(t, "attention", dir, long[len(long)-16:]))
	if maps != want {
		t.Errorf("the maps of a long text are\n%s\nwant the maps of its end\n%s", maps, want)
	}
	if !strings.HasPrefix(first, `text: "…`) || len(first) > 100 {
		t.Errorf("the title is %q, want the shortened text", first)
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
