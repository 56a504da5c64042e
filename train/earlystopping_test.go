package train_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/heed-go/heed/train"
)

func TestEarlyStopping(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name     string
		patience int
		losses   []float64
		stop     int // the epoch at which it says so; -1 for never
		best     int
	}{
		{"the notebook's run", 2, []float64{0.300, 0.378, 0.346}, 2, 0},
		{"always better", 1, []float64{3, 2, 1}, -1, 2},
		{"equal is no improvement", 2, []float64{1, 1, 1}, 2, 0},
		{"improvement resets the counter", 2, []float64{3, 4, 2, 3, 1, 2, 2}, 6, 4},
		{"patience of one", 1, []float64{1, 2}, 1, 0},
		{"zero never stops", 0, []float64{1, 2, 3, 4, 5}, -1, 0},
		{"NaN is no improvement", 2, []float64{1, nan, nan}, 2, 0},
		{"NaN first", 3, []float64{nan, 2, 3}, -1, 1},
		{"infinity can be improved on", 2, []float64{math.Inf(1), 5, 6, 7}, 3, 1},
		{"below zero", 1, []float64{-1, -2, -2}, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := train.NewEarlyStopping(c.patience)
			stopped := -1
			for i, loss := range c.losses {
				improved, stop := e.Observe(loss)
				if improved != (e.Waited == 0 && e.BestEpoch == i) {
					t.Errorf("epoch %d: improved is %t, but the state is %+v", i, improved, *e)
				}
				if stop {
					stopped = i
					break
				}
			}
			if stopped != c.stop || e.BestEpoch != c.best || e.Best != c.losses[c.best] {
				t.Errorf("stopped at %d with best epoch %d (%v), want %d and %d (%v)", stopped, e.BestEpoch, e.Best, c.stop, c.best, c.losses[c.best])
			}
		})
	}
}

// A restored EarlyStopping goes on as the one it was saved from.
func TestEarlyStoppingSaved(t *testing.T) {
	e := train.NewEarlyStopping(2)
	e.Observe(1)
	e.Observe(2)
	saved := *e
	if _, stop := saved.Observe(3); !stop || saved.Epochs != 3 {
		t.Errorf("the copy forgot: %+v", saved)
	}
}

// In a loop of one's own: the notebook's run with a patience of 2.
func ExampleEarlyStopping() {
	trainLosses := []float64{0.457, 0.647, 0.628, 0.511}
	valLosses := []float64{0.300, 0.378, 0.346, 0.290}

	stopping := train.NewEarlyStopping(2)
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
	fmt.Println("Best epoch:", stopping.BestEpoch)
	// Output:
	// Epoch 0: Train=0.457, Val=0.300
	//   worth keeping
	// Epoch 1: Train=0.647, Val=0.378
	// Epoch 2: Train=0.628, Val=0.346
	// Early stopping at epoch 2
	// Best epoch: 0
}
