package train_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/train"
)

func TestEvaluate(t *testing.T) {
	p := digits(t, 1)
	p.Validation.Len, p.ValidationSize = 77, 20
	r := fitted(t, p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{})
	got, err := train.Evaluate(t.Context(), p)
	if err != nil || len(got) != 1 || got["val_loss"] != r.Best.ValLoss {
		t.Errorf("Evaluate returns %v, %v, want only the val_loss of Fit, %v", got, err, r.Best.ValLoss)
	}
	p.Train = train.Dataset{}
	if alone, err := train.Evaluate(t.Context(), p); err != nil || alone["val_loss"] != got["val_loss"] {
		t.Errorf("without training data: got %v, %v, want %v", alone, err, got)
	}
	p.ValidationSize = 0
	if whole, err := train.Evaluate(t.Context(), p); err != nil || math.Abs(whole["val_loss"]-got["val_loss"]) > 1e-6 {
		t.Errorf("with the default batch size: got %v, %v, want about %v", whole, err, got)
	}
	p.ValidationSize = 20
	weights := p.Params.All()[0].Value.Float32s()
	weight := weights[0]
	weights[0] = float32(math.NaN())
	if got, err := train.Evaluate(t.Context(), p); err != nil || !math.IsNaN(got["val_loss"]) {
		t.Errorf("with a weight that is NaN: got %v, %v, want a loss of NaN", got, err)
	}
	weights[0] = weight
	ctx, cancel := context.WithCancel(t.Context())
	p.Validation = changed(p.Validation, func(examples []int, _ []*tensor.Dense) {
		if examples[0] > 0 {
			cancel()
		}
	})
	if _, err := train.Evaluate(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("with a ctx that is cancelled in the first batch: got %v, want context.Canceled", err)
	}
	p.Validation = train.Dataset{}
	wantError(t, "without validation data", failure(train.Evaluate(t.Context(), p)), "needs validation data")
	wantError(t, "the zero Problem", failure(train.Evaluate(t.Context(), train.Problem{})), "needs validation data")
}
