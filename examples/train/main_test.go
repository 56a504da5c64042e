package main

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// TestRun checks that the program stops by itself and answers correctly, although some training answers are wrong. Each
// digit of an answer must attend to the digit that it copies.
func TestRun(t *testing.T) {
	var b strings.Builder
	must.Do(t, run(&b, nil))
	golden.Contains(t, b.String(), "Epoch 0: Train=2.", "Epoch 5: Train=0.", "\nEarly stopping at epoch ", " -> ", "What each digit of the first answer attends to:\n")
	log, answers, _ := strings.Cut(b.String(), "Early stopping")
	if epochs := strings.Count(log, "Epoch "); epochs >= 200 {
		t.Errorf("the program trained for all %d epochs, want early stopping", epochs)
	}
	lines := strings.Split(answers, "\n")
	for _, line := range lines[1:4] {
		asked, answer, _ := strings.Cut(line, " -> ")
		if len(asked) != 8 || answer != backwards(asked) {
			t.Errorf("%s: want %s", line, backwards(asked))
		}
	}
	for i, line := range lines[6:14] {
		weights, err := notebook.Numbers(line)
		if err != nil || weights[1:][7-i] < 0.8 { // the line begins with the answer's digit
			t.Errorf("digit %d of the answer has the attention weights %v, want at least 0.8 for digit %d of the question (error: %v)", i, weights[1:], 7-i, err)
		}
	}
}

func backwards(s string) string {
	var b strings.Builder
	for i := len(s) - 1; i >= 0; i-- {
		b.WriteByte(s[i])
	}
	return b.String()
}

// TestDraw checks the share of wrong answers: a tenth for training, none for the printed examples.
func TestDraw(t *testing.T) {
	for _, c := range []struct{ share, least, high float64 }{{0.1, 0.08, 0.12}, {0, 0, 0}} {
		const size, length = 500, 5
		sequences, backwards := draw(notebook.Source(1), size, length, c.share)
		digits, answers := sequences.Data().([]int), backwards.Data().([]int)
		wrong := 0.0
		for i := range digits {
			if answers[i-i%length+length-1-i%length] != digits[i] {
				wrong++
			}
		}
		if wrong /= size * length; wrong < c.least || wrong > c.high {
			t.Errorf("%v of the answers are wrong, want %v", wrong, c.share)
		}
	}
}

func TestOwn(t *testing.T) {
	golden.Calls(t, run, []string{"--length", "3", "--dim", "8", "--patience", "1"}, "-length", "-dim", "-patience")
}
