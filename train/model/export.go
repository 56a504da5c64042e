package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// Export writes the model to a folder in the form of published models, which Open and other libraries read:
// config.json, model.safetensors with numbers of 32 bits, and the tokenizer. The folder must be empty or not exist yet.
//
// It can be a text model, or a model for tags of tokens, that computes the same as a model of a published architecture,
// up to rounding: see pretrained.Save. The settings of Defaults make such models, also with rotary positions, and so
// does the preset nanogpt. In other libraries, the tokenizer of a model for characters leaves out characters that the
// model doesn't know.
//
// A model that Open has opened from a published folder, or that began as one, is written as such a model, with copies
// of that folder's other files. Labels and numbers need a folder that already had a head for them. The temperature of a
// run's probabilities, or the unit of its numbers, becomes a part of the head. Tags of words become tags of pieces.
// Other libraries read a text as it is, not its words with spaces between them, so tags beside marks may differ.
//
// If a linear model has a share in the answers, only the network is exported, as UseNetwork would leave it,
// and Note tells so: the folder's answers differ.
//
// Export returns an error if no published architecture computes the same. It names the nearest one and the settings
// that differ. After an error, the folder is as before.
func (m *Model) Export(dir string) error {
	err := newFolder(dir, func() error {
		s, p, err := m.asPublished()
		switch {
		case err != nil:
			return err
		case m.published == nil:
			return m.export(dir, s.model, p)
		}
		return s.export(dir, p)
	})
	if err != nil {
		return fmt.Errorf("the model of the task %s can't be exported: %w", m.Config.Task.Name, err)
	}
	if weight := m.Mixture.Linear; weight > 0 && m.Note != nil {
		m.Note(fmt.Sprintf("only the network is exported, so its answers aren't as good: the run mixes them with a linear model's, which have the weight %.2g of 1", weight))
	}
	return nil
}

// newFolder makes the folder dir, which must be empty if it exists, and calls write. After an error, the folder is as
// before.
func newFolder(dir string, write func() error) error {
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return fmt.Errorf("%s isn't empty: it has %s; choose a new folder", dir, entries[0].Name())
	}
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return err
	}
	if err = os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err = write(); err == nil {
		return nil
	}
	entries, _ = os.ReadDir(dir)
	for _, e := range entries {
		os.RemoveAll(filepath.Join(dir, e.Name()))
	}
	if isNew {
		os.Remove(dir)
	}
	return err
}

// export writes a model that began with new weights.
func (m *Model) export(dir string, c pretrained.Config, p *layers.Params) error {
	if err := pretrained.Save(dir, c, p); err != nil {
		return err
	}
	source, _ := m.Coder.Tokenizers()
	var file bytes.Buffer
	if err := tokenizer.WritePublished(&file, source); err != nil {
		return err
	}
	settings := fmt.Sprintf(`{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": %d, "clean_up_tokenization_spaces": false}`+"\n", c.MaxLen)
	return cmp.Or(
		os.WriteFile(filepath.Join(dir, runfolder.TokenizerFile), file.Bytes(), 0o666),
		os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(settings), 0o666))
}

// asNew returns the settings of a model that began with new weights. They are complete for text.
func (m *Model) asNew() (s publishedStart, err error) {
	c := m.Config
	s.model = pretrained.Config{Head: "text", Causal: true, Model: c.Model, MaxLen: m.layout.Len, Start: -1, Pad: -1, Sampler: m.Sampler()}
	if p, ok := c.Model.Positions.(layers.Learned); ok {
		s.model.MaxLen = p.MaxLen
	}
	switch k := c.Task.Kind; {
	case k == data.KindText:
	case k == data.KindTagging && c.Data.SourceUnits == tokenizer.Tokens:
		s.model.Causal = false
	case k == data.KindTagging:
		err = fmt.Errorf("it tags %s with a vocabulary of its own, which published models don't: use --units tokens, or begin with a published model (--from)", c.Data.SourceUnits)
	default:
		err = fmt.Errorf("models of kind %s have no published equal unless they began as a published model", k)
	}
	return s, err
}

