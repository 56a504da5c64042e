package pretrained

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// A Model is a published model with its parameters. One of Decoder (Head "text"), Classifier (Head "classes"),
// Sequence (Head "sequence") and Encoder (other Heads) is not nil. With Causal, the attention of an Encoder or a
// Classifier has a window that hides later tokens.
type Model struct {
	Config
	Params     *layers.Params
	Decoder    *layers.Decoder
	Encoder    *layers.Encoder
	Classifier *layers.SequenceClassifier
	Sequence   *layers.EncoderDecoder // hides Config.Sequence
	Dense      *layers.Linear         // without the activation of Config.Dense, which it hides; nil for none
	Ignored    []string               // tensors in the files that hold no parameter of the model
}

// Open opens a published folder: it reads config.json and other settings, and makes the model with the weights of the
// folder's safetensors files. The dtype, tensor.Float32 or tensor.Float64, is that of the parameters.
//
// Open returns an *UnsupportedError if a setting can't be honoured. It also returns an error if a file is missing or
// malformed, if the weights don't fit config.json, or if the machine has too little memory; then it hasn't allocated
// any for weights.
func Open(dir string, dtype tensor.Dtype) (*Model, error) {
	m, err := OpenFS(os.DirFS(dir), dtype)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, nil
}

// OpenFS is like Open for the root folder of fsys.
func OpenFS(fsys fs.FS, dtype tensor.Dtype) (*Model, error) {
	c, err := ReadConfig(fsys)
	if err != nil {
		return nil, err
	}
	return c.Open(fsys, dtype)
}

// Open makes the model with the weights of the folder from which ReadConfig read c. It is for a Config that was
// changed, for example by States. See Load for errors about the weights.
func (c Config) Open(fsys fs.FS, dtype tensor.Dtype) (*Model, error) {
	files, err := Files(fsys)
	if err != nil {
		return nil, err
	}
	if c, err = c.Untied(fsys); err != nil {
		return nil, err
	}
	if err := c.check(fsys, files, dtype); err != nil {
		return nil, err
	}
	p, err := layers.NewParams(dtype, 0)
	if err != nil {
		return nil, err
	}
	m := &Model{Config: c, Params: p}
	switch c.Head {
	case "text":
		m.Decoder, err = layers.NewDecoder(p.Blank(), c.Model)
	case "classes":
		m.Classifier, err = layers.NewSequenceClassifier(p.Blank(), *c.Classifier)
	case "sequence":
		m.Sequence, err = layers.NewEncoderDecoder(p.Blank(), c.pair())
	default:
		m.Encoder, err = layers.NewEncoder(p.Blank(), c.Model)
	}
	if d := c.Dense; d != nil && err == nil {
		m.Dense, err = layers.NewLinear(p.Blank().Scope("dense"), c.Model.Dim, d.Width, layers.LinearConfig{NoBias: d.NoBias})
	}
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	report, err := c.Load(fsys, p, nil)
	if err != nil {
		return nil, err
	}
	m.Ignored = report.Unused
	return m, nil
}

// Load loads the weights of the folder from which ReadConfig read c into the parameters p of the model. Parameters for
// which drop, unless it is nil, returns true keep their values. Load returns an error if the weights don't fit, or if
// there are weights in front of the head that c has no layer for. Parameters without blocks, such as a head's, may be
// loaded alone.
func (c Config) Load(fsys fs.FS, p *layers.Params, drop func(name string, shape []int) bool) (report layers.LoadReport, err error) {
	files, err := Files(fsys)
	if err != nil {
		return report, err
	}
	table, err := c.tensors(p)
	if err != nil {
		return report, err
	}
	if drop != nil {
		table = slices.DeleteFunc(table, func(t layers.Tensor) bool {
			return slices.ContainsFunc(t.Params, func(name string) bool { return drop(name, p.Get(name).Value.Shape()) })
		})
	}
	if report, err = p.LoadFS(fsys, files, layers.LoadOptions{Tensors: table, Ignore: true, Partial: drop != nil}); err != nil {
		return report, err
	}
	if !slices.ContainsFunc(p.All(), func(q *layers.Param) bool { return strings.Contains(q.Name, "blocks.") }) {
		return report, nil
	}
	return report, c.checkUnused(report.Unused)
}

