package report

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/train/task/judge"
)

// A why explains an answer by the words of its source. Its texts are safe to show.
type why struct {
	ID    int // number on the page, from 1
	Right bool
	example
	Words []word
	More  int // number of further words
}

// A word is a word with what it did to the answer.
type word struct {
	Text, Value string
	Bad         bool    // whether it spoke for a wrong answer, or against a right one
	Share       float64 // size of the value divided by the largest size in the source
}

const shownWords = 80 // maximum words of an explanation

// explains reports whether the page explains answers by words. Then it doesn't show attention.
func (v *answers) explains() bool {
	c := v.Config
	return c.Describe().Explain == nil && c.Task.Separator == "" && !c.Drawn() && !v.Private
}

// explain adds an explanation to the page, if there is an answer, and sets the Why of its example. A wrong answer is
// compared with the right one.
func (v *answers) explain(ctx context.Context, e *example, j judge.Judged) error {
	if !v.explains() || !e.Answered {
		return ctx.Err()
	}
	against := ""
	if want := j.References[0]; !j.Right && slices.Contains(v.Config.Task.Classes, want) {
		against = want
	}
	words, err := v.Model.Explain(j.Source, j.Answer.Text, against)
	if err != nil {
		return err
	}
	largest := 0.0
	for _, w := range words {
		largest = max(largest, math.Abs(w.Value))
	}
	e.Why = len(v.Whys) + 1
	y := why{ID: e.Why, Right: j.Right, example: *e, More: max(0, len(words)-shownWords)}
	for _, w := range words[:len(words)-y.More] {
		y.Words = append(y.Words, word{shown(w.Word), fmt.Sprintf("%+.2f", w.Value), (w.Value > 0) != j.Right, math.Abs(w.Value) / max(largest, 1e-9)})
	}
	v.Whys = append(v.Whys, y)
	return ctx.Err()
}
