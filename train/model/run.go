package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// A runStart is a run folder.
type runStart struct {
	runfolder.Folder
	saved    Config          // unchecked
	training json.RawMessage // unchecked; see config.json
	kind     data.Kind       // of the task that begins from the run; empty for the run itself
}

func (s runStart) config(rules []data.Rule) (Config, error) {
	c := s.saved
	err := c.Check(true)
	if err == nil {
		err = c.readTokenizers(s.Folder)
	}
	if err == nil {
		_, err = data.NewCoder(c.Task)
	}
	if err == nil {
		err = c.complete(rules)
	}
	if err == nil && c.Published() && s.kind != "" && s.kind != c.Task.Kind {
		var model publishedStart
		if model, err = openArchive(c.Archive, s.kind); err == nil {
			c.Model, c.Head = model.model.Model, model.head()
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: restore it", err)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", s.Path(runfolder.ConfigFile), err)
	}
	return c, nil
}

func (s runStart) id() string { return RunID(s.saved, s.training) }

func (s runStart) values() (n int, err error) {
	if s.saved.Partial() { // the base has the others
		base, err := startOf(runfolder.At(s.saved.From.Dir), s.saved.From.Base, s.saved.Task.Kind)
		if run, ok := base.(runStart); ok && run.saved.Partial() && err == nil { // with the right sums, there is no cycle of bases
			if sum, failed := base.sum(); failed != nil || sum != s.saved.From.SHA256 {
				err = cmp.Or(failed, errChanged)
			}
		}
		if err == nil {
			n, err = base.values()
		}
		if err != nil {
			return 0, s.baseError(err)
		}
	}
	header, err := s.Header()
	if err != nil {
		return 0, err
	}
	for _, e := range header.Entries {
		n += memory.Product(e.Shape...)
	}
	return n, nil
}

func (s runStart) sum() (string, error) {
	if !s.Has(runfolder.WeightsFile) {
		_, err := s.Header() // which says why there are none
		return "", err
	}
	sum, err := s.Sum(runfolder.WeightsFile)
	if s.saved.Partial() {
		sum = runfolder.JSONSum([]string{sum, s.saved.From.SHA256})
	}
	return sum, err
}

// complete sets the mixture, the thresholds and the baseline. There may be no baseline if the model doesn't need it.
func (s runStart) complete(m *Model, metadata map[string]string) (err error) {
	m.Mixture, err = logit.ReadMixture(metadata)
	if err == nil {
		err = m.readThresholds(metadata)
	}
	if err == nil {
		err = m.completePublished()
	}
	if err != nil {
		return err
	}
	m.Linear, err = s.saved.ReadLinear(s.Folder, s.id())
	switch {
	case errors.Is(err, fs.ErrNotExist) && m.Mixture.Linear > 0:
		return s.Missing(runfolder.BaselineFile, runfolder.WeightsFile)
	case errors.Is(err, fs.ErrNotExist):
		m.NoLinear = s.Lacks(runfolder.BaselineFile)
		return nil
	case err != nil || m.Linear.Width() == 0:
		return err
	}
	if m.Linear.Vectors, err = m.Features(); err != nil {
		return s.baseError(err)
	}
	return nil
}

func (s runStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	header, err := s.CheckedHeader(s.id())
	if err != nil {
		return l, err
	}
	var o layers.LoadOptions
	if drop != nil && s.saved.Partial() {
		return s.copy(p, drop)
	}
	if drop != nil {
		names := map[string]string{} // of our parameters, by their names in the file
		for _, e := range header.Entries {
			if name := nameIn(p, e.Name); !drop(name, e.Shape) {
				names[e.Name] = name
				o.Tensors = append(o.Tensors, layers.Tensor{Names: []string{e.Name}, Params: []string{name}})
			}
		}
		o.Partial, o.Ignore, o.Drop = true, true, func(name string) bool { return names[name] == "" }
	}
	l, err = p.LoadFS(s.FS, []string{runfolder.WeightsFile}, o)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return l, err
}

// baseError explains an error about the folder that the run began from.
func (s runStart) baseError(err error) error {
	return fmt.Errorf("%s needs the model that it began from: %w; if that model has moved, say where it is with --base, or in Go with model.OpenBase", s.Dir, err)
}

// copy is load for a run whose file lacks the weights that it didn't train.
func (s runStart) copy(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	m, err := open(s.Folder, s.saved.From.Dir, Float32Weights, nil)
	if err != nil {
		return l, err
	}
	loaded := map[string]bool{}
	for _, q := range m.Params.All() {
		name := nameIn(p, q.Name)
		if drop(name, q.Value.Shape()) {
			l.Unused = append(l.Unused, q.Name)
		} else if loaded[name] = true; err == nil {
			err = tensor.Copy(p.Get(name).Value, q.Value)
		}
	}
	for _, q := range p.All() {
		if !loaded[q.Name] {
			l.Kept = append(l.Kept, q.Name)
		}
	}
	return l, err
}

// nameIn returns the name in p of a parameter of another model. Models with one answer per text have a scope encoder,
// which others with the same blocks lack.
func nameIn(p *layers.Params, name string) string {
	const scope = "encoder."
	if p.Get(name) == nil && p.Get(scope+name) != nil {
		return scope + name
	}
	if without := strings.TrimPrefix(name, scope); p.Get(name) == nil && p.Get(without) != nil {
		return without
	}
	return name
}

var errChanged = errors.New("its weights have changed since this run began: restore them")
