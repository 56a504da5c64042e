package task

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// StartFrom makes New load initial weights from the run in the folder dir. It copies the run's Model, and its
// tokenizers if both tasks learn from files, so that symbols keep their ids. New leaves parameters that don't fit, such
// as the head for other labels, at new values. Task.Loaded lists them.
func (c *Config) StartFrom(dir string) error {
	from, err := ReadConfig(dir)
	if err != nil {
		return err
	}
	if from.opened() {
		return fmt.Errorf("%s is a published model, which can't be trained yet", dir)
	}
	c.From = From{Dir: dir}
	c.Model = from.Model
	c.Model.Vocab, c.Model.Outputs, c.Model.Segments = 0, 0, 0
	same := c.Task.Kind == from.Task.Kind
	if same {
		c.DecoderLayers = from.DecoderLayers
		c.Task.Mean, c.Task.Scale = from.Task.Mean, from.Task.Scale
	}
	if _, ok := c.Model.Positions.(layers.Learned); ok { // New chooses the number of positions
		c.Model.Positions = nil
	}
	if from.Task.Source == nil || c.Task.Sample != nil || kindOf(c.Task.Kind).about().aligned && !same {
		return nil
	}
	c.Task.Source, c.Data.SourceUnits = from.Task.Source, from.Data.SourceUnits
	if same {
		c.Task.Target, c.Data.TargetUnits = from.Task.Target, from.Data.TargetUnits
	}
	return nil
}

// loadFrom loads the weights of the configuration's From, as far as they fit. It sets the From's checksum, or compares
// it if it is already set.
func (m *Model) loadFrom() (layers.LoadReport, error) {
	loaded, err := m.loadFit()
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("it %w", ErrNoWeights)
	}
	if err != nil {
		err = fmt.Errorf("can't start from the run %s: %w", m.Config.From.Dir, err)
	}
	return loaded, err
}

func (m *Model) loadFit() (loaded layers.LoadReport, err error) {
	c := &m.Config
	s, err := startOf(runfolder.At(c.From.Dir))
	if err != nil {
		return loaded, err
	}
	from, err := s.config(nil)
	if err != nil {
		return loaded, err
	}
	sum, err := s.sum()
	if err != nil {
		return loaded, err
	}
	if c.From.SHA256 != "" && c.From.SHA256 != sum {
		return loaded, errors.New("its weights have changed since this run began: restore them")
	}
	c.From.SHA256 = sum
	// With other symbols, an embedding or a head doesn't fit, even if its shape is the same.
	mine, theirs := c.Data.Tokenizers, from.Data.Tokenizers
	sources := c.Task.Alphabet == from.Task.Alphabet && slices.Equal(mine[:min(1, len(mine))], theirs[:min(1, len(theirs))])
	targets := sources && slices.Equal(mine, theirs) && c.Task.Kind == from.Task.Kind && slices.Equal(c.Task.Classes, from.Task.Classes)
	loaded, err = s.load(m.Params, func(name string, shape []int) bool {
		p := m.Params.Get(name)
		ofTarget := strings.Contains("."+name, ".head.") || strings.HasPrefix(name, "decoder.embedding.")
		ofSource := strings.Contains("."+name, ".embedding.") && !ofTarget
		return p == nil || !slices.Equal(p.Value.Shape(), shape) || ofTarget && !targets || ofSource && !sources
	})
	if err == nil && len(loaded.Kept) == len(m.Params.All()) {
		err = errors.New("none of its weights fit this model")
	}
	return loaded, err
}
