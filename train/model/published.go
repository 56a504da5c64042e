package model

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
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

// modulesFile is in folders that sentence-transformers wrote. It may say that the model is in a folder of its own. Then
// sentenceFile says how the model is used.
const (
	modulesFile  = "modules.json"
	sentenceFile = "config_sentence_transformers.json"
)

// A publishedStart is the folder of a published model.
type publishedStart struct {
	runfolder.Folder
	model   pretrained.Config
	special map[string]int // special tokens of the tokenizer; set by complete
	int8    bool           // the weights become int8 while they are loaded
}

// openPublished opens a published folder for models of a kind: see startOf.
func openPublished(f runfolder.Folder, kind data.Kind) (publishedStart, error) {
	c, err := readModel(f.FS, kind)
	if err == nil {
		c, err = c.Untied(f.FS)
	}
	s := publishedStart{Folder: f, model: c}
	if err == nil {
		err = s.suit(kind)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", f.Dir, err)
	}
	return s, nil
}

// readModel reads a published folder's configuration for models of a kind, which may have another head than the folder.
func readModel(fsys fs.FS, kind data.Kind) (pretrained.Config, error) {
	c, err := pretrained.ReadConfig(fsys)
	if wrong := (*pretrained.UnsupportedError)(nil); kind != "" && errors.As(err, &wrong) && wrong.Key == "architectures" {
		return pretrained.ReadStates(fsys)
	}
	return c, err
}

// suit changes the model for a kind of task. The head may change, and the blocks stay. An empty kind stands for what
// the folder is for; a model of masked tokens then embeds texts.
func (s *publishedStart) suit(kind data.Kind) error {
	m := &s.model
	if kind != "" { // another task learns other numbers and labels
		m.Sigmoid, m.Several, m.Thresholds = false, false, nil
	}
	if m.Head == "sequence" && m.AnswerStart < 0 {
		return errors.New("config.json or generation_config.json must have decoder_start_token_id or bos_token_id, which begins an answer")
	}
	if kind == "" && m.Head != "mask" {
		return nil
	}
	return headOf(kind).suit(m)
}

// folder returns the folder with the model and its tokenizer.
func (s publishedStart) folder() (fs.FS, error) { return fs.Sub(s.FS, s.model.Folder) }

// tokenizer opens the tokenizer.
func (s publishedStart) tokenizer() (*tokenizer.Pipeline, error) { return s.open(tokenizer.OpenFS) }

