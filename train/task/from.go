package task

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/layers"
)

// From is a run whose weights another one begins with.
type From struct {
	Dir    string `json:"dir"`              // its folder; empty for new weights
	SHA256 string `json:"sha256,omitempty"` // of its weights, to tell if they change; New finds it
}

// StartFrom has New begin with the weights of the run in a folder, of a model of the same shape: it takes that run's
// Model and, where both learn files, its tokenizers, so that its symbols keep their ids. What doesn't fit, such
// as the head of other labels, New leaves new, and Task.Loaded lists.
func (c *Config) StartFrom(dir string) error {
	from, err := ReadConfig(dir)
	if err != nil {
		return err
	}
	c.From = From{Dir: dir}
	c.Model = from.Model
	c.Model.Vocab, c.Model.Outputs = 0, 0
	if c.Task.Kind == from.Task.Kind {
		c.DecoderLayers = from.DecoderLayers
	}
	if _, ok := c.Model.Positions.(layers.Learned); ok { // as many as the data need
		c.Model.Positions = nil
	}
	same := c.Task.Kind == from.Task.Kind
	if from.Task.Source == nil || c.Task.Sample != nil || kindOf(c.Task.Kind).about().aligned && !same {
		return nil
	}
	c.Task.Source, c.Data.SourceUnits = from.Task.Source, from.Data.SourceUnits
	if same {
		c.Task.Target, c.Data.TargetUnits = from.Task.Target, from.Data.TargetUnits
	}
	return nil
}

// start sets the parameters to the weights of the configuration's From, as far as they fit, and finds or checks their
// sum.
func (m *Model) start() (layers.Loaded, error) {
	dir := m.Config.From.Dir
	loaded, err := m.startFrom(filepath.Join(dir, WeightsFile))
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("it %w", ErrNoWeights)
	}
	if err != nil {
		err = fmt.Errorf("the run %s to start from: %w", dir, err)
	}
	return loaded, err
}

func (m *Model) startFrom(path string) (layers.Loaded, error) {
	c := &m.Config
	from, err := ReadConfig(c.From.Dir)
	if err != nil {
		return layers.Loaded{}, err
	}
	sum, err := fileSum(path)
	if err != nil {
		return layers.Loaded{}, err
	}
	if c.From.SHA256 != "" && c.From.SHA256 != sum {
		return layers.Loaded{}, errors.New("its weights have changed since this run began: restore them")
	}
	c.From.SHA256 = sum
	header, err := weightsOf(os.DirFS(c.From.Dir), c.From.Dir, from)
	if err != nil {
		return layers.Loaded{}, err
	}
	shapes := map[string][]int{}
	for _, e := range header.Entries {
		shapes[e.Name] = e.Shape
	}
	// Rows of a table are of other symbols, where the shape may still be the same.
	mine, theirs := c.Data.Tokenizers, from.Data.Tokenizers
	sources := c.Task.Alphabet == from.Task.Alphabet && slices.Equal(mine[:min(1, len(mine))], theirs[:min(1, len(theirs))])
	targets := sources && slices.Equal(mine, theirs) && c.Task.Kind == from.Task.Kind && slices.Equal(c.Task.Classes, from.Task.Classes)
	loaded, err := m.Params.Load(path, layers.LoadOptions{Partial: true, Ignore: true, Drop: func(name string) bool {
		q := m.Params.Get(name)
		ofTarget := strings.Contains("."+name, ".head.") || strings.HasPrefix(name, "decoder.embedding.")
		ofSource := strings.Contains("."+name, ".embedding.") && !ofTarget
		return q == nil || !slices.Equal(q.Value.Shape(), shapes[name]) || ofTarget && !targets || ofSource && !sources
	}})
	if err == nil && len(loaded.Kept) == len(m.Params.All()) {
		err = errors.New("nothing of its model fits this one")
	}
	return loaded, err
}
