package train_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestPrecision trains in float32 and in bfloat16. The first losses are nearly the same, and
// Evaluate, which uses float32, repeats the validation loss of the best check.
func TestPrecision(t *testing.T) {
	fit := func(precision layers.Precision) (*train.Result, train.Problem) {
		p := digitsWith(t, 1, 0)
		return fitted(t, p, train.Config{BatchSize: 16, MicroBatches: 2, MaxEpochs: 3, Precision: precision}, train.RunOptions{}), p
	}
	full, fullProblem := fit(0)
	half, halfProblem := fit(layers.BFloat16)
	if same(values(fullProblem.Params), values(halfProblem.Params)) {
		t.Error("bfloat16 gives the same parameters as float32")
	}
	if a, b := full.History[0].TrainLoss, half.History[0].TrainLoss; math.Abs(a-b) > 0x1p-7*a {
		t.Errorf("the losses of the first epoch are %v in float32 and %v in bfloat16, want about the same", a, b)
	}
	e, err := train.Evaluate(t.Context(), halfProblem)
	if err != nil || e["val_loss"] != half.Best.ValLoss {
		t.Errorf("Evaluate returns %v and the error %v, want the best check's loss %v", e, err, half.Best.ValLoss)
	}
}

func TestPrecisionInJSON(t *testing.T) {
	for text, c := range map[string]train.Config{
		`"micro_batches":0,"max_epochs":0`:                        {},
		`"micro_batches":0,"precision":"bfloat16","max_epochs":0`: {Precision: layers.BFloat16},
	} {
		data, err := json.Marshal(c)
		if err != nil || !strings.Contains(string(data), text) {
			t.Errorf("got %s and the error %v, want %s in it", data, err, text)
		}
		var back train.Config
		if err := json.Unmarshal(data, &back); err != nil || back.Precision != c.Precision {
			t.Errorf("%s: got the precision %v back, error %v", data, back.Precision, err)
		}
	}
}
