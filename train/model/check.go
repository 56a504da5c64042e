package model

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
)

// Check returns a *ConfigError if a setting is wrong. If decided is false, settings that task.New chooses from the rows
// of a file may still be 0 or negative.
func (c *Config) Check(decided bool) error {
	if c.Format != Format {
		return setting.Errorf("%s must be %d, got %d", setting.Path("format"), Format, c.Format)
	}
	if err := c.checkUnits(); err != nil {
		return err
	}
	one, longest := 1, Longest
	if c.Opened() {
		longest = math.MaxInt
	}
	if (c.FromRows() || c.Published()) && !decided {
		one = 0
	}
	m := &c.Model
	a, f := &m.Block.Attention, &m.Block.FeedForward
	if err := cmp.Or(
		setting.Between("task.max_len", c.Task.MaxLen, one, longest),
		setting.Between("task.max_answer", c.Task.MaxAnswer, 0, longest),
		setting.Between("model.dim", m.Dim, one, 1<<14),
		setting.Between("model.layers", m.Layers, one, 128),
		setting.Between("decoder_layers", c.DecoderLayers, 0, 128),
		setting.Between("model.block.feed_forward.hidden", f.Hidden, 0, 1<<16),
		setting.Between("model.block.attention.heads", a.Heads, one, 1<<10),
		setting.Between("model.block.attention.key_value_heads", a.KeyValueHeads, 0, 1<<10),
		setting.Between("model.block.attention.head_dim", a.HeadDim, 0, 1<<14),
		setting.Between("model.block.attention.value_dim", a.ValueDim, 0, 1<<14),
	); err != nil {
		return err
	}
	if l := a.Latent; l != nil {
		if err := cmp.Or(
			setting.Between("model.block.attention.latent.rank", l.Rank, 1, 1<<14),
			setting.Between("model.block.attention.latent.rotary_dim", l.RotaryDim, 1, 1<<14),
			setting.Between("model.block.attention.latent.query_rank", l.QueryRank, 0, 1<<14),
		); err != nil {
			return err
		}
	}
	if e := f.Experts; e != nil {
		if err := cmp.Or(setting.Between("model.block.feed_forward.experts", e.Count, 1, 1<<10), setting.Between("model.block.feed_forward.experts.shared", e.Shared, 0, 1<<16)); err != nil {
			return err
		}
	}
	if c.DecoderLayers > 0 && !c.about().decoder {
		return setting.Errorf("%s is for models with an encoder and a decoder, not for the task %s", setting.Path("decoder_layers"), c.Task.Name)
	}
	share := func(path setting.Path, x float64) error {
		return setting.In(path, x, x >= 0 && x < 1, "at least 0 and below 1")
	}
	if err := cmp.Or(
		share("model.dropout", m.Dropout),
		share("model.block.dropout", m.Block.Dropout),
		share("model.block.attention.dropout", a.Dropout),
		share("model.block.feed_forward.dropout", f.Dropout),
	); err != nil {
		return err
	}
	if _, whole := a.HeadWidth(m.Dim); !whole {
		return setting.Errorf("%s must be a multiple of %s, got %d and %d", setting.Path("model.dim"), setting.Path("model.block.attention.heads"), m.Dim, a.Heads)
	}
	return c.checkTune()
}

// checkUnits checks what tells how sources and answers are divided.
func (c *Config) checkUnits() error {
	d, k := &c.Data, c.about()
	switch {
	case d.TargetUnits != "" && k.answers == "":
		return setting.Errorf("%s %s can't have %s: its answers aren't split into units", setting.Path("task"), c.Task.Name, setting.Path("data.target_units"))
	case c.Task.Pairs && !k.pairs:
		return setting.Errorf("%s can't be set: a task of kind %s learns one text per row", setting.Path("task.pairs"), c.Task.Kind)
	case c.Mix && !c.hasLinear():
		return setting.Errorf("%s is for classification, regression and tagging with the rows of a file, also with several labels, not for the task %s", setting.Path("mix"), c.Task.Name)
	}
	for i, units := range []tokenizer.Units{d.SourceUnits, d.TargetUnits} {
		known := strings.Split([]string{k.units, k.answers}[i], ", ")
		if c.Published() && (i == 0 || k.decoder) {
			known = []string{string(tokenizer.Published)}
		}
		if units != "" && !slices.Contains(known, string(units)) {
			return setting.Errorf("%s must be one of %s for the task %s, got %q%s", []setting.Path{"data.source_units", "data.target_units"}[i], strings.Join(known, ", "), c.Task.Name, units, text.DidYouMean(string(units), known))
		}
	}
	return nil
}