// Untied returns c or, if the files of a tied model have weights of the head that differ from the embeddings, the
// configuration of the model with these weights, which the reference library then uses.
func (c Config) Untied(fsys fs.FS) (Config, error) {
	a, err := architectureOf(c.Type)
	if !c.Model.Tied && c.Sequence == nil || err != nil {
		return c, err
	}
	place, table := map[string]int{}, "embedding " // 1 for the embeddings, 2 for the head
	if c.Sequence != nil && !c.Sequence.Shared {
		table = "decoder.embedding "
	}
	for _, line := range a.names {
		if names, ok := strings.CutPrefix(line, table); ok {
			for theirs := range strings.SplitSeq(names, "|") {
				place[a.prefix+theirs+".weight"], place[theirs+".weight"] = 1, 1
			}
		}
	}
	if c.Model.Tied {
		for _, name := range a.headNames(c.Head) {
			place[name] = 2
		}
	}
	files, err := Files(fsys)
	if err != nil {
		return c, err
	}
	var found [3]int
	opened := make([]*safetensors.File, len(files))
	for i, file := range files {
		if opened[i], err = safetensors.OpenFS(fsys, file); err != nil {
			return c, err
		}
		defer opened[i].Close()
		for _, e := range opened[i].Entries {
			found[place[e.Name]]++
		}
	}
	if found[1] < 2 && found[1]*found[2] == 0 {
		return c, nil
	}
	var hash maphash.Hash
	var sums [3]uint64
	for i, f := range opened {
		f.SkipChecksum()
		err := f.Each(func(name string) bool { return place[name] > 0 }, func(e safetensors.Entry, r io.Reader) error {
			hash.Reset()
			_, err := io.Copy(&hash, r)
			sum := &sums[place[e.Name]]
			if one := hash.Sum64(); err == nil && *sum != 0 && *sum != one {
				err = fmt.Errorf("%.100q differs from another table of embeddings, but config.json says that there is one table", e.Name)
			} else {
				*sum = one
			}
			return err
		})
		if err != nil {
			return c, fmt.Errorf("%s: %w", files[i], err)
		}
	}
	if found[2] > 0 && sums[1] != sums[2] {
		c.Model.Tied, c.Model.NoBias, c.Model.TiedBias = false, !c.Model.TiedBias, false
	}
	return c, nil
}

// check compares the configuration with the headers of the files and with the machine's memory.
func (c Config) check(fsys fs.FS, files []string, dtype tensor.Dtype) error {
	tensors, numbers := 0, 0
	a, err := architectureOf(c.Type)
	if err != nil {
		return err
	}
	h, _ := heads.Get(c.Head)
	names, headless := a.headNames(c.Head), h.vocab && !c.Model.Tied
	for _, file := range files {
		header, err := safetensors.OpenFS(fsys, file)
		if err != nil {
			return err
		}
		header.Close()
		tensors += len(header.Entries)
		for _, e := range header.Entries {
			numbers += memory.Product(e.Shape...)
			headless = headless && !slices.Contains(names, e.Name)
		}
	}
	weights, perToken := c.Memory(dtype)
	least := weights / int(dtype.Size())
	if lacking := least - numbers; headless && lacking > 0 && lacking <= memory.Product(c.Model.Vocab, c.Model.EmbeddingWidth()) && c.Model.Layers <= tensors {
		return fmt.Errorf("the weights have no head: the tensor %q is missing; download the whole model or, if its head is its embeddings, set tie_word_embeddings to true in config.json", names[0])
	}
	if least > numbers || max(cmp.Or(c.Model.Shared, c.Model.Layers), c.decoderLayers()) > tensors {
		return fmt.Errorf("config.json describes a model of %d layers with at least %d weights, but the files hold %d tensors with %d numbers",
			c.Model.Layers, least, tensors, numbers)
	}
	if err := memory.Check(weights, perToken); err != nil {
		return fmt.Errorf("the weights as %v: %w", dtype, err)
	}
	return nil
}

// Memory returns how many bytes the weights take, without biases and norms, which are small, and how many bytes a Cache
// takes for each token of a sequence.
func (c Config) Memory(dtype tensor.Dtype) (weights, perToken int) {
	m := settled(c.Model, c.Head)
	a, f := m.Block.Attention, m.Block.FeedForward
	tables := 1
	if h, _ := heads.Get(c.Head); h.vocab && !m.Tied {
		tables = 2
	}
	width := int(dtype.Size())
	sum := func(x, y int) int { return x + min(y, math.MaxInt-x) }
	matrices := func(f layers.FeedForwardConfig) int {
		hidden, _ := f.Experts.Sizes(f.Hidden)
		if f.Gated {
			return memory.Product(3, m.Dim, hidden)
		}
		return memory.Product(2, m.Dim, hidden)
	}
	attention, perToken := a.Sizes(m.Dim)
	numbers, blocks := memory.Product(m.Shared, attention), m.Shared
	for _, v := range m.Variants {
		if v.FeedForward != nil {
			blocks = max(blocks-len(v.Blocks), 0)
			numbers = sum(numbers, memory.Product(len(v.Blocks), matrices(*v.FeedForward)))
		}
	}
	numbers = sum(numbers, sum(memory.Product(blocks, matrices(f)), memory.Product(tables, m.Vocab, m.EmbeddingWidth())))
	numbers = sum(numbers, memory.Product(learnedLen(m), m.EmbeddingWidth()))
	if m.Projection != nil {
		numbers = sum(numbers, memory.Product(m.Projection.Dim, m.Dim))
	}
	if d := distancesOf(m); d != nil {
		numbers = sum(numbers, memory.Product(2, cmp.Or(d.Buckets, d.MaxDistance), m.Dim))
	}
	if r, ok := m.Positions.(layers.RelativeBias); ok { // of a half
		numbers = sum(numbers, memory.Product(r.Buckets, a.Heads))
	}
	if n := c.decoderLayers(); n > 0 { // the blocks of the decoder have attention twice
		numbers = sum(numbers, sum(memory.Product(n, sum(memory.Product(2, attention), matrices(f))), memory.Product(learnedLen(m), m.Dim)))
		if s := c.Sequence; s != nil && !s.Shared {
			numbers = sum(numbers, memory.Product(cmp.Or(s.TargetVocab, m.Vocab), m.Dim))
		}
		return memory.Product(numbers, width), memory.Product(n, perToken, width)
	}
	return memory.Product(numbers, width), memory.Product(m.Layers, perToken, width)
}
