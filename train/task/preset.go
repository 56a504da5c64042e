package task

import (
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// A Preset is a named group of settings for tasks of one kind that learn from a file.
type Preset struct {
	Name  string
	Kind  data.Kind
	About string

	apply func(c *Config)
}

// presets lists all presets. Two presets of the same kind have different names.
var presets = []Preset{
	{"nanogpt", data.KindText, "nanoGPT's documented run on a CPU: a GPT-2 with 0.8 million parameters, 2,000 steps", nanoGPT},
	{"speedrun", data.KindText, "a lower loss than nanogpt in less than a tenth of its time", speedrun},
	{"small", data.KindSeq2Seq, "an encoder-decoder with 0.9 million parameters, 20 epochs", func(c *Config) { encoderDecoder(c, 128, 3, 2e-3, 0.1, 20) }},
	{"base", data.KindSeq2Seq, "an encoder-decoder with 4.2 million parameters, 20 epochs", func(c *Config) { encoderDecoder(c, 256, 4, 1e-3, 0.2, 20) }},
}

// Presets returns all presets.
func Presets() []Preset { return slices.Clone(presets) }

// Apply replaces the settings that the named preset has, and leaves the other settings. If there is no preset of this
// name for the Task's kind, the error is a *model.ConfigError.
func (c *Config) Apply(preset string) error {
	var names []string
	for _, p := range presets {
		if p.Kind != c.Task.Kind || c.Task.Sample != nil {
			continue
		}
		if p.Name == preset {
			p.apply(c)
			return nil
		}
		names = append(names, p.Name)
	}
	if names == nil {
		return setting.Errorf("%s: the task %s has no presets, got %q", setting.Path("preset"), c.Task.Name, preset)
	}
	return setting.Errorf("%s must be one of %s for the task %s, got %q%s", setting.Path("preset"), strings.Join(names, ", "), c.Task.Name, preset, text.DidYouMean(preset, names))
}

// nanoGPT has the settings of the CPU run in the README of https://github.com/karpathy/nanoGPT, including defaults from
// its config/train_shakespeare_char.py and train.py. Only the evaluation differs: it uses the whole validation split.
func nanoGPT(c *Config) {
	init := layers.Normal(0.02)
	residual := layers.Normal(0.02 / math.Sqrt(2*4)) // 4 is the number of layers
	c.Model = layers.ModelConfig{
		Dim: 128, Layers: 4, Init: init, EmbeddingInit: init, Tied: true, EmbeddingScale: 1,
		Positions: layers.Learned{MaxLen: c.Task.MaxLen, Init: init},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: 4, NoBias: true, OutputInit: residual},
			FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, NoBias: true, OutputInit: residual},
			Norm:        layers.NormConfig{NoBias: true},
		},
	}
	c.Data.Validation = rows.MaxValidation
	c.Training = Training{StepsPerEpoch: 250, Config: train.Config{
		BatchSize: 12, MaxEpochs: 8,
		Optimizer: optim.Config{
			Solver: optim.AdamW{Beta1: 0.9, Beta2: 0.99}, LearningRate: 1e-3, WeightDecay: 0.1, ClipNorm: 1,
			Schedule: optim.ScheduleConfig{WarmUp: 100, Decay: 2000, Floor: 0.1},
		},
	}}
}

// speedrun reaches nanoGPT's validation loss faster, with the same split and context. It uses newer methods: Muon
// (Jordan et al., 2024), rotary positions, RMSNorms, normalised queries and keys, and sub-layers with zero output at
// the start. For so few steps, a small model is best.
func speedrun(c *Config) {
	c.Model = layers.ModelConfig{
		Dim: 64, Layers: 2, NoBias: true, Positions: layers.Rotary{},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: 2, NoBias: true, QKNorm: true, OutputInit: layers.Zeros()},
			FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, NoBias: true, OutputInit: layers.Zeros()},
			Norm:        layers.NormConfig{Kind: "rms"},
		},
	}
	c.Data.Validation = rows.MaxValidation
	c.Training = Training{StepsPerEpoch: 450, Config: train.Config{
		BatchSize: 16, MicroBatches: 2, MaxEpochs: 1,
		Optimizer: optim.Config{
			Solver: optim.Muon{LearningRate: 0.05, Beta2: 0.95}, LearningRate: 0.02,
			Schedule: optim.ScheduleConfig{Kind: "linear", WarmUp: 10, Decay: 450},
		},
	}}
}

// encoderDecoder has the settings for learning pronunciations in docs/results.md. There, a deep encoder with a decoder
// of one block is as good as two blocks each, and faster. Small batches, gated feed-forwards and normalised queries and
// keys help most.
func encoderDecoder(c *Config, dim, encoder int, rate, dropout float64, epochs int) {
	c.Model = layers.ModelConfig{
		Dim: dim, Layers: encoder, Positions: layers.Rotary{},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: 4, QKNorm: true, NoBias: true},
			FeedForward: layers.FeedForwardConfig{Hidden: (dim*8/3 + 7) / 8 * 8, Activation: layers.SiLU, Gated: true, NoBias: true},
			Norm:        layers.NormConfig{Kind: "rms"}, Dropout: dropout,
		},
	}
	c.DecoderLayers = 1
	c.Training = Training{LabelSmoothing: 0.1, Config: train.Config{
		BatchSize: 64, MicroBatches: 2, MaxEpochs: epochs, Stopping: train.StoppingConfig{Monitor: "val_accuracy", Mode: "max"},
		Optimizer: optim.Config{
			Solver: optim.AdamW{Beta2: 0.98}, LearningRate: rate, WeightDecay: 0.01, ClipNorm: 1,
			Schedule: optim.ScheduleConfig{Kind: "linear", WarmUp: -1, Decay: -1},
		},
	}}
}
