package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// fox is a text of 50 lines.
var fox = strings.Repeat("The quick brown fox jumps over the lazy dog, isn't that so?\n", 50)

// foxText returns the path of a file with this text, which the test may change.
func foxText(t *testing.T) string {
	t.Helper()
	return newFile(t, "fox.txt", fox)
}

func TestUnusableTexts(t *testing.T) {
	latin1, short := newFile(t, "latin1", strings.Repeat("gr\xf6\xdfer ", 1000)), newFile(t, "short", "To be, or not to be")
	for _, test := range []struct {
		data   string
		status int
		want   string
	}{
		{latin1, 1, "not UTF-8: the byte at offset 2 (from 0) is no part of a character: save the file as UTF-8, or give its --encoding, such as windows-1252 "},
		{short, 2, "19 characters"},
		{foxText(t), 2, "too few for windows of length 3000: training has the first 2700 and validation the last 300, and each needs more than 3000: give a longer text or a smaller length (--max-len)"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		fail(t, heed(small("--task=text", "--max-len=3000", "--data="+test.data, "--out="+out)...), test.status, test.want)
		absent(t, out)
	}
	base := filepath.Dir(short)
	fail(t, heed(small("--task=text", "--data="+base, "--out="+base+"/run")...), 2, "and become a part of the text: choose another folder with --out")
}

func TestTextThatChanges(t *testing.T) {
	t.Parallel()
	path := foxText(t)
	dir := newRun(t, "--task=text", "--max-len=16", "--data="+path)
	score, answer := succeed(t, "eval", dir), succeed(t, "predict", dir, "The quick")
	text := read(t, path)
	elsewhere := newFile(t, "elsewhere.txt", text)

	// Changes: an additional line, a different letter, an unknown character.
	for _, changed := range []string{text + "The dog.\n", text[:len(text)-2] + "x\n", text + "§\n"} {
		write(t, path, changed)
		fail(t, heed("eval", dir), 1, "has changed since the run began", "--data")
	}
	fail(t, heed("eval", dir, "--data="+path), 1, "symbol '§'")
	prints(t, score, "eval", dir, "--data="+elsewhere)
	write(t, path, strings.ToLower(text[1:])+text)
	if got := succeed(t, "eval", dir, "--data="+path); got == score {
		t.Errorf("for another text, heed eval prints %q, want another score", got)
	}

	os.Remove(path)
	fail(t, heed("eval", dir), 1, "no such file or directory", "--data FILE")
	fail(t, heed("eval", dir, "--data="+path), 1, "no such file or directory")
	prints(t, answer, "predict", dir, "The quick")
}

func TestTextInputs(t *testing.T) {
	t.Parallel()
	dir := newRun(t, "--task=text", "--max-len=8", "--steps-per-epoch=2", "--data="+foxText(t))
	fail(t, heed("predict", dir, ""), 2, "the input is empty")
	fail(t, heed("predict", dir, "f§x"), 2, "symbol '§' at position 1")
	fail(t, heed("predict", dir, "f\xffx"), 2, "UTF-8")
	fail(t, heed("predict", dir, "--", "-"), 2, "symbol '-'")
	// If an input is longer than the context, the model reads only its end.
	c := heed("predict", dir, "quick brown fox", "rown fox")
	if got := c.stdout; len(got) < 4 || got[:len(got)/2] != got[len(got)/2:] {
		t.Errorf("heed predict prints %q, want the same twice", got)
	}
	if want := "heed: 1 of 2 inputs is longer than the model's 8 symbols; the beginning was ignored\n"; c.stderr != want {
		t.Errorf("standard error is %q, want %q", c.stderr, want)
	}
}

// Every answer is one line, even if it is a line break.
func TestTextAnswersAreLines(t *testing.T) {
	t.Parallel()
	path := newFile(t, "lines.txt", strings.Repeat("\n", 2000)+"x\ty")
	dir := filepath.Join(t.TempDir(), "run")
	out := succeed(t, small("--task=text", "--max-len=8", "--steps-per-epoch=40", "--learning-rate=0.03", "--data="+path, "--out="+dir)...)
	if !strings.HasSuffix(out, " TEXT --tokens 300\n") {
		t.Errorf("heed train prints %q, want an example that can be typed", out)
	}
	prints(t, `"\n"`+"\n", "predict", dir, "\n\n\n")
	begins(t, succeed(t, "attention", dir, "\n\n\n"), `text: "\n\n\n" → "\n"`+"\n")
}

// All commands work with a text in byte pairs, and a prompt may have characters that the text lacks.
func TestTextOfBytePairs(t *testing.T) {
	t.Parallel()
	path := newFile(t, "fox.txt", strings.Repeat("The quick brown fox jumps over the lazy dog, été 世界 🙂?\n", 50))
	dir := newRun(t, "--task=text", "--max-len=16", "--data="+path, "--units=bpe", "--vocab-size=270")
	score := succeed(t, "eval", dir)
	var token, character, accuracy float64
	var right, total int
	if _, err := fmt.Sscanf(score, "Val=%f per token, %f per character, accuracy %f (%d of %d tokens predicted)", &token, &character, &accuracy, &right, &total); err != nil || character >= token {
		t.Errorf("heed eval prints %q, %v, want a lower loss per character than per token", score, err)
	}
	other := newFile(t, "other.txt", strings.Repeat("другой текст\n", 100))
	begins(t, succeed(t, "eval", dir, "--data="+other), "Val=")
	fail(t, heed("train", "--resume="+dir, "--max-epochs=4", "--data="+other), 1, "has changed since the run began")
	if got := succeed(t, "generate", dir, "--prompt=Ж 🙂", "--tokens=60"); !strings.HasPrefix(got, "Ж 🙂") || !utf8.ValidString(got) {
		t.Errorf("heed generate prints %q, want the prompt first, and valid UTF-8", got)
	}
	succeed(t, "predict", dir, "Ж")
	succeed(t, "attention", dir, "The 世")
}

// A run scores another text as it learned its own: with or without packed documents.
func TestTextOfDocuments(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat(`{"text": "a fox"}`+"\n"+`{"text": "the dog, it"}`+"\n", 60)
	path, other := newFile(t, "lines.jsonl", lines), newFile(t, "other.jsonl", lines)
	scores := map[string]string{}
	for _, pack := range []string{"--pack", "--pack=no"} {
		dir := newRun(t, "--task=text", "--max-len=24", "--data="+path, pack)
		scores[pack] = succeed(t, "eval", dir)
		prints(t, scores[pack], "eval", dir, "--data="+other)
	}
	dir := newRun(t, "--task=text", "--max-len=24", "--data="+path)
	prints(t, scores["--pack"], "eval", dir)
	if scores["--pack"] == scores["--pack=no"] {
		t.Errorf("packed documents have the score of others, %q", scores["--pack"])
	}
	fail(t, heed(small("--task=text", "--data="+path, "--pack=maybe")...), 2, "--pack must be yes, no or empty", "maybe")
	fail(t, heed(small("--task=mlm", "--data="+path, "--pack")...), 2, "--pack is for --task text, not for mlm")
}