// checkTune checks what From says besides its folders.
func (c *Config) checkTune() error {
	k, a := c.about(), &c.From.LowRank
	if err := cmp.Or(
		setting.Between("from.low_rank.rank", a.Rank, 0, 1<<14),
		setting.In("from.low_rank.alpha", a.Alpha, a.Alpha >= 0 && a.Alpha <= 1e6, "from 0 to 1e6"),
		setting.In("from.low_rank.dropout", a.Dropout, a.Dropout >= 0 && a.Dropout < 1, "at least 0 and below 1"),
	); err != nil {
		return err
	}
	switch blocks := c.tunedBlocks(); {
	case c.From.Dir == "" && c.From.SHA256 == "" && !runfolder.SameJSON(c.From, From{}):
		return setting.Errorf("%s, %s and %s need %s, the folder of a model", setting.Path("from.tune"), setting.Path("from.low_rank.rank"), setting.Path("from.base"), setting.Path("from"))
	case c.From.Tune != tuneLoRA && !runfolder.SameJSON(c.From.LowRank, layers.LowRank{}):
		return setting.Errorf("%s is only for %s %s", setting.Path("from.low_rank.rank"), setting.Path("from.tune"), tuneLoRA)
	case c.From.Tune == "" || c.From.Tune == tuneAll:
		return nil
	case c.tunesOwnWeights() && blocks < 1:
		return setting.Errorf("%s must be %s, %s, %s or last: with a number of blocks, such as last:2, got %.100q", setting.Path("from.tune"), tuneAll, tuneHead, tuneLoRA, c.From.Tune)
	case c.From.Tune == tuneLoRA && a.Rank == 0:
		return setting.Errorf("%s must be at least 1 for %s %s, got 0", setting.Path("from.low_rank.rank"), setting.Path("from.tune"), tuneLoRA)
	case blocks > 0 && c.Model.Layers > 0 && blocks > c.Model.Layers:
		return setting.Errorf("%s %s is for a model with at least %d blocks, got %d", setting.Path("from.tune"), c.From.Tune, blocks, c.Model.Layers)
	case blocks > 0 && c.Model.Shared > 0 && c.Model.Shared < c.Model.Layers:
		return setting.Errorf("%s %s is for a model whose blocks have weights of their own, and this one's share them: choose %s, %s or %s",
			setting.Path("from.tune"), c.From.Tune, tuneAll, tuneHead, tuneLoRA)
	case k.decoder && (c.From.Tune != tuneLoRA || !c.Published()):
		return setting.Errorf("%s must be %s for tasks of kind %s or, with a published model, %s", setting.Path("from.tune"), tuneAll, k.kind, tuneLoRA)
	case c.From.Tune == tuneHead && (k.vectors || k.causal):
		return setting.Errorf("%s %s is for models with a head of their own, not for kind %s: choose last:1 or %s", setting.Path("from.tune"), c.From.Tune, k.kind, tuneLoRA)
	}
	return nil
}

// Decide sets the model's settings that follow from the data. It returns an error if they already have other values.
func (c *Config) Decide(l data.Layout) error {
	m, length := &c.Model, max(l.Len, l.TargetLen)
	for _, n := range []struct {
		name  setting.Path
		field *int
		want  int
	}{{"model.vocab", &m.Vocab, l.Tokens}, {"model.outputs", &m.Outputs, l.Classes}, {"model.segments", &m.Segments, l.Segments}} {
		if c.Opened() || c.Published() && n.field != &m.Outputs { // the folder has said it
			continue
		}
		if *n.field = cmp.Or(*n.field, n.want); *n.field != n.want {
			return setting.Errorf("%s must be %d for this task, or 0 to choose it, got %d", n.name, n.want, *n.field)
		}
	}
	if m.Positions == nil {
		m.Positions = layers.Learned{MaxLen: length}
		if c.about().decoder || c.FromRows() {
			// Few sources are as long as the longest, so a Learned table's last positions would hardly be trained.
			// Rotary positions depend only on distances.
			m.Positions = layers.Rotary{}
		}
	}
	if p, ok := m.Positions.(layers.Learned); ok && p.MaxLen == 0 {
		p.MaxLen = length
		m.Positions = p
	}
	if p, ok := m.Positions.(layers.Learned); ok && (p.MaxLen < length || p.MaxLen > 2*Longest) {
		return setting.Errorf("%s must be from %d, the length of the task's sequences, to %d, got %d", setting.Path("model.positions.max_len"), length, 2*Longest, p.MaxLen)
	}
	return nil
}
