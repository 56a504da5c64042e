package bench

import (
	"math/rand/v2"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// prepareForward builds the forward pass alone, on the tokens of a training step.
func (c GPT) prepareForward(precision layers.Precision) (Step, error) {
	model, p, err := c.model()
	if err != nil {
		return Step{}, err
	}
	p.KeepPanels(true)
	run, err := forward(c.Tokens(rand.New(rand.NewPCG(1, 1)), c.Batch), precision, func(b *layers.Build, x *G.Node) (*G.Node, error) {
		return model.Forward(b, x, layers.Mask{})
	})
	return Step{Run: run, Tokens: c.Batch * c.Length, Flops: c.Flops() / 3}, err
}

// decoding returns a session for a decoder with random weights, and two steps: one begins again with the prompts, and
// one adds a token to each sequence. A step that finds no room begins again first. There is room for twice the prompt,
// or for fewer tokens if positions have a limit.
func decoding(c layers.ModelConfig, batch, prompt int, int8 bool) (s *decode.Session, read, next Step, err error) {
	model, p, err := newDecoder(c)
	size := 4 // bytes per weight
	if err == nil && int8 {
		size, err = 1, p.Quantize()
	}
	if err == nil {
		p.KeepPanels(true)
		s, err = decode.New(model, decode.Config{Batch: batch, Capacity: 2 * prompt})
	}
	if err != nil {
		return nil, read, next, err
	}
	prompts := make([][]int, batch)
	for i := range prompts {
		for j := range prompt {
			prompts[i] = append(prompts[i], (97*j+i)%c.Vocab)
		}
	}
	head := c.Vocab * c.Dim // weights; they are the table of embeddings, too
	body := p.Count() - head
	if learned, ok := c.Positions.(layers.Learned); ok {
		body -= learned.MaxLen * c.Dim // a step needs only one of the positions
	}
	work := func(tokens int) float64 {
		return 2 * float64(batch) * float64(tokens*(body+2*c.Layers*prompt*c.Dim)+head)
	}
	read = Step{Tokens: batch * prompt, Flops: work(prompt), Run: func() error {
		s.Reset()
		_, err := s.Step(prompts)
		return err
	}}
	next = Step{Tokens: batch, Flops: work(1), Bytes: float64(size * (body + head)), Run: func() error {
		if s.Room(0) == 0 {
			if err := read.Run(); err != nil {
				return err
			}
		}
		_, err := s.Step(slices.Repeat([][]int{{7}}, batch))
		return err
	}}
	return s, read, next, read.Run()
}

const decodePrompt = 128 // tokens per sequence before the first step

// prepareDecode builds a step that computes the next token of each sequence after at least 128 tokens, with cached
// keys and values.
func prepareDecode(c layers.ModelConfig, batch int, int8 bool) (Step, error) {
	_, _, next, err := decoding(c, batch, decodePrompt, int8)
	return next, err
}

// preparePrompt builds a step that reads a prompt of 512 tokens.
func preparePrompt(c layers.ModelConfig) (Step, error) {
	_, read, _, err := decoding(c, 1, 512, false)
	return read, err
}

// smolLM2 is the shape of SmolLM2-135M.
var smolLM2 = layers.ModelConfig{
	Vocab: 49152, Dim: 576, Layers: 30, Positions: layers.Rotary{Base: 100000}, Tied: true,
	Block: layers.BlockConfig{
		Attention:   layers.AttentionConfig{Heads: 9, KeyValueHeads: 3, NoBias: true},
		FeedForward: layers.FeedForwardConfig{Hidden: 1536, NoBias: true, Gated: true, Activation: layers.SiLU},
		Norm:        layers.NormConfig{Kind: "rms"},
	},
}

// embedder is an encoder of MiniLM's shape that embeds texts of the same length.
var embedder = GPT{"embed", 32, 32, 384, 12, 6, 30522}

// prepareEmbed builds the embedding of a batch of texts: an encoder as in BERT, the mean of its states, and length 1.
func prepareEmbed(precision layers.Precision) (Step, error) {
	c := embedder
	p, err := layers.NewParams(tensor.Float32, 1)
	if err != nil {
		return Step{}, err
	}
	model, err := layers.NewEncoder(p, layers.ModelConfig{
		Vocab: c.Vocab, Dim: c.Dim, Layers: c.Blocks, Segments: 2, EmbeddingNorm: true, Positions: layers.Learned{MaxLen: 512},
		Block: layers.BlockConfig{
			Attention:   layers.AttentionConfig{Heads: c.Heads},
			FeedForward: layers.FeedForwardConfig{Hidden: 4 * c.Dim, Activation: layers.GELU},
			PostNorm:    true,
		},
		Init: layers.Normal(0.02), EmbeddingInit: layers.Normal(0.02),
	})
	if err != nil {
		return Step{}, err
	}
	p.KeepPanels(true)
	run, err := forward(c.Tokens(rand.New(rand.NewPCG(1, 1)), c.Batch), precision, func(b *layers.Build, x *G.Node) (*G.Node, error) {
		states, err := model.States(b, x, layers.Mask{})
		if err != nil {
			return nil, err
		}
		vectors, err := layers.Pool(b, states, nil, layers.MeanPooling)
		if err != nil {
			return nil, err
		}
		return layers.Normalize(b, vectors)
	})
	c.Vocab = 0 // no head
	return Step{Run: run, Tokens: c.Batch * c.Length, Flops: c.Flops() / 3}, err
}

// forward builds a graph for evaluation, and returns a function that runs it.
func forward(ids *tensor.Dense, precision layers.Precision, build func(b *layers.Build, x *G.Node) (*G.Node, error)) (func() error, error) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Int, G.WithShape(ids.Shape()...), G.WithName("x"), G.WithValue(ids))
	out, err := build(&layers.Build{Precision: precision, Buffers: &layers.Buffers{}}, x)
	if err != nil {
		return nil, err
	}
	var value G.Value
	G.Read(out, &value)
	return machine(g)
}

// machine returns a function that runs a graph.
func machine(g *G.ExprGraph) (run func() error, err error) {
	vm := G.NewTapeMachine(g)
	return func() error {
		defer vm.Reset()
		return ops.Run(vm)
	}, layers.CheckGraph(g)
}
