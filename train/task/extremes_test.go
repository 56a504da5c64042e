package task

import (
	"reflect"
	"testing"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

func TestExtremes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	rule, err := data.Named("reverse", 3)
	if err != nil {
		t.Fatal(err)
	}
	rule.Kind, rule.MaxAnswer = data.KindSeq2Seq, 3
	init := layers.Normal(0.1)
	config := func(rule data.Rule) Config {
		c := Defaults(rule)
		c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads, c.Model.Block.FeedForward.Hidden = 4, 1, 2, 4
		c.Model.Init, c.Model.Block.Attention.OutputInit = init, init
		c.Data.Validation = 4
		c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.MaxEpochs, c.Training.Optimizer.Schedule.Decay = 4, 2, 2, 4
		c.Training.Stopping.Baseline, c.Training.Stopping.StoppingThreshold, c.Training.Stopping.DivergenceThreshold = new(1.0), new(1e-3), new(100.0)
		return c
	}
	// fitted trains two steps.
	fitted := func(c Config) ([]float64, error) {
		made, err := New(c)
		if err != nil {
			return nil, err
		}
		defer made.Close()
		fit := fitConfig(t, made)
		fit.MaxSteps = 2
		r, err := train.Fit(t.Context(), made.Problem(), fit)
		if err != nil {
			return nil, err
		}
		return []float64{r.Best.TrainLoss, r.Best.ValLoss, r.Best.GradientNorm, r.Best.LearningRate}, nil
	}
	sgd := config(rule)
	sgd.Training.Optimizer.Solver, sgd.Training.Optimizer.Plateau = optim.SGD{Momentum: 0.9}, optim.Plateauing{Checks: 2, Factor: 0.5}
	muon := config(rule)
	muon.Training.Optimizer.Solver, muon.Training.Optimizer.Average, muon.Training.Optimizer.Schedule.Kind = optim.Muon{LearningRate: 0.02}, 0.9, "one-cycle"
	muon.Training.Optimizer.Schedule.WarmUp = 1
	model, err := New(config(rule))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	type limits struct { // of a Task
		Workers, MaxSteps, CheckpointSteps int
		MaxTime, CheckpointTime            time.Duration
	}
	type longest struct{ MaxLen int }
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Task]()) {
		if _, tried := reflect.TypeFor[limits]().FieldByName(f.Name); len(f.Index) == 1 && f.Type.ConvertibleTo(reflect.TypeFor[int]()) && !tried {
			t.Errorf("Task has a limit that isn't tried: %s", f.Name)
		}
	}
	results := []string{"Answer", "AttentionLayer", "Count", "Judged", "Look", "Report", "Run", "Score", "Side", "Summary", "Task"}
	extremes.Run(t, results,
		extremes.Of(config(rule), fitted),
		extremes.Of(sgd.Training, func(c Training) ([]float64, error) {
			all := sgd
			all.Training = c
			return fitted(all)
		}),
		extremes.Of(muon.Training.Optimizer, func(c optim.Config) ([]float64, error) {
			all := muon
			all.Training.Optimizer = c
			return fitted(all)
		}),
		extremes.Of(PredictOptions{Beam: 2}, func(c PredictOptions) ([]float64, error) {
			answers, err := model.PredictAll(t.Context(), []string{"abc"}, c)
			if err != nil {
				return nil, err
			}
			return []float64{answers[0].LogProb}, answers[0].Err
		}),
		extremes.Of(longest{3}, func(c longest) ([]float64, error) {
			_, err := Named("reverse", c.MaxLen)
			return nil, err
		}),
		extremes.Of(limits{MaxSteps: 2}, func(c limits) ([]float64, error) {
			made, err := New(config(rule))
			if err != nil {
				return nil, err
			}
			defer made.Close()
			for i, f := range reflect.VisibleFields(reflect.TypeFor[limits]()) {
				reflect.ValueOf(made).Elem().FieldByName(f.Name).Set(reflect.ValueOf(c).Field(i))
			}
			s, err := made.Train(t.Context(), t.TempDir(), nil, nil)
			if err != nil {
				return nil, err
			}
			return []float64{s.TrainLoss}, nil
		}),
	)
}