func (s publishedStart) open(open func(fs.FS) (*tokenizer.Pipeline, error)) (p *tokenizer.Pipeline, err error) {
	folder, err := s.folder()
	if err == nil {
		p, err = open(folder)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return p, err
}

// target opens the tokenizer of answers, in the language in which the model writes them.
func (s publishedStart) target() (*tokenizer.Pipeline, error) {
	p, err := s.open(tokenizer.OpenTarget)
	if err != nil {
		return nil, err
	}
	special := p.Special()
	for _, wanted := range append(slices.Clip(s.model.Search.ForceFirst), s.model.AnswerStart) {
		for name, id := range special {
			if id != wanted {
				continue
			}
			if known, err := p.WithLanguage(name); err == nil {
				return known, nil
			}
		}
	}
	return p, nil
}

// config returns a configuration of the kind whose head the model has. A model without a head embeds texts.
func (s publishedStart) config([]data.Rule) (Config, error) {
	source, err := s.tokenizer()
	if err != nil {
		return Config{}, err
	}
	m := s.model
	rule := data.Rule{Name: m.Type, Source: source, MaxLen: m.MaxLen, Published: data.Published{Tokens: m.Model.Vocab, Start: m.Start, Pad: m.Pad, Mask: maskID(source, m.Model.Vocab), Segments: m.Model.Segments, MaxLen: m.MaxLen, Tabs: true}}
	completeRule(&m, &rule)
	c := Config{Format: Format, Task: rule, Model: m.Model, Head: s.head()}
	if c.about().decoder {
		c.DecoderLayers = m.Sequence.DecoderLayers
		c.Task.Target, err = s.target()
	}
	if f := c.about(); f.aligned && f.answers != "" { // one tag per word, in files, too
		c.Data.SourceUnits, c.Data.TargetUnits = tokenizer.Published, tokenizer.Tokens
	}
	return c, err
}

// completeRule completes the rule of a published model with what its head is for.
func completeRule(m *pretrained.Config, r *data.Rule) {
	i := slices.IndexFunc(heads, func(h head) bool { return h.published(m, r) })
	r.Kind = heads[i].about().kind // the last accepts all
}

// PublishedTasks returns what published models are for: the ends of the names of their classes in config.json, and a
// configuration with the Kind and the About of a task, which Describe describes.
func PublishedTasks() iter.Seq2[string, Config] {
	return func(yield func(string, Config) bool) {
		for name, classes := range pretrained.Heads() {
			about := ""
			two := pretrained.Config{Head: name, Labels: []string{"a", "b"}, Sequence: &layers.EncoderDecoderConfig{}}
			several, number := two, two
			several.Several, number.Labels = true, two.Labels[:1]
			for _, m := range []pretrained.Config{two, several, number} { // which are the same for most heads
				c := Config{Task: data.Rule{Published: data.Published{Tokens: 1}}}
				if completeRule(&m, &c.Task); c.Task.About == about {
					continue
				}
				if about = c.Task.About; !yield(strings.Join(classes, ", "), c) {
					return
				}
			}
		}
	}
}

// head returns how the states of a text's tokens become one vector.
func (s publishedStart) head() HeadConfig {
	if c := s.model.Classifier; c != nil {
		return HeadConfig{Pooling: c.Pooling, Pad: c.Pad, Decoder: c.Decoder}
	}
	return HeadConfig{Pooling: s.model.Pooling, Dense: s.model.Dense, Normalize: s.model.Normalize}
}

// smallFiles returns the names of the folder's files besides its weights: config.json, the files of the tokenizer, and
// those that say how the model is used.
func (s publishedStart) smallFiles() (names []string, err error) {
	patterns := []string{modulesFile, sentenceFile, "*_Pooling/config.json", "*_Dense/config.json"}
	for _, name := range append(tokenizer.Files(), "generation_config.json", "chat_template.jinja", "chat_template.json", "sentence_*_config.json") {
		patterns = append(patterns, path.Join(s.model.Folder, name))
	}
	for _, pattern := range patterns {
		found, err := fs.Glob(s.FS, pattern)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// archive returns a zip file of the small files, for the folder of a run.
func (s publishedStart) archive() ([]byte, error) {
	names, err := s.smallFiles()
	var content bytes.Buffer
	w := zip.NewWriter(&content)
	for i := 0; i < len(names) && err == nil; i++ {
		var file []byte
		if file, err = s.Read(names[i], runfolder.MaxPublished); err != nil {
			err = fmt.Errorf("%s: %w", s.Path(names[i]), err)
			break
		}
		entry, failed := w.CreateHeader(&zip.FileHeader{Name: names[i]}) // stored, so that the bytes depend only on the files
		if err = failed; err == nil {
			_, err = entry.Write(file)
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil && content.Len() > runfolder.MaxPublished {
		err = fmt.Errorf("%s: the files besides the weights have %d bytes, and a run keeps at most %d", s.Dir, content.Len(), runfolder.MaxPublished)
	}
	return content.Bytes(), err
}

// openArchive opens the published folder in a run's archive for models of a kind. It has no weights.
func openArchive(content []byte, kind data.Kind) (publishedStart, error) {
	s := publishedStart{Folder: runfolder.Folder{Dir: runfolder.PublishedFile}}
	files, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err == nil {
		s.FS = files
		s.model, err = readModel(files, kind)
	}
	if err == nil {
		err = s.suit(kind)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", runfolder.PublishedFile, err)
	}
	return s, err
}

// maskID returns the id of a tokenizer's special token for masks, or -1 if there is none below vocab.
func maskID(t *tokenizer.Pipeline, vocab int) int {
	for _, name := range []string{"[MASK]", "<mask>"} {
		if id, ok := t.Special()[name]; ok && id < vocab {
			return id
		}
	}
	return -1
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
	if need := s.bytes(n); err == nil && need > memory.Free() {
		_, perToken := s.model.Memory(tensor.Float32)
		err = fmt.Errorf("%s needs %s of memory for its weights, and %s for each 1,000 tokens of a text, but only %s is free",
			s.Dir, text.Bytes(need), text.Bytes(memory.Product(1000, perToken)), text.Bytes(memory.Free()))
	}
	return n, err
}

// bytes returns the memory that n weights need while they are read.
func (s publishedStart) bytes(n int) int {
	whole, m := memory.Product(4, n), s.model.Model
	if !s.int8 {
		return whole
	}
	// A byte per weight, a float32 table of embeddings, and a matrix while it is read. Experts stay in float32.
	more, f := memory.Product(8, m.Vocab, m.EmbeddingWidth()), m.Block.FeedForward
	if f.Experts != nil {
		matrices := 2
		if f.Gated {
			matrices = 3
		}
		more += min(whole, memory.Product(3, m.Layers, matrices, m.Dim, f.Experts.Count, f.Hidden))
	}
	return min(whole, n) + min(whole, more)
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
	if l, err = s.model.Load(s.FS, p, drop); err != nil {
		err = fmt.Errorf("%s: %w", s.Dir, err)
	}
	return l, err
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
			err = fmt.Errorf("%s: %w", s.Dir, err)
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
	return tokenizer.ParseChatTemplate(name, names[0], names[1])
}
