package bench

import (
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// prepareForward builds the forward pass alone, on the tokens of a training step.
func (c GPT) prepareForward() (Step, error) {
	model, p, err := c.model()
	if err != nil {
		return Step{}, err
	}
	p.KeepPanels(true)
	run, err := forward(c.Tokens(rand.New(rand.NewPCG(1, 1)), c.Batch), func(b *layers.Build, x *G.Node) (*G.Node, error) {
		return model.Forward(b, x, layers.Mask{})
	})
	return Step{Run: run, Tokens: c.Batch * c.Length, Flops: c.Flops() / 3}, err
}

// prepareDecode builds a step that computes the next token of each sequence after at least 128 tokens, with cached
// keys and values.
func (c GPT) prepareDecode() (Step, error) {
	_, run, err := c.decoding()
	c.Length = decodePrompt
	weights := -c.Length * c.Dim // a step needs only one of the positions
	for _, size := range c.sizes() {
		weights += size
	}
	return Step{Run: run, Tokens: c.Batch, Flops: c.Flops() / 3 / decodePrompt, Bytes: 4 * float64(weights)}, err
}

const decodePrompt = 128 // tokens per sequence before the first step

// decoding returns a session whose sequences have decodePrompt tokens, and a function that adds one to each. A step
// that finds no room begins again with the prompt.
func (c GPT) decoding() (*decode.Session, func() error, error) {
	model, p, err := c.model()
	if err != nil {
		return nil, nil, err
	}
	p.KeepPanels(true)
	s, err := decode.New(model, decode.Config{Batch: c.Batch})
	if err != nil {
		return nil, nil, err
	}
	prompts, next := make([][]int, c.Batch), make([][]int, c.Batch)
	for i := range prompts {
		prompts[i], next[i] = make([]int, decodePrompt), []int{7 + i}
		for j := range prompts[i] {
			prompts[i][j] = (97*j + i) % c.Vocab
		}
	}
	run := func() error {
		if s.Room(0) == 0 {
			s.Reset()
			if _, err := s.Step(prompts); err != nil {
				return err
			}
		}
		_, err := s.Step(next)
		return err
	}
	_, err = s.Step(prompts)
	return s, run, err
}

// embedder is an encoder of MiniLM's shape that embeds texts of the same length.
var embedder = GPT{"embed", 32, 32, 384, 12, 6, 30522}

// prepareEmbed builds the embedding of a batch of texts: an encoder as in BERT, the mean of its states, and length 1.
func prepareEmbed() (Step, error) {
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
	run, err := forward(c.Tokens(rand.New(rand.NewPCG(1, 1)), c.Batch), func(b *layers.Build, x *G.Node) (*G.Node, error) {
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
func forward(ids *tensor.Dense, build func(b *layers.Build, x *G.Node) (*G.Node, error)) (func() error, error) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Int, G.WithShape(ids.Shape()...), G.WithName("x"), G.WithValue(ids))
	out, err := build(&layers.Build{Buffers: &layers.Buffers{}}, x)
	if err != nil {
		return nil, err
	}
	var value G.Value
	G.Read(out, &value)
	if err := layers.CheckGraph(g); err != nil {
		return nil, err
	}
	vm := G.NewTapeMachine(g)
	return func() error {
		defer vm.Reset()
		return ops.Run(vm)
	}, nil
}
