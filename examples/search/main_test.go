package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/internal/must"
)

// A text is nearest to itself, also for a small model with random weights and a vocabulary of characters.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS("../../layers/pretrained/testdata/bert-states")))
	vocab := "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n" + strings.Join(strings.Split("abcdefghilmnoprstw", ""), "\n")
	must.Do(t, os.WriteFile(filepath.Join(dir, "vocab.txt"), []byte(vocab), 0o666))
	for _, text := range texts {
		var out strings.Builder
		must.Do(t, run(&out, []string{"--encoder", dir, "--query", text, "--count", "2"}))
		if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "1.000  ") {
			t.Errorf("%s: the program prints %q, want two texts, the first with the score 1", text, lines)
		}
	}
}

func TestCalls(t *testing.T) {
	golden.Refuses(t, run, "-count")
	must.Fail(t, run(io.Discard, nil), "search needs --encoder")
}
