package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// foxRun returns the folder of a text model with a context of 16 that learned fox. Tests must not change it.
func foxRun(t *testing.T, more ...string) string {
	t.Helper()
	return ran(t, slices.Concat([]string{"--task=text"}, dataFlags(t, "text"), more)...)
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	dir := foxRun(t)
	const known = "\n ',.?" + "Tabcdefghijklmnopqrstuvwxyz"
	for _, prompt := range []string{"T", "The quick", "The quick brown "} {
		for _, flags := range []string{"", "--temperature=0", "--temperature=0.5 --top-k=3", "--top-p=0.9 --seed=18446744073709551615"} {
			args := append([]string{"generate", dir, "--tokens=50", "--prompt", prompt}, strings.Fields(flags)...)
			got := succeed(t, args...)
			written, ok := strings.CutPrefix(got, prompt)
			if !ok || !strings.HasSuffix(written, "\n") || utf8.RuneCountInString(written) != 51 || strings.Trim(written, known) != "" {
				t.Errorf("%q prints %q, want the prompt, 50 known characters and a new line", args, got)
			}
			prints(t, got, args...)
		}
	}
	write := func(more ...string) string {
		return succeed(t, append([]string{"generate", dir, "--prompt=The", "--tokens=50"}, more...)...)
	}
	if write() != write("--seed=1", "--temperature=1", "--top-k=0", "--top-p=0") {
		t.Error("the flags' default values give another text than no flags")
	}
	if write("--seed=2") == write() {
		t.Error("two seeds give the same text")
	}
	if write("--top-k=1") != write("--temperature=0") {
		t.Error("--top-k 1 gives another text than --temperature 0")
	}
}

// At temperature 0, heed generate begins with what heed predict answers, also after a prompt that is longer than the
// context.
func TestGenerateIsPredict(t *testing.T) {
	t.Parallel()
	dir := foxRun(t, "--steps-per-epoch=60", "--learning-rate=0.02")
	for prompt, notice := range map[string]string{
		"The":                          "",
		"jumps over the lazy dog, isn": "heed: the prompt is longer than the model's 16 symbols; the beginning was ignored\n",
	} {
		answer := strings.TrimSuffix(heed("predict", dir, prompt).stdout, "\n")
		if s, err := strconv.Unquote(answer); err == nil { // a space, say
			answer = s
		}
		if got := heed("generate", dir, "--prompt="+prompt, "--temperature=0", "--tokens=1"); got.code != 0 || got.stdout != prompt+answer+"\n" || got.stderr != notice {
			t.Errorf("heed generate ends with %+v, want the prompt with %q, and the notice %q", got, answer, notice)
		}
	}
}

func TestGenerateWrongCalls(t *testing.T) {
	t.Parallel()
	dir := foxRun(t)
	for args, want := range map[string]string{
		"":                          "takes one model folder, and a prompt of several words in quotes, got none",
		"DIR The --tokens=3":        "takes one model folder, and a prompt of several words in quotes, got ",
		"DIR --tokens=3":            "--prompt must be the text to continue, got none",
		"DIR --tokens=3 --prompt=":  "--prompt must be the text",
		"DIR --prompt=T":            "--tokens must be at least 1, got 0",
		"DIR --prompt=T --tokens=x": `--tokens must be a whole number, got "x"`,
		"DIR --prompt=T --tokens=3 --temperature=-0.1":          "--temperature must be finite and at least 0, got -0.1",
		"DIR --prompt=T --tokens=3 --temperature=warm":          `--temperature must be a number, got "warm"`,
		"DIR --prompt=T --tokens=3 --top-k=-1":                  "--top-k must be at least 1, or 0 for all, got -1",
		"DIR --prompt=T --tokens=3 --top-p=1.1":                 "--top-p must be from 0 to 1, got 1.1",
		"DIR --prompt=T --tokens=3 --temperature=0 --top-p=0.9": "--top-p needs a --temperature above 0, got 0.9",
		"DIR --prompt=T --tokens=3 --temperature=0 --top-k=3":   "--top-k needs a --temperature above 0, got 3: leave out --top-k",
		"DIR --prompt=T --tokens=3 --seed=-1":                   "--seed must be a whole number, not negative",
		"DIR --prompt=Th§ --tokens=3":                           "--prompt: symbol '§' at position 2",
		"DIR --prompt=T\xff --tokens=3":                         "--prompt: not UTF-8",
	} {
		rejected(t, heed(append([]string{"generate"}, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)...), 2, want)
	}
	rejected(t, heed("generate", "", "--prompt=T", "--tokens=3"), 2, "the run folder's name is empty")
}

// An interrupted call ends its text with a new line.
func TestGenerateInterrupted(t *testing.T) {
	t.Parallel()
	dir := foxRun(t)
	args := []string{"generate", dir, "--prompt=The", "--tokens=40"}
	whole := succeed(t, args...)
	c := heedContext(cancelled(t, 25), args...)
	fail(t, c, 1, "interrupted")
	if want := whole[:len("The")+25] + "\n"; c.stdout != want {
		t.Errorf("interrupted after 25 tokens, heed generate prints %q, want %q", c.stdout, want)
	}
	if c = heedContext(cancelled(t, 0), args...); c.stdout != "The\n" {
		t.Errorf("interrupted at once, heed generate prints %q, want the prompt", c.stdout)
	}
}

// pieces is a writer that keeps each write, and fails after a number of them.
type pieces struct {
	written []string
	left    int
}

func (p *pieces) Write(b []byte) (int, error) {
	if p.left == 0 {
		return 0, errors.New("no space left")
	}
	p.left--
	p.written = append(p.written, string(b))
	return len(b), nil
}

// Characters are written one by one, and none after a failed write.
func TestGenerateStreams(t *testing.T) {
	t.Parallel()
	dir := foxRun(t)
	args := []string{"generate", dir, "--prompt=The", "--tokens=30"}
	whole := succeed(t, args...)
	for _, left := range []int{0, 1, 6, 31} {
		w := &pieces{left: left}
		fail(t, heedTo(t.Context(), w, args...), 1, "no space left")
		if len(w.written) != left || !strings.HasPrefix(whole, strings.Join(w.written, "")) {
			t.Errorf("heed generate writes %q, want %d pieces of %q", w.written, left, whole)
		}
		for i, piece := range w.written {
			if i > 0 && utf8.RuneCountInString(piece) != 1 {
				t.Errorf("heed generate writes %q at once, want one character", piece)
			}
		}
	}
}
