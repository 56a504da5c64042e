package task

import (
	"context"

	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// Evaluate scores the answers of the model with its present parameters to the validation examples.
func (t *Task) Evaluate(ctx context.Context) (judge.Score, error) {
	if t.NoLinear != nil {
		return judge.Score{}, t.NoLinear
	}
	judged := func() (s judge.Score, err error) {
		v, err := t.readValidation(ctx)
		if err == nil {
			_, s, err = t.judgeMixed(v)
		}
		return s, err
	}
	if t.mixes() {
		return judged()
	}
	values, err := train.Evaluate(ctx, t.Problem())
	if err != nil {
		return judge.Score{}, err
	}
	if err := logit.CheckFinite(values["val_loss"]); err != nil {
		return judge.Score{}, err
	}
	s := t.score(values["val_loss"], values)
	if t.Thresholds != nil {
		whole, err := judged()
		whole.Loss = s.Loss // as in the check
		return whole, err
	}
	if k := t.kind.about(); t.Config.FromRows() && t.set.judged() > 0 && (k.together || k.linear != nil && (!k.classes || k.symbols)) {
		r, err := judge.Answers(ctx, t.Model, t.Examples(), model.PredictOptions{})
		if err != nil {
			return s, err
		}
		s.Judged(r)
	}
	return s, nil
}
