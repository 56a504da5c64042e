package main

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/heed-go/heed/train"
)

// The line appears after a time without output, says how many texts the model has read, and leaves before output. While
// the line of a training is shown, it doesn't appear.
func TestWaiting(t *testing.T) {
	var terminal bytes.Buffer
	l := &waiting{w: &terminal, what: "Scoring", began: time.Now().Add(-12 * time.Second), since: time.Now()}
	out := &output{Writer: &terminal, line: l}
	long := func() { l.since = time.Now().Add(-longWait) }
	shows := func(want ...string) {
		t.Helper()
		l.draw()
		if got := screen(terminal.String()); !slices.Equal(got, want) {
			t.Errorf("the screen shows %q, want %q", got, want)
		}
	}
	shows("")
	long()
	shows("Scoring: 12 s so far")
	l.counts(false)(64, 800)
	shows("Scoring: 64 of 800 texts, 12 s so far")
	l.counts(false)(800, 800)
	shows("Scoring: 12 s so far")
	count := l.counts(true)
	count(64, 100)
	count(100, 100)
	count(1, 50)
	shows("Scoring: 101 texts, 12 s so far")
	io.WriteString(out, "a line\n")
	shows("a line", "")
	long()
	l.does("Writing")
	shows("a line", "Writing: 12 s so far")

	newProgress(l, 4, train.Config{MaxEpochs: 7}, train.RunOptions{}).step(0, 0, 1)
	bar := screen(terminal.String())
	long()
	shows(bar...)
	l.clear()
	shows("a line", "")
	long()
	shows("a line", "Writing: 12 s so far")
	l.show("") // the end
	shows("a line", "")
}

// Without a terminal, nothing is shown.
func TestWaitingOnlyOnATerminal(t *testing.T) {
	var stderr bytes.Buffer
	root := newRoot(nil)
	root.SetOut(&output{Writer: io.Discard})
	root.SetErr(&stderr)
	l, end := wait(root, "Scoring")
	l.does("Writing")
	l.clear()
	newProgress(l, 4, train.Config{}, train.RunOptions{}).step(0, 0, 1)
	end()
	if l != nil || l.counts(true) != nil || stderr.Len() > 0 {
		t.Errorf("a file gets %q, want nothing", stderr.String())
	}
}
