package train_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// JSON keeps the whole state, even numbers that aren't finite.
func TestEarlyStoppingJSON(t *testing.T) {
	inf := math.Inf(1)
	for _, losses := range [][]float64{{}, {1, 2}, {1, math.NaN()}, {inf}, {-inf, 3}} {
		e := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: 2, Baseline: new(0.5)}}
		for _, l := range losses {
			e.Observe(l)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%v: %v", losses, err)
		}
		var got train.EarlyStopping
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(text) || got.Best != e.Best || got.Patience != 2 || *got.Baseline != 0.5 {
			t.Errorf("%s is decoded and encoded as %s, %v, want no change", text, again, err)
		}
	}
	for text, want := range map[string]string{
		`{"epoch":1,"step":20,"train_loss":0.5,"val_loss":"NaN"}`:                                        "Epoch 1: Train=0.500, Val=NaN",
		`{"epoch":2,"step":30,"train_loss":"-Inf","val_loss":3}`:                                         "Epoch 2: Train=-Inf, Val=3.000",
		`{"epoch":3,"step":40,"train_loss":0.25}`:                                                        "Epoch 3: Train=0.250",
		`{"epoch":4,"step":50,"train_accuracy":0.5,"train_loss":0.25,"val_accuracy":"NaN","val_loss":1}`: "Epoch 4: Train=0.250, Val=1.000; accuracy: Train=0.500, Val=NaN",
	} {
		var e train.Check
		err := json.Unmarshal([]byte(text), &e)
		if again, _ := json.Marshal(e); err != nil || e.String() != want || string(again) != text {
			t.Errorf("%s is decoded as %q and encoded as %s, %v, want %q and no change", text, e, again, err, want)
		}
	}
	wantError(t, "a word as a loss", json.Unmarshal([]byte(`{"val_loss": "much"}`), new(train.Check)), "much")
}

// A repeated or unknown key, or one in another case, is an error. Otherwise its last value would silently win.
func TestKeysOfJSON(t *testing.T) {
	for _, text := range []string{
		`{"epoch":1,"step":20,"train_loss":0.5,"train_loss":0.4}`, `{"epoch":1,"step":20,"Train_loss":0.5}`, `{"EPOCH":1}`,
		`{"Train_accuracy":1}`, `{"train_Loss":1}`, `{"loss":1}`, `{"val_accuracy":0.5,"val_accuracy":0.9}`,
	} {
		c := train.Check{Step: 7}
		if err := json.Unmarshal([]byte(text), &c); err == nil || c.Step != 7 {
			t.Errorf("%s: got %+v, %v, want an error", text, c, err)
		}
	}
	for _, text := range []string{
		`{"patience":2,"patience":3}`, `{"Patience":2}`, `{"Best":1,"Best":0}`, `{"best":1}`, `{"Checks":1,"CHECKS":2}`, `{"more":1}`, `{"Stopping":{}}`,
	} {
		e := train.EarlyStopping{Checks: 7}
		if err := json.Unmarshal([]byte(text), &e); err == nil || e.Checks != 7 {
			t.Errorf("%s: got %+v, %v, want an error", text, e, err)
		}
	}
}

func TestEarlyStoppingWrongOptions(t *testing.T) {

	for _, c := range []struct {
		name string
		s    train.StoppingConfig
		want string
	}{
		{"a metric without a mode", train.StoppingConfig{Monitor: "val_accuracy"}, "mode must be max if a higher val_accuracy is better, or min if a lower one is"},
		{"no such mode", train.StoppingConfig{Mode: "auto"}, `mode must be min or max, got "auto"`},
		{"negative patience", train.StoppingConfig{Patience: -1}, "patience must be from 0 to 1073741824, got -1"},
		{"negative epoch", train.StoppingConfig{FirstCheck: -1}, "first_epoch must be from 0 to 1073741824, got -1"},
		{"negative delta", train.StoppingConfig{MinDelta: -1}, "min_delta must be from 0 to 1e30, got -1"},
		{"delta that is no number", train.StoppingConfig{MinDelta: nan}, "min_delta must be from 0 to 1e30, got NaN"},
		{"baseline", train.StoppingConfig{Baseline: &nan}, "baseline must be from -1e30 to 1e30, got NaN"},
		{"stopping threshold", train.StoppingConfig{StoppingThreshold: &nan}, "stopping_threshold must be from"},
		{"divergence threshold", train.StoppingConfig{DivergenceThreshold: &nan}, "divergence_threshold must be from"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := train.EarlyStopping{StoppingConfig: c.s}
			if improved, stop := e.Observe(1); improved || !stop || !strings.Contains(e.Because(), c.want) {
				t.Errorf("Observe returns improved %t and stop %t, because %q, want false and true, because %q", improved, stop, e.Because(), c.want)
			}
			config := train.Config{BatchSize: 16, MaxEpochs: 1, Stopping: c.s}
			wantError(t, "Fit", failure(train.Fit(t.Context(), digits(t, 1), config, train.RunOptions{})), "train: stopping."+c.want)
		})
	}
}

