package pretrained

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// architectures lists the architectures that open, each under its model_type.
var architectures = []struct {
	name string
	architecture
}{
	{"llama", llama},
	{"gpt2", gpt2},
	{"qwen2", qwen2},
	{"qwen3", qwen3},
	{"mistral", mistral},
	{"gemma3_text", gemma3},
	{"gpt_neo", gptNeo},
	{"gpt_neox", gptNeoX},
	{"opt", opt},
	{"gemma2", gemma2},
}

// An architecture maps the config.json of one model_type to a Config, and the names of its tensors to parameters.
type architecture struct {
	class    string // the class that a config.json without architectures means
	causal   bool   // tokens attend only to themselves and to earlier tokens
	prefix   string // of the names of tensors, except those of heads; files may leave it out
	defaults string // values of missing keys, as JSON; a key whose default is null may be left out

	model      layers.ModelConfig              // settings that all models have, with the head for "text" or "mask"
	classifier layers.SequenceClassifierConfig // settings of all classifiers, without the Model
	config     func(k *keys, c *Config)        // copies the other settings

	// names says which tensors of a file hold the parameters of layers. An element has a layer's scope, its name in the
	// file and possibly an option, with spaces between them. {i} stands for the number of a block. Several scopes are
	// joined with a plus sign, as in attention.query+key+value; a bar separates several names in files. The first
	// element for a layer counts. The name of one parameter, such as head.bias, may stand in place of a scope; the
	// name in the file is then complete, too.
	//
	// The options are transposed (the file has the transposed matrix), plus1 (our weight is the file's plus 1), skip2
	// (two rows of the file aren't used) and heads (a joined tensor has a group of rows for each head).
	names []string
	heads map[string][]string // for each Head except "states", more names, without the prefix
}

// Config describes a published model: the model and how it is used.
type Config struct {
	Type   string // model_type in config.json, such as llama
	Folder string // folder of config.json: ".", or a folder that modules.json names, such as 0_Transformer

	// Head says what the model computes: "text" (logits of the next token), "mask" (logits of masked tokens), "classes"
	// (logits of a sequence's classes) or "states" (the states after the last norm).
	Head string

	Causal     bool                             // tokens attend only to themselves and to earlier tokens
	Model      layers.ModelConfig               // for "classes", the same as Classifier.Model
	Classifier *layers.SequenceClassifierConfig // for "classes"; otherwise nil
	MaxLen     int                              // largest number of tokens of an input
	Start, Pad int                              // the ids of the first token of a text and of padding; −1 for none
	End        []int                            // ids that end a text
	Labels     []string                         // for "classes", the names of the classes

	Sampler decode.Sampler // how generation_config.json chooses tokens

	// For embeddings, from modules.json and the files that it names.
	Pooling   layers.Pooling
	Normalize bool              // divide an embedding by its length
	Lowercase bool              // texts are converted to lower case before they become tokens
	Prompts   map[string]string // texts to put in front, by their purpose
	Prompt    string            // the name of the prompt for texts without a purpose; empty for none
}

