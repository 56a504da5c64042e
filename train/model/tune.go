package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
)

// Values of Config.Tune besides "last:" with a number.
const (
	TuneAll  = "all"
	TuneHead = "head"
	TuneLoRA = "lora"
)

// TunedBlocks returns the number of blocks that a Tune of last:N trains, or 0 for another Tune.
func (c *Config) TunedBlocks() int {
	text, _ := strings.CutPrefix(c.Tune, "last:")
	n, _ := strconv.Atoi(text)
	return n
}

// Solved reports whether the run only solves a head.
func (c *Config) Solved() bool { return c.Tune == TuneHead && c.HasLinear() }

// TunesOwnWeights reports whether the run trains weights of blocks, and not only a head or an adapter.
func (c *Config) TunesOwnWeights() bool { return c.Tune != TuneHead && c.Tune != TuneLoRA }

// Partial reports whether the run trains only a part of the parameters. From has the rest.
func (c *Config) Partial() bool { return c.Tune != "" && c.Tune != TuneAll }

// checkTune checks Tune and LowRank.
func (c *Config) checkTune() error {
	k, a := KindOf(c.Task.Kind), &c.LowRank
	if err := cmp.Or(
		setting.Between("low_rank.rank", a.Rank, 0, 1<<14),
		setting.In("low_rank.alpha", a.Alpha, a.Alpha >= 0 && a.Alpha <= 1e6, "from 0 to 1e6"),
		setting.In("low_rank.dropout", a.Dropout, a.Dropout >= 0 && a.Dropout < 1, "at least 0 and below 1"),
	); err != nil {
		return err
	}
	switch blocks := c.TunedBlocks(); {
	case c.From.Base != "" && c.From.Dir == "":
		return setting.Errorf("%s needs %s, the folder that lacks weights", setting.Path("from.base"), setting.Path("from"))
	case c.Tune != TuneLoRA && !Same(c.LowRank, layers.LowRank{}):
		return setting.Errorf("%s is only for %s %s", setting.Path("low_rank.rank"), setting.Path("tune"), TuneLoRA)
	case c.Tune == "" || c.Tune == TuneAll:
		return nil
	case c.TunesOwnWeights() && blocks < 1:
		return setting.Errorf("%s must be %s, %s, %s or last: with a number of blocks, such as last:2, got %.100q", setting.Path("tune"), TuneAll, TuneHead, TuneLoRA, c.Tune)
	case c.From.Dir == "" && c.From.SHA256 == "":
		return setting.Errorf("%s %s needs %s, the model of which a part is trained", setting.Path("tune"), c.Tune, setting.Path("from"))
	case c.Tune == TuneLoRA && a.Rank == 0:
		return setting.Errorf("%s must be at least 1 for %s %s, got 0", setting.Path("low_rank.rank"), setting.Path("tune"), TuneLoRA)
	case blocks > 0 && c.Model.Layers > 0 && blocks > c.Model.Layers:
		return setting.Errorf("%s %s is for a model with at least %d blocks, got %d", setting.Path("tune"), c.Tune, blocks, c.Model.Layers)
	case k.Sequences:
		return setting.Errorf("%s must be %s for tasks of kind %s", setting.Path("tune"), TuneAll, k.Name)
	case c.Tune == TuneHead && (k.Embeds || k.Generates):
		return setting.Errorf("%s %s is for models with a head of their own, not for kind %s: choose last:1 or %s", setting.Path("tune"), c.Tune, k.Name, TuneLoRA)
	}
	return nil
}

// Tune freezes the parameters that the run doesn't train, or makes the adapter. The argument fresh lists the parameters
// that weren't loaded.
func (m *Model) Tune(fresh []string) (err error) {
	c := &m.Config
	if !c.Partial() {
		return nil
	}
	scopes := []string{"head", "transform"}
	if c.Solved() {
		scopes = scopes[:1]
	}
	if n := c.TunedBlocks(); n > 0 {
		scopes = append(scopes, "norm")
		for i := c.Model.Layers - n; i < c.Model.Layers; i++ {
			scopes = append(scopes, fmt.Sprintf("blocks.%d", i))
		}
	}
	var trained []string
	for _, q := range m.Params.All() {
		name := strings.TrimPrefix(q.Name, "encoder.")
		if slices.Contains(fresh, q.Name) || slices.ContainsFunc(scopes, func(scope string) bool { return strings.HasPrefix(name, scope+".") }) {
			trained = append(trained, q.Name)
			continue
		}
		q.Frozen = true
	}
	if c.Tune == TuneLoRA {
		adapter := c.LowRank
		if !c.Kind().Generates { // the head of a language model belongs to the base
			adapter.Whole = append(slices.Clip(adapter.Whole), trained...)
		}
		m.adapter, err = layers.NewAdapter(m.Params, adapter, c.Seed)
		return err
	}
	if len(trained) == 0 {
		return errors.New("the model has no parameter that would be trained")
	}
	return nil
}

// DescribeParams returns the number of the model's parameters in words, and how many of them training changes if it
// doesn't change all. An adapter's are not among the model's.
func (m *Model) DescribeParams() string {
	s := fmt.Sprintf("%d parameters", m.Params.Count())
	if m.Config.Partial() {
		s += fmt.Sprintf(", %d trained", m.Trained().Count())
	}
	return s
}

// Trained returns the parameters that the run trains and saves.
func (m *Model) Trained() *layers.Params {
	if m.adapter != nil {
		return m.adapter.Params
	}
	return m.Params.Unfrozen()
}

// Joint returns the LowRank.Joint of an adapter for the published model that the run begins from.
func (c *Config) Joint() ([][]string, error) {
	s, err := openArchive(c.Archive, c.Task.Kind)
	return s.model.Joint(), err
}