// asPublished returns the published model that computes the same as m, with its parameters.
func (m *Model) asPublished() (s publishedStart, p *layers.Params, err error) {
	c, factor, mean := m.Config, 1.0, 0.0
	if m.Mixture.Linear == 0 { // otherwise, the temperature belongs to the mixture
		factor /= cmp.Or(m.Mixture.Temperature, 1)
	}
	p = m.Params
	if m.published == nil {
		if s, err = m.asNew(); err != nil {
			return s, nil, err
		}
	} else if s = *m.published; c.Opened() {
		return s, p, nil
	}
	s.model.Model = c.Model
	if c.chats() { // it learned to end answers so
		if template, err := s.chatTemplate(""); err == nil {
			if id, ok := m.markID(template.End()); ok && !slices.Contains(s.model.End, id) {
				s.model.End = append(slices.Clip(s.model.End), id)
			}
		}
	}
	switch k := c.Task.Kind; {
	case m.adapter != nil:
		return s, p, errors.New("its adapter is still being trained: open the run, and export that model")
	case m.solvedTogether() != nil:
		return s, p, m.solvedTogether()
	case k == data.KindTagging:
		s.model.Head = "tags"
		if s.model.Labels, p, err = m.withoutUnknownTag(); err != nil {
			return s, p, err
		}
		s.model.Model.Outputs = len(s.model.Labels)
	case k == data.KindQA:
		s.model.Head = "spans"
	case k == data.KindClassification || k == data.KindMultiLabel || k == data.KindRegression:
		s.model.Thresholds = m.Thresholds
		if s.model.Labels = c.Task.Classes; k == data.KindRegression {
			s.model.Labels, factor, mean = []string{""}, cmp.Or(c.Task.Scale, 1), c.Task.Mean
		}
		classifier := c.classifier()
		s.model.Classifier = &classifier
	}
	if factor == 1 && mean == 0 {
		return s, p, nil
	}
	if mean != 0 && m.Params.Get("head.bias") == nil {
		return s, p, fmt.Errorf("the head of a %s has no bias, which would have to be the mean of the numbers, %g", s.model.Type, mean)
	}
	p, err = copied(p)
	for name, plus := range map[string]float64{"head.weight": 0, "head.bias": mean} {
		if q := p.Get(name); err == nil && q != nil {
			values := q.Value.Float32s()
			for i, x := range values {
				values[i] = float32(factor*float64(x) + plus)
			}
		}
	}
	return s, p, err
}

// copied returns a copy of float32 parameters.
func copied(p *layers.Params) (*layers.Params, error) {
	out, err := layers.NewParams(p.Dtype(), 0)
	for _, q := range p.All() {
		var same *layers.Param
		if err == nil {
			same, err = out.Blank().New(q.Name, layers.Init{}, q.Value.Shape()...)
		}
		if err == nil && copy(same.Value.Float32s(), q.Value.Float32s()) < q.Value.Shape().TotalSize() {
			err = fmt.Errorf("parameter %q has only int8 values: open the model with float32 weights", q.Name)
		}
	}
	return out, err
}

// export writes the model with the parameters p, and copies the folder's other files: those of the tokenizer, and those
// that say how texts become embeddings. A classifier's config.json says how its logits become scores; the files of
// modules may say otherwise, or that the model embeds texts.
func (s publishedStart) export(dir string, p *layers.Params) error {
	if err := pretrained.Save(filepath.Join(dir, filepath.FromSlash(s.model.Folder)), s.model, p); err != nil {
		return err
	}
	names, err := s.smallFiles()
	for _, name := range names {
		if s.model.Head != "states" && s.model.Head != "mask" && s.model.Folder == "." && (name == modulesFile || name == sentenceFile || strings.HasSuffix(path.Dir(name), "_Pooling") || strings.HasSuffix(path.Dir(name), "_Dense")) {
			continue
		}
		if base := path.Base(name); err == nil && name != path.Join(s.model.Folder, runfolder.ConfigFile) && base != "generation_config.json" {
			err = s.copyTo(filepath.Join(dir, filepath.FromSlash(name)), name)
		}
	}
	return err
}

func (s publishedStart) copyTo(target, name string) error {
	content, err := fs.ReadFile(s.FS, name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(target), 0o777)
	}
	if err == nil {
		err = os.WriteFile(target, content, 0o666)
	}
	return err
}

// ExportAdapter writes the adapter of a run with the Tune lora in the form of the library peft: adapter_config.json and
// adapter_model.safetensors. The run must have begun from a published model, at base or, if that is empty, where it
// was. It is the adapter of the network, also if the run's answers are mixed with those of a linear model. The folder
// out is as for Model.Export, and so is the error if the whole model has no published equal.
func ExportAdapter(dir, base, out string) error {
	m, err := openUnmerged(runfolder.At(dir), base, false, nil)
	switch {
	case err != nil:
		return err
	case m.adapter == nil:
		return fmt.Errorf("%s has no adapter: only runs with --tune %s have one", dir, tuneLoRA)
	}
	from := m.Config.From
	begun, err := startOf(runfolder.At(from.Dir), from.Base, m.Config.Task.Kind)
	if _, ok := begun.(publishedStart); !ok {
		return cmp.Or(err, fmt.Errorf("%s began from %s, which isn't a published model, so other libraries can't open its adapter: export the whole model", dir, from.Dir))
	}
	a, params := m.adapter, m.Params
	m.adapter, m.Params = nil, a.Params // the head is one of them
	s, own, err := m.asPublished()
	if err != nil {
		return err
	}
	a.Params = own
	return newFolder(out, func() error { return s.model.SaveAdapter(out, from.Dir, params, a) })
}
