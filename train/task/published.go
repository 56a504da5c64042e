package task

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// A publishedStart is the folder of a published model.
type publishedStart struct {
	runfolder.Folder
	model   pretrained.Config
	special map[string]int // special tokens of the tokenizer; set by complete
}

// folder returns the folder with the model and its tokenizer.
func (s publishedStart) folder() (fs.FS, error) { return fs.Sub(s.FS, s.model.Folder) }

// config returns a configuration of the kind that the model's head makes. A model without a head embeds texts.
func (s publishedStart) config([]data.Rule) (Config, error) {
	folder, err := s.folder()
	var source *tokenizer.Pipeline
	if err == nil {
		source, err = tokenizer.OpenFS(folder)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", s.Dir, err)
	}
	m := s.model
	rule := data.Rule{Name: m.Type, Source: source, MaxLen: m.MaxLen, Classes: m.Labels, Published: data.Published{Tokens: m.Model.Vocab, Start: m.Start, Pad: m.Pad, Segments: m.Model.Segments, MaxLen: m.MaxLen}}
	switch {
	case m.Head == "text":
		rule.Kind, rule.About = data.KindText, "the next token of a text"
	case m.Head == "classes" && len(m.Labels) == 1:
		rule.Kind, rule.About, rule.Classes = data.KindRegression, "a number for a text", nil
	case m.Head == "classes":
		rule.Kind, rule.About = data.KindClassification, "the label of a text"
	default:
		rule.Kind, rule.About = data.KindEmbed, "a vector of a text"
	}
	c := Config{Format: format, Task: rule, Model: m.Model, Head: HeadConfig{Pooling: m.Pooling, Normalize: m.Normalize}, Training: Defaults(data.Rule{Kind: data.KindText}).Training}
	if m.Classifier != nil {
		c.Head = HeadConfig{Pooling: m.Classifier.Pooling}
	}
	return c, nil
}

// files returns the names of the files with the weights.
func (s publishedStart) files() ([]string, error) {
	files, err := pretrained.Files(s.FS)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return files, err
}

func (s publishedStart) values() (n int, err error) {
	files, err := s.files()
	for _, name := range files {
		header, err := safetensors.OpenFS(s.FS, name)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", s.Dir, err)
		}
		header.Close()
		for _, e := range header.Entries {
			n += memory.Product(e.Shape...)
		}
	}
	if need := memory.Product(4, n); err == nil && need > memory.Free() {
		_, perToken := s.model.Memory(tensor.Float32)
		err = fmt.Errorf("%s needs %s of memory for its weights, and %s for each 1,000 tokens of a text, but only %s is free",
			s.Dir, text.Bytes(need), text.Bytes(memory.Product(1000, perToken)), text.Bytes(memory.Free()))
	}
	return n, err
}

func (s publishedStart) sum() (string, error) {
	files, err := s.files()
	sums := make([]string, len(files))
	for i, name := range files {
		if sums[i], err = s.Sum(name); err != nil {
			return "", err
		}
	}
	return runfolder.JSONSum(sums), err
}

func (s publishedStart) load(p *layers.Params, drop func(name string, shape []int) bool) (l layers.LoadReport, err error) {
	tensors, err := s.model.Tensors(p)
	if err != nil {
		return l, fmt.Errorf("%s: %w", s.Dir, err)
	}
	if drop != nil {
		tensors = slices.DeleteFunc(tensors, func(t layers.Tensor) bool {
			return slices.ContainsFunc(t.Params, func(name string) bool { return drop(name, p.Get(name).Value.Shape()) })
		})
	}
	files, err := s.files()
	if err != nil {
		return l, err
	}
	if l, err = p.LoadFS(s.FS, files, layers.LoadOptions{Tensors: tensors, Ignore: true, Partial: drop != nil}); err == nil && drop == nil {
		err = s.model.CheckUnused(l.Unused)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return l, err
}

func (s publishedStart) complete(m *Model, _ map[string]string) error {
	source, _ := m.coder.Tokenizers()
	s.special = source.Special()
	s.model.End = slices.DeleteFunc(slices.Clone(s.model.End), func(id int) bool { return id >= min(source.Len(), m.layout.Tokens) })
	m.published, m.temperature = &s, 1
	return m.SetPrompt(s.model.Prompt)
}

// chatTemplate returns the folder's chat template or, if the name isn't empty, the template with this name.
func (s publishedStart) chatTemplate(name string) (*tokenizer.ChatTemplate, error) {
	if name == "" {
		folder, err := s.folder()
		var t *tokenizer.ChatTemplate
		if err == nil {
			t, err = tokenizer.OpenChatTemplate(folder)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w; a template can be chosen by name: %s", s.Dir, err, strings.Join(tokenizer.ChatTemplates(), ", "))
		}
		return t, err
	}
	var names [2]string // of the tokens that begin and end a text
	for i, ids := range [][]int{{s.model.Start}, s.model.End} {
		for name, id := range s.special {
			if len(ids) > 0 && id == ids[0] {
				names[i] = name
			}
		}
	}
	return tokenizer.NamedChatTemplate(name, names[0], names[1])
}
