package task

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
)

// A model with experts has the metric balance, from 1 to the number of experts. The training loss has a term for it,
// but not the validation loss.
func TestExperts(t *testing.T) {
	fitted := func(balance float64) train.Check {
		c := configs(t)["experts copy"]
		c.Model.Block.FeedForward.Experts.Balance = balance
		c.Training.Optimizer.LearningRate = 1e-30 // the weights stay
		task := made(t, c)
		return must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed}))(t).History[0]
	}
	little, much := fitted(1e-9), fitted(2)
	for _, name := range []string{"train_balance", "val_balance"} {
		if x := much.Metrics[name]; !(x >= 0.99 && x <= 3.01) {
			t.Errorf("%s is %v, want 1 to 3", name, x)
		}
	}
	layers := float64(made(t, configs(t)["experts copy"]).Config.Model.Layers)
	if d := much.TrainLoss - little.TrainLoss - 2*layers*much.Metrics["train_balance"]; d < -1e-3 || d > 1e-3 {
		t.Errorf("the training loss grows from %v to %v, want 2 times the balance %v of each layer more", little.TrainLoss, much.TrainLoss, much.Metrics["train_balance"])
	}
	if d := much.ValLoss - little.ValLoss; d < -1e-4 || d > 1e-4 {
		t.Errorf("the validation loss is %v and %v, want the same", little.ValLoss, much.ValLoss)
	}
}