func TestBestOf(t *testing.T) {
	history := []train.Check{
		{TrainLoss: 3, ValLoss: 5, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.2}},
		{TrainLoss: 2, ValLoss: 4, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.6}},
		{TrainLoss: 1, ValLoss: 6, Validated: true, Metrics: map[string]float64{"val_accuracy": 0.5}},
	}
	unvalidated := []train.Check{{TrainLoss: 3}, {TrainLoss: 2}, {TrainLoss: 1}}
	for _, c := range []struct {
		name    string
		history []train.Check
		train.StoppingConfig
		want []int // BestOf after each check
	}{
		{"the validation loss", history, train.StoppingConfig{}, []int{0, 1, 1}},
		{"the validation loss by its name", history, train.StoppingConfig{Monitor: "val_loss"}, []int{0, 1, 1}},
		{"the training loss", history, train.StoppingConfig{Monitor: "train_loss"}, []int{0, 1, 2}},
		{"without validation", unvalidated, train.StoppingConfig{}, []int{0, 1, 2}},
		{"a metric", history, train.StoppingConfig{Monitor: "val_accuracy", Mode: "max"}, []int{0, 1, 1}},
		{"the smallest metric", history, train.StoppingConfig{Monitor: "val_accuracy", Mode: "min"}, []int{0, 0, 0}},
		{"KeepLast has no effect", history, train.StoppingConfig{KeepLast: true}, []int{0, 1, 1}},
		{"none before FirstCheck", history, train.StoppingConfig{FirstCheck: 2}, []int{-1, -1, 2}},
	} {
		var got []int
		for i := range c.history {
			got = append(got, c.BestOf(c.history[:i+1]))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the best are %v, want %v", c.name, got, c.want)
		}
	}
}

// literal is the notebook's early_stopping, line by line, on given losses. There is one difference: −Inf is no
// improvement. literal returns the number of epochs, the epoch of the best loss or -1, and whether the loop stopped
// early.
func literal(losses []float64, patience, maxEpochs int) (epochs, kept int, stopped bool) {
	best, kept := math.Inf(1), -1
	counter := 0
	for epoch := range maxEpochs {
		loss := losses[epoch]
		epochs++
		if loss < best && !math.IsInf(loss, -1) {
			best, kept = loss, epoch
			counter = 0
		} else {
			counter++
			if counter >= patience {
				return epochs, kept, true
			}
		}
	}
	return epochs, kept, false
}

// EarlyStopping stops where the notebook's loop stops, for random losses.
func TestEarlyStoppingIsTheNotebooks(t *testing.T) {
	rng := rand.New(rand.NewPCG(testseed.Of(t), 0))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat64}
	for range 10_000 {
		patience, maxEpochs := 1+rng.IntN(7), 1+rng.IntN(25)
		losses := make([]float64, maxEpochs)
		few := rng.IntN(2) == 0 // then some losses are equal
		for i := range losses {
			losses[i] = 0.2 + 0.6*rng.Float64()
			if few {
				losses[i] = float64(rng.IntN(4))
			}
			if rng.IntN(10) == 0 {
				losses[i] = odd[rng.IntN(len(odd))]
			}
		}
		epochs, best, stopped := literal(losses, patience, maxEpochs)
		e := &train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: patience, AllowNonFinite: true}}
		for i, l := range losses[:epochs] {
			saved := *e // continues from the same state
			e = &saved
			improved, stop := e.Observe(l)
			if stop != (stopped && i == epochs-1) || improved != (e.Waited == 0 && e.BestCheck == i) {
				t.Fatalf("patience %d, losses %v: stop is %t and improved %t at epoch %d, with the state %+v", patience, losses, stop, improved, i, *e)
			}
		}
		if e.Improved != (best >= 0) || e.Improved && e.BestCheck != best {
			t.Fatalf("patience %d, losses %v: BestCheck is %d and Improved %t, want the best to be %d", patience, losses, e.BestCheck, e.Improved, best)
		}
	}
}

// An EarlyStopping in a loop of your own: the notebook's run, with a patience of 2.
func ExampleEarlyStopping() {
	trainLosses := []float64{0.457, 0.647, 0.628, 0.511}
	valLosses := []float64{0.300, 0.378, 0.346, 0.290}

	stopping := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: 2}}
	for epoch := range valLosses {
		fmt.Printf("Epoch %d: Train=%.3f, Val=%.3f\n", epoch, trainLosses[epoch], valLosses[epoch])
		improved, stop := stopping.Observe(valLosses[epoch])
		if improved {
			fmt.Println("  worth keeping")
		}
		if stop {
			fmt.Printf("Early stopping at epoch %d\n", epoch)
			break
		}
	}
	fmt.Println("Best epoch:", stopping.BestCheck)
	// Output:
	// Epoch 0: Train=0.457, Val=0.300
	//   worth keeping
	// Epoch 1: Train=0.647, Val=0.378
	// Epoch 2: Train=0.628, Val=0.346
	// Early stopping at epoch 2
	// Best epoch: 0
}
