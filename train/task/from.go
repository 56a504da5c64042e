package task

import (
	"cmp"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
)

// StartFrom makes New load initial weights from the folder dir, which has a run or a published model: see Open. It
// copies the Model, and the tokenizers if both tasks learn from files, so that symbols keep their ids. New leaves
// parameters that don't fit, such as the head for other labels, at new values. Task.Loaded lists them.
//
// For a published model, StartFrom also chooses settings of training that suit fine-tuning: few epochs, and a learning
// rate that depends on c.From.Tune, so set this first. If dir lacks weights of its model, also set c.From.Base first.
func (c *Config) StartFrom(dir string) error {
	k := kindOf(c.Task.Kind).about()
	from, _, err := model.ReadConfig(dir, c.From.Base, c.Task.Kind)
	if err != nil {
		return err
	}
	c.From = model.From{Dir: dir, Base: c.From.Base, Tune: c.From.Tune}
	c.Model, c.Head = from.Model, from.Head
	c.Model.Outputs = 0
	if c.From.Tune == "lora" {
		c.From.LowRank = layers.LowRank{Rank: 8, Alpha: 16, Joint: from.From.LowRank.Joint}
	}
	same := c.Task.Kind == from.Task.Kind
	if from.Published() {
		if c.Task.Sample != nil {
			return setting.Errorf("%s %s draws its own examples, and a published model learns from %s: choose a %s that learns from a file", setting.Path("task"), c.Task.Name, setting.Path("data.file"), setting.Path("task"))
		}
		c.Task.Published, c.Task.Source, c.Data.SourceUnits = from.Task.Published, from.Task.Source, tokenizer.Published
		c.Task.Published.Tabs = false
		c.Archive = from.Archive
		if k.format != nil && k.format.Sequences {
			c.Task.Target, c.Data.TargetUnits, c.DecoderLayers = from.Task.Target, tokenizer.Published, from.DecoderLayers
		}
		c.fineTune(k)
		return nil
	}
	c.Model.Vocab, c.Model.Segments = 0, 0
	if same {
		c.DecoderLayers = from.DecoderLayers
		c.Task.Mean, c.Task.Scale = from.Task.Mean, from.Task.Scale
	}
	if _, ok := c.Model.Positions.(layers.Learned); ok { // New chooses the number of positions
		c.Model.Positions = nil
	}
	if from.Task.Source == nil || c.Task.Sample != nil || k.symbols && !same {
		return nil
	}
	c.Task.Source, c.Data.SourceUnits = from.Task.Source, from.Data.SourceUnits
	if same {
		c.Task.Target, c.Data.TargetUnits = from.Task.Target, from.Data.TargetUnits
	}
	return nil
}

// fineTune sets the defaults for a model that begins as a published one. Narrow models need higher rates: the rates are
// usual ones at a width of 768. Training runs to the end of its schedule and keeps the last weights, because a few
// epochs hardly overfit, and the few validation rows of a small file choose badly. Only conversations, of which each
// has many validation targets, end earlier: see chatSet.stopping.
func (c *Config) fineTune(k facts) {
	t, narrow := &c.Training, 768/float64(max(1, c.Model.Dim))
	rate := min(5e-5*narrow*narrow, 3e-4)
	switch {
	case c.From.Tune == "lora":
		rate = min(1e-3*narrow, 3e-3)
	case strings.HasPrefix(c.From.Tune, "last:"):
		rate = min(1e-4*narrow*narrow, 1e-3)
	case k.fineRate > 0:
		rate = k.fineRate
	}
	t.Optimizer.Solver, t.Optimizer.LearningRate = optim.AdamW{}, rate
	t.LabelSmoothing, t.Stopping.KeepLast, t.Stopping.Patience = 0, true, 0
	t.BatchSize = cmp.Or(k.fineBatch, 16)
	if k.format == nil { // New chooses sizes for windows of a text, or for rows of conversations
		c.Task.MaxLen, c.Data.Validation = 0, 100
		t.BatchSize, t.StepsPerEpoch, t.MaxEpochs = 0, 0, -1
		t.Optimizer.Schedule.WarmUp, t.Optimizer.Schedule.Decay = -1, -1
		t.Stopping.Patience, t.Stopping.MinDelta = -1, -1
	}
}
