package task

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/toy"
	"github.com/heed-go/heed/internal/extremes"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

func TestExtremes(t *testing.T) {
	testseed.Proof(t)
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	rule := must.Get(toy.Named("reverse", 3))(t)
	rule.Kind, rule.MaxAnswer = data.KindSeq2Seq, 3
	init := layers.Normal(0.1)
	config := func(rule data.Rule) Config {
		c := Defaults(rule)
		c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads, c.Model.Block.FeedForward.Hidden = 4, 1, 2, 4
		c.Model.Block.FeedForward.Gated, c.Model.Block.FeedForward.Activation = true, layers.SiLU
		c.Model.Block.FeedForward.Experts = &layers.ExpertsConfig{Count: 4, Top: 2, Scale: 2, Groups: 2, TopGroups: 1, Shared: 2, Limit: 3, Balance: 0.1}
		c.Model.Init, c.Model.Block.Attention.OutputInit = init, init
		c.Model.Block.Attention.Window = &layers.Window{Left: 2, Right: 1}
		c.Model.Block.Attention.Latent = &layers.LatentConfig{Rank: 3, RotaryDim: 2, QueryRank: 3}
		c.Model.Variants = []layers.BlockVariant{{Blocks: []int{0}, Window: &layers.Window{Left: 1, Right: 1}, FeedForward: &layers.FeedForwardConfig{
			Hidden: 4, Init: init, OutputInit: init, Experts: &layers.ExpertsConfig{Count: 4, Top: 2, Scale: 2, Groups: 2, TopGroups: 1, Shared: 2}}}}
		c.Model.Transform = &layers.TransformConfig{Activation: layers.Tanh}
		c.Model.Projection = &layers.ProjectionConfig{Dim: 8}
		c.Head.Pad, c.Head.Decoder = new(1), &layers.RereadConfig{Layers: 1, Start: 1}
		c.Head.Dense = &pretrained.DenseConfig{Width: 3, Activation: new(layers.Tanh)}
		c.Data.Validation = 4
		c.Training.BatchSize, c.Training.MicroBatches, c.Training.StepsPerEpoch = 4, 2, 2
		c.Training.MaxEpochs, c.Training.Optimizer.Schedule.Decay = 2, 4
		c.Training.Stopping.Baseline, c.Training.Stopping.StoppingThreshold, c.Training.Stopping.DivergenceThreshold = new(1.0), new(1e-3), new(100.0)
		return c
	}
	// fitted trains for two steps, and returns the results.
	fitted := func(c Config) ([]float64, error) {
		made, err := New(c)
		if err != nil {
			return nil, err
		}
		defer made.Close()
		r, err := train.Fit(t.Context(), made.Problem(), made.Config.Training.Config, train.RunOptions{Seed: c.Seed, MaxSteps: 2, Workers: 1})
		if err != nil {
			return nil, err
		}
		return []float64{r.Best.TrainLoss, r.Best.ValLoss, r.Best.GradientNorm, r.Best.LearningRate}, nil
	}
	sgd := config(rule)
	sgd.Training.Optimizer.Solver, sgd.Training.Optimizer.Plateau = optim.SGD{Momentum: 0.9}, optim.PlateauConfig{Checks: 2, Factor: 0.5}
	muon := config(rule)
	muon.Training.Optimizer.Solver, muon.Training.Optimizer.Average, muon.Training.Optimizer.Schedule.Kind = optim.Muon{LearningRate: 0.02}, 0.9, "one-cycle"
	muon.Training.Optimizer.Schedule.WarmUp = 1
	model := must.Get(New(config(rule)))(t)
	defer model.Close()
	writes, text := openedFolder(t, "llama"), filepath.Join(t.TempDir(), "text.txt")
	write(t, text, "a text of some words")
	type longest struct{ MaxLen int }
	results := []string{"Alternative", "Answer", "AttentionLayer", "Beyond", "Contribution", "Count", "Generated", "Judged", "Report", "Run", "Score", "Scores", "SearchMatch", "SearchRow", "Side", "Span", "Summary", "Task", "TextScore"}
	extremes.Run(t, results,
		extremes.Of(config(rule), fitted),
		extremes.Of(sgd.Training.Optimizer, func(c optim.Config) ([]float64, error) {
			config := sgd
			config.Training.Optimizer = c
			return fitted(config)
		}),
		extremes.Of(muon.Training.Optimizer, func(c optim.Config) ([]float64, error) {
			config := muon
			config.Training.Optimizer = c
			return fitted(config)
		}),
		extremes.Of(PredictOptions{Beam: 2, Top: 2}, func(c PredictOptions) ([]float64, error) {
			answers, err := model.PredictAll(t.Context(), []string{"abc"}, c)
			if err != nil {
				return nil, err
			}
			return []float64{answers[0].LogProb}, answers[0].Err
		}),
		extremes.Of(GenerateOptions{MaxTokens: 3}, func(c GenerateOptions) ([]float64, error) {
			g, err := writes.Generate(t.Context(), io.Discard, Prompt{Text: "abc"}, c)
			return []float64{float64(g.Tokens)}, err
		}),
		extremes.Of(WindowOptions{Window: 8, Stride: 2}, func(c WindowOptions) ([]float64, error) {
			s, err := writes.ScoreText(t.Context(), data.TextFiles{Paths: []string{text}}, c)
			return []float64{s.Loss}, err
		}),
		extremes.Of(longest{3}, func(c longest) ([]float64, error) {
			_, err := Named("reverse", c.MaxLen)
			return nil, err
		}),
		extremes.Of(train.RunOptions{MaxSteps: 2}, func(c train.RunOptions) ([]float64, error) {
			made, err := New(config(rule))
			if err != nil {
				return nil, err
			}
			defer made.Close()
			s, err := made.Train(t.Context(), t.TempDir(), c)
			if err != nil {
				return nil, err
			}
			return []float64{s.TrainLoss}, nil
		}),
	)
}
