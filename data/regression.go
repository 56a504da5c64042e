package data

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/heed-go/heed/internal/text"
)

// KindRegression predicts one number for a whole source. In an Example, the answer is the number in decimal notation.
const KindRegression Kind = "regression"

// regressionCoder is the Coder of KindRegression. A row's inputs are the symbols of the source, then padding. Its
// target is in Numbers: (x − Mean)/Scale for the answer x, or NaN if there is no answer.
type regressionCoder struct{ coder }

func newRegressionCoder(c coder) (Coder, error) {
	if scale := c.rule.Scale; !(scale >= 0 && scale <= text.MaxNumber) || !(c.rule.Mean >= -text.MaxNumber && c.rule.Mean <= text.MaxNumber) {
		return nil, fmt.Errorf("the Mean must be a number from -%g to %[1]g and the Scale from 0 to %[1]g, got %g and %g", text.MaxNumber, c.rule.Mean, scale)
	}
	c.layout = c.sequenceLayout(1)
	c.layout.Number = true
	return &regressionCoder{c}, nil
}

func (r *regressionCoder) Batch(examples []Example) (Batch, error) {
	return r.answers(examples, func(b *Batch, row int, source, answer string) error {
		x, err := text.Number(answer)
		if err != nil {
			return r.errorf("the answer to %.100q: %w", source, err)
		}
		b.Numbers[row] = float32((x - r.rule.Mean) / cmp.Or(r.rule.Scale, 1))
		return nil
	})
}

func (r *regressionCoder) Answer([]int) (string, error) {
	return "", errors.New("the answer of a rule of kind regression is a number, which has no ids")
}
