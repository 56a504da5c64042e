package train_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// TestPrecision trains in float32 and in bfloat16, whole and in two parts. The first losses are nearly the same, and
// Evaluate, which uses float32, repeats the validation loss of the best check.
func TestPrecision(t *testing.T) {
	const epochs = 3
	fit := func(c train.Config, o train.RunOptions) (*train.Result, train.Problem) {
		p := digitsWith(t, 1, 0)
		c.BatchSize, c.MicroBatches, c.MaxEpochs = 16, 2, epochs
		return fitted(t, p, c, o), p
	}
	full, fullProblem := fit(train.Config{}, train.RunOptions{})
	half, halfProblem := fit(train.Config{Precision: layers.BFloat16}, train.RunOptions{})
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

	parts := train.RunOptions{Checkpoint: filepath.Join(t.TempDir(), "c"), MaxSteps: 27, Workers: 1}
	fit(train.Config{Precision: layers.BFloat16}, parts)
	parts.MaxSteps, parts.Resume, parts.Workers = 0, true, 2
	if _, resumed := fit(train.Config{Precision: layers.BFloat16}, parts); !same(values(resumed.Params), values(halfProblem.Params)) {
		t.Error("the resumed run has other parameters")
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