// A Model is a published model with its parameters. One of Decoder (Head "text"), Encoder (Heads "mask" and "states")
// and Classifier (Head "classes") is not nil. With Causal, the attention of an Encoder or a Classifier has a window
// that hides later tokens.
type Model struct {
	Config
	Params     *layers.Params
	Decoder    *layers.Decoder
	Encoder    *layers.Encoder
	Classifier *layers.SequenceClassifier
	Ignored    []string // tensors in the files that hold no parameter of the model
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
// changed, for example by States.
func (c Config) Open(fsys fs.FS, dtype tensor.Dtype) (*Model, error) {
	files, err := Files(fsys)
	if err != nil {
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
	default:
		m.Encoder, err = layers.NewEncoder(p.Blank(), c.Model)
	}
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	tensors, err := c.Tensors(p)
	if err != nil {
		return nil, err
	}
	report, err := p.LoadFS(fsys, files, layers.LoadOptions{Tensors: tensors, Ignore: true})
	if m.Ignored = report.Unused; err != nil {
		return nil, err
	}
	if own, err := m.ownHead(fsys, files, tensors); err != nil || !own {
		return m, err
	}
	c.Model.Tied, c.Model.NoBias, c.Model.TiedBias = false, !c.Model.TiedBias, false
	return c.Open(fsys, dtype)
}

// ownHead reports whether the files of a tied model have weights of the head that differ from the embeddings. The
// reference library then uses them.
func (m *Model) ownHead(fsys fs.FS, files []string, tensors []layers.Tensor) (bool, error) {
	i := slices.IndexFunc(tensors, func(t layers.Tensor) bool { return t.Params[0] == tied })
	if !m.Model.Tied || !slices.ContainsFunc(tensors[i].Names, func(name string) bool { return slices.Contains(m.Ignored, name) }) {
		return false, nil
	}
	p, err := layers.NewParams(m.Params.Dtype(), 0)
	if err != nil {
		return false, err
	}
	head, err := p.Blank().New(tied, layers.Zeros(), m.Model.Vocab, m.Model.Dim)
	if err != nil {
		return false, err
	}
	t := tensors[i]
	slices.Reverse(t.Names) // the head's names come last
	_, err = p.LoadFS(fsys, files, layers.LoadOptions{Tensors: []layers.Tensor{t}, Ignore: true})
	return !head.Value.Eq(m.Params.Get(tied).Value), err
}

// tied is the parameter that is also the weight of a tied head.
const tied = "embedding.weight"

// check compares the configuration with the headers of the files and with the machine's memory.
func (c Config) check(fsys fs.FS, files []string, dtype tensor.Dtype) error {
	tensors, numbers := 0, 0
	for _, file := range files {
		header, err := safetensors.OpenFS(fsys, file)
		if err != nil {
			return err
		}
		header.Close()
		tensors += len(header.Entries)
		for _, e := range header.Entries {
			numbers += memory.Product(e.Shape...)
		}
	}
	weights, perToken := c.Memory(dtype)
	if least := weights / int(dtype.Size()); least > numbers || c.Model.Layers > tensors {
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
	matrices, tables := 2, 1
	if f.Gated {
		matrices = 3
	}
	if (c.Head == "text" || c.Head == "mask") && !m.Tied {
		tables = 2
	}
	width := int(dtype.Size())
	sum := func(x, y int) int { return x + min(y, math.MaxInt-x) }
	block := sum(memory.Product(2, m.Dim, a.HeadDim, sum(a.Heads, a.KeyValueHeads)), memory.Product(matrices, m.Dim, f.Hidden))
	all := sum(memory.Product(m.Layers, block), memory.Product(tables, m.Vocab, m.Dim))
	if p, ok := m.Positions.(layers.Learned); ok {
		all = sum(all, memory.Product(p.MaxLen, m.Dim))
	}
	return memory.Product(all, width), memory.Product(2, m.Layers, a.KeyValueHeads, a.HeadDim, width)
}

// States returns the configuration of the same model without its head. Its Head is "states".
func (c Config) States() Config {
	m := &c.Model
	if m.Tied && m.EmbeddingScale == 0 {
		m.EmbeddingScale = math.Sqrt(float64(m.Dim))
	}
	m.Outputs, m.NoBias, m.Tied, m.TiedBias, m.Transform, m.LogitSoftcap = 0, false, false, false, nil, 0
	c.Head, c.Classifier = "states", nil
	if c.Causal {
		c.windows(func(w **layers.Window) {
			left := -1
			if *w != nil {
				left = (*w).Left
			}
			*w = &layers.Window{Left: left}
		})
	}
	return c
}

// windows changes the windows of all blocks.
func (c *Config) windows(change func(w **layers.Window)) {
	m := &c.Model
	change(&m.Block.Attention.Window)
	m.Variants = slices.Clone(m.Variants)
	for i := range m.Variants {
		change(&m.Variants[i].Window)
	}
}

// Tensors returns how the folder's tensors hold the parameters p of the model, for LoadFS and SaveTensors. It returns
// an error if a parameter has no published name.
func (c Config) Tensors(p *layers.Params) ([]layers.Tensor, error) {
	a, err := architectureOf(c.Type)
	if err != nil {
		return nil, err
	}
	scope, prefixes := "", []string{a.prefix, ""}
	switch c.Head {
	case "classes":
		scope = "encoder."
	case "states": // the reference library saves such models without the prefix
		slices.Reverse(prefixes)
	}
	var tensors []layers.Tensor
	named := map[string]bool{}
	add := func(line, scope string, prefixes ...string) {
		for i := range c.Model.Layers {
			tensors = append(tensors, c.layer(p, named, scope+strings.ReplaceAll(line, "{i}", strconv.Itoa(i)), prefixes)...)
			if !strings.Contains(line, "{i}") {
				break
			}
		}
	}
	for _, line := range a.names {
		add(line, scope, prefixes...)
	}
	for _, line := range a.heads[c.Head] {
		i := slices.IndexFunc(tensors, func(t layers.Tensor) bool { return t.Params[0] == tied })
		if other, isHead := strings.CutPrefix(line, "head "); isHead && c.Model.Tied && i >= 0 { // files may have the weights under this name
			for _, theirs := range strings.Split(other, "|") {
				tensors[i].Names = append(tensors[i].Names, theirs+".weight")
			}
		}
		add(line, "", "")
	}
	for _, q := range p.All() {
		if !named[q.Name] {
			return nil, fmt.Errorf("parameter %q has no name in folders of type %s", q.Name, c.Type)
		}
	}
	return tensors, nil
}

// layer returns the tensors of one line of names: for the weight and the bias of a layer, if it has them and they
// aren't named yet.
func (c Config) layer(p *layers.Params, named map[string]bool, line string, prefixes []string) (tensors []layers.Tensor) {
	fields := append(strings.Fields(line), "")
	parts := strings.Split(fields[0], "+")
	scope := parts[0][:strings.LastIndexByte(parts[0], '.')+1]
	for _, last := range []string{"", ".weight", ".bias"} {
		var t layers.Tensor
		for i, part := range parts {
			if i > 0 {
				part = scope + part
			}
			if part += last; p.Get(part) != nil && !named[part] {
				t.Params, named[part] = append(t.Params, part), true
			}
		}
		if t.Params == nil {
			continue
		}
		weight := last != ".bias"
		switch fields[2] {
		case "transposed":
			t.Transposed = weight
		case "skip2":
			t.SkipRows = 2
		case "heads":
			t.Groups = c.Model.Block.Attention.Heads
		case "plus1":
			if weight {
				t.Plus = 1
			}
		}
		old := map[string]string{".weight": ".gamma", ".bias": ".beta"}[last] // the first names of norms
		for _, end := range []string{last, old} {
			for _, theirs := range strings.Split(fields[1], "|") {
				for _, prefix := range prefixes {
					if name := prefix + theirs + end; !slices.Contains(t.Names, name) {
						t.Names = append(t.Names, name)
					}
				}
			}
		}
		tensors = append(tensors, t)
	}
	return tensors
}

func architectureOf(kind string) (architecture, error) {
	var known []string
	for _, a := range architectures {
		if a.name == kind {
			return a.architecture, nil
		}
		known = append(known, a.name)
	}
	return architecture{}, unsupported("model_type", kind, "one of "+strings.Join(known, ", ")+text.DidYouMean(kind, known))
}
