package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/linear/beside"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// Start prepares a model that New has made for training. It loads the weights of the configuration's From, if it has
// one, as far as they fit, and freezes what its Tune doesn't train. It sets the From's checksum, or compares it if it
// is already set. For a model that begins as a published one, it also reads what the model needs to answer.
//
// If the weights can't be loaded, but a checkpoint of the run may have all of them, unstarted says why.
func (m *Model) Start() (loaded layers.LoadReport, unstarted, err error) {
	if from := m.Config.From; from.Dir != "" {
		loaded, unstarted = m.loadFrom()
		if unstarted != nil && (from.SHA256 == "" || m.Config.Partial()) {
			return loaded, nil, unstarted
		}
	}
	return loaded, unstarted, m.completePublished()
}

// loadFrom loads the weights of the From, and freezes parameters: see Start.
func (m *Model) loadFrom() (layers.LoadReport, error) {
	loaded, err := m.loadFit()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoWeights) {
		err = fmt.Errorf("it %w", ErrNoWeights)
	}
	if err != nil {
		return loaded, fmt.Errorf("%w %s: %w", ErrFrom, m.Config.From.Dir, err)
	}
	return loaded, m.tune(loaded.Kept)
}

func (m *Model) loadFit() (loaded layers.LoadReport, err error) {
	c := m.Config
	s, err := startOf(runfolder.At(c.From.Dir), c.From.Base, c.Task.Kind)
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
		return loaded, errChanged
	}
	if c.From.SHA256 == "" {
		c.From.Absolute.Dir, c.From.Absolute.Base = absolute(c.From.Dir), absolute(c.From.Base)
	}
	c.From.SHA256 = sum
	// With other symbols, an embedding or a head doesn't fit, even if its shape is the same.
	mine, theirs := c.Data.Tokenizers, from.Data.Tokenizers
	sources := c.Published() || c.Task.Alphabet == from.Task.Alphabet && slices.Equal(mine[:min(1, len(mine))], theirs[:min(1, len(theirs))])
	targets := sources && (from.Opened() || slices.Equal(mine, theirs)) && c.Task.Kind == from.Task.Kind && slices.Equal(c.Task.Classes, from.Task.Classes)
	loaded, err = s.load(m.Params, func(name string, shape []int) bool {
		p := m.Params.Get(name)
		ofTarget := strings.Contains("."+name, ".head.") || strings.HasPrefix(name, "decoder.embedding.")
		ofSource := strings.Contains("."+name, ".embedding.") && !ofTarget
		return p == nil || !slices.Equal(p.Value.Shape(), shape) || ofTarget && !targets || ofSource && !sources
	})
	if p, ok := s.(publishedStart); ok && err == nil && p.model.Head == "tags" && c.Task.Target != nil {
		err = m.loadTags(p, &loaded)
	}
	if err == nil && len(loaded.Kept) == len(m.Params.All()) {
		err = errors.New("none of its weights fit this model")
	}
	return loaded, err
}

// Features returns the function that makes the vectors of texts that a linear model reads: what the head of the network
// read when training began. If only a head is trained, the network still makes them.
func (m *Model) Features() (beside.Vectors, error) {
	if m.Config.Solved() {
		return m.textVectors, nil
	}
	c := *m.Config
	c.From.Tune, c.From.LowRank = "", layers.LowRank{}
	b, err := newModel(&c)
	if err == nil {
		err = b.build()
	}
	if err == nil {
		_, err = b.loadFrom()
	}
	if err == nil && m.int8 {
		err = b.Params.Quantize()
	}
	if err != nil {
		return nil, err
	}
	return b.textVectors, nil
}

// tune freezes the parameters that the run doesn't train, or makes the adapter. The argument fresh lists the parameters
// that weren't loaded.
func (m *Model) tune(fresh []string) (err error) {
	c := m.Config
	if !c.Partial() {
		return nil
	}
	scopes := []string{"head", "transform"}
	if c.Solved() {
		scopes = scopes[:1]
	}
	part, blocks := "encoder.", c.Model.Layers // the part with the last blocks
	if d := c.Head.Decoder; d != nil {
		part, blocks = "decoder.", cmp.Or(d.Layers, blocks)
	}
	if n := c.tunedBlocks(); n > 0 {
		scopes = append(scopes, "norm")
		for i := blocks - n; i < blocks; i++ {
			scopes = append(scopes, fmt.Sprintf("blocks.%d", i))
		}
	}
	var trained []string
	for _, q := range m.Params.All() {
		name := strings.TrimPrefix(q.Name, part)
		if slices.Contains(fresh, q.Name) || slices.ContainsFunc(scopes, func(scope string) bool { return strings.HasPrefix(name, scope+".") }) {
			trained = append(trained, q.Name)
			continue
		}
		q.Frozen = true
	}
	if c.From.Tune == tuneLoRA {
		adapter := c.From.LowRank
		if !c.about().causal { // the head of a language model belongs to the base
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

// absolute returns the absolute path of a relative one, and otherwise "".
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil && path != "" && !filepath.IsAbs(path) {
		return whole
	}
	return ""
}

// found returns f with the paths of folders, as seen by the run or adapter in a folder: see find.
func (f From) found(folder string) From {
	f.Dir, f.Base = find(f.Dir, f.Absolute.Dir, folder), find(f.Base, f.Absolute.Base, folder)
	return f
}

// find returns the path of the folder that another folder names by a path, and perhaps by its absolute path. A relative
// path begins in the current folder or, if that has no such folder, in the other folder or in one above it. At last,
// the two folders may lie side by side. If no such folder exists, find returns path.
func find(path, absolute, other string) string {
	places := []string{path, absolute}
	if other, err := filepath.Abs(other); err == nil {
		for up := other; !filepath.IsAbs(path); up = filepath.Dir(up) {
			places = append(places, filepath.Join(up, path))
			if up == filepath.Dir(up) {
				break
			}
		}
		places = append(places, filepath.Join(filepath.Dir(other), filepath.Base(path)))
	}
	for _, place := range places {
		if info, err := os.Stat(place); path != "" && err == nil && info.IsDir() {
			return place
		}
	}
	return path
}
