package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
)

// How OpenAs may keep a model's weights.
const (
	Float32Weights = "float32"
	Int8Weights    = "int8"
)

// Weights lists how weights may be kept.
var Weights = choices.Table[struct{}]{
	{Name: Float32Weights, About: "as they were trained"},
	{Name: Int8Weights, About: "rounded to 8 bits: a quarter of the memory and, with AVX-512 or AVX2, less time per token"},
}

// Errors about models that can't be opened.
var (
	ErrNoWeights = runfolder.ErrNoWeights         // no weights: the run ended before the end of its first epoch
	ErrFrom      = errors.New("can't start from") // wrapped with the folder that a run begins from, and the reason
)

// Open returns the trained model of a run folder. If the model learned your own rule, pass that rule. Without it, the
// model answers too, but the rule's Answer can't check inputs; and if the rule had a Spell or a Read, Open returns an
// error. Open compares the learned rule with the given rule of the same name, or with Heed's own. It returns an error
// if their data differ, or if only one of them has a Spell or a Read. It can't compare functions.
//
// The folder may come from someone else: Open checks config.json and the sizes of the weights before it allocates
// memory for the model. Tokenizers must be as tokenizer.ReadOwn expects them.
//
// With a matrix unit, the model keeps its weights also in packed form. See layers.Params.KeepPanels for the memory, and
// for what to do before your own code changes the weights.
//
// Open also opens the folder of a published model: package pretrained says which. The model generates text or
// classifies texts, as its head does, and otherwise embeds texts.
//
// If a run trained only a part of its parameters, such as a low-rank adapter, its folder has only those. Open then also
// reads the folder that the run began from, and compares its checksum. A relative path in the configuration begins in
// the current folder or, if that has no such folder, where it began in training, or in the run's folder or one above
// it. OpenBase is for another path. The same holds for an adapter for a published model, in the files of the library
// peft.
func Open(dir string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), "", Float32Weights, rules)
}

// OpenBase is like Open for a run that trained only a part of its parameters, or an adapter. The folder base has the
// model that they began from.
func OpenBase(dir, base string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), base, Float32Weights, rules)
}

// OpenAs is like OpenBase, and keeps the weights as the argument kept says: Float32Weights or Int8Weights. With
// Int8Weights, the model takes about a quarter of the memory. With AVX-512 or AVX2, a token of generated text also
// takes less time: see layers.Params.Quantize. Such a model answers, but can't be trained, saved, exported or
// explained. If base is empty, OpenAs is like Open.
func OpenAs(dir, base, kept string, rules ...data.Rule) (*Model, error) {
	return open(runfolder.At(dir), base, kept, rules)
}

// OpenFS is like Open for a folder that is the root of a file system, such as an embed.FS.
func OpenFS(fsys fs.FS, rules ...data.Rule) (*Model, error) {
	return open(runfolder.Folder{FS: fsys, Dir: "."}, "", Float32Weights, rules)
}

func open(f runfolder.Folder, base, kept string, rules []data.Rule) (*Model, error) {
	if _, err := Weights.Index("kind of weights", kept); err != nil {
		return nil, err
	}
	quantize := kept == Int8Weights
	m, err := openUnmerged(f, base, quantize, rules)
	if err == nil && m.adapter != nil {
		err = m.adapter.Merge(m.Params)
		m.adapter = nil
	}
	if err == nil && quantize {
		err = m.Params.Quantize()
		debug.FreeOSMemory() // the float32 weights
	}
	if err == nil {
		m.Params.KeepPanels(true)
	}
	return m, err
}

// openUnmerged is open for a model that keeps its adapter, if it has one. With quantize, loading makes the weights
// int8, unless something will be merged with them.
func openUnmerged(f runfolder.Folder, base string, quantize bool, rules []data.Rule) (*Model, error) {
	s, err := startOf(f, base, "")
	if err != nil {
		return nil, err
	}
	c, err := s.config(rules)
	if err != nil {
		return nil, err
	}
	if c.Published() && !c.about().rows { // training read shorter windows
		c.Task.MaxLen = c.Task.Published.MaxLen
	}
	wrong := func(err error) error { return fmt.Errorf("%s: %w", f.Path(runfolder.ConfigFile), err) }
	m, err := newModel(&c)
	if err != nil {
		return nil, wrong(err)
	}
	_, merges := s.(adapterStart)
	m.int8 = quantize && !merges && !c.Partial()
	if p, ok := s.(publishedStart); ok {
		p.int8 = m.int8
		s = p
	}
	values, err := s.values()
	if err != nil {
		return nil, err
	}
	// Compare sizes before allocating memory. Loading compares the shapes.
	if least := m.Config.leastParams(m.layout); least > float64(values) {
		return nil, wrong(fmt.Errorf("the model has at least %.3g parameters, which take %.3g GiB, but %s has only %d values",
			least, 4*least/(1<<30), runfolder.WeightsFile, values))
	}
	if m.Params, err = layers.NewParams(tensor.Float32, c.Seed); err == nil {
		if m.int8 {
			m.Params = m.Params.BlankInt8()
		} else {
			m.Params = m.Params.Blank()
		}
		err = m.build()
	}
	if err != nil {
		return nil, wrong(err)
	}
	if run, ok := s.(runStart); ok && c.Partial() {
		if _, err := m.loadFrom(); err != nil {
			return nil, run.baseError(err)
		}
	}
	return m, m.readStart(s)
}

// Load sets the parameters to the weights of a run folder. If the folder has no weights, the error wraps ErrNoWeights.
// Load also returns an error if the weights don't match the folder's config.json or, in a finished run, its
// summary.json. After an error, all parameters have their old values or, if an adapter doesn't fit, the values of its
// base.
func (m *Model) Load(dir string) error {
	s, err := startOf(runfolder.At(dir), "", "")
	if err == nil {
		err = m.readStart(s)
	}
	return err
}

// readStart reads the weights of a start, and what else the model needs.
func (m *Model) readStart(s start) error {
	m.sum = func() (string, error) { return sumOf(s, m.int8) }
	loaded, err := s.load(m.Trained(), nil)
	if err == nil {
		err = s.complete(m, loaded.Metadata)
	}
	return err
}

// sumOf returns a checksum of the files of a start that answers depend on.
func sumOf(s start, int8 bool) (string, error) {
	weights, err := s.sum()
	sums := []any{weights, int8}
	switch s := s.(type) {
	case runStart:
		sums = append(sums, s.id())
	case interface{ archive() ([]byte, error) }:
		files, failed := s.archive()
		sums, err = append(sums, runfolder.Sum(files)), cmp.Or(err, failed)
	}
	return runfolder.JSONSum(sums), err
}

// complete sets the published folder of the model, and its prompt.
func (s publishedStart) complete(m *Model, _ map[string]string) error {
	source, _ := m.Coder.Tokenizers()
	p, ok := source.(*tokenizer.Pipeline)
	if !ok {
		return errors.New("a published model needs a published tokenizer")
	}
	s.special = p.Special()
	s.model.End = slices.DeleteFunc(slices.Clone(s.model.End), func(id int) bool { return id >= min(source.Len(), m.layout.Tokens) })
	if m.published = &s; s.model.Thresholds != nil {
		m.Thresholds = s.model.Thresholds
	}
	return m.SetPrompt(s.model.Prompt)
}

// completePublished is complete for a model that began as a published one. For another model, it does nothing.
func (m *Model) completePublished() error {
	if !m.Config.Published() {
		return nil
	}
	s, err := openArchive(m.Config.Archive, m.Config.Task.Kind)
	if err == nil {
		err = s.complete(m, nil)
	}
	return err
}
