package main

import (
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/layers"
)

// model is the model. S is the number of positions and D the width.
type model struct {
	size int // S

	letters   *layers.Embedding          // a row for each letter
	asked     *layers.Embedding          // a row for each position in a query
	positions layers.Positions           // a row for each stored position
	attention *layers.MultiHeadAttention // with one head, and so one table of weights
	out       *layers.Linear
}

func newModel(seed uint64, S, D int) *model {
	p := example.Must(layers.NewParams(tensor.Float64, seed))
	return &model{
		size:      S,
		letters:   example.Must(layers.NewEmbedding(p.Scope("letters"), len(letters), D, layers.Init{})),
		asked:     example.Must(layers.NewEmbedding(p.Scope("asked"), S, D, layers.Init{})),
		positions: example.Must(layers.Learned{MaxLen: S}.New(p.Scope("positions"), D, layers.AttentionConfig{})),
		attention: example.Must(layers.NewMultiHeadAttention(p.Scope("attention"), D, layers.AttentionConfig{})),
		out:       example.Must(layers.NewLinear(p.Scope("out"), D, len(letters), layers.LinearConfig{})),
	}
}

// inputs are the questions of a batch.
type inputs struct {
	stored *G.Node // (B, S): the letter at each position
	asked  *G.Node // (B, 1): the position asked for
}

func (m *model) newInputs(g *G.ExprGraph, batch int) inputs {
	return inputs{
		stored: G.NewMatrix(g, tensor.Int, G.WithShape(batch, m.size), G.WithName("stored")),
		asked:  G.NewMatrix(g, tensor.Int, G.WithShape(batch, 1), G.WithName("asked")),
	}
}

// forward adds the model to the graph of its inputs. It returns logits of shape (B, 1, V).
func (m *model) forward(b *layers.Build, inputs inputs) *G.Node {
	query := G.Must(m.asked.Forward(b, inputs.asked))                           // (B, 1) -> (B, 1, D)
	values := G.Must(m.letters.Forward(b, inputs.stored))                       // (B, S) -> (B, S, D)
	keys := G.Must(m.positions.Embed(b, values, nil))                           // (B, S, D)
	found := G.Must(m.attention.Forward(b, query, keys, values, layers.Mask{})) // (B, 1, D)
	return G.Must(m.out.Forward(b, found))                                      // (B, 1, D) x (V, D)ᵀ -> (B, 1, V)
}

// questions draws a batch: the stored letters, the positions asked for, and the answers.
func (m *model) questions(rng *rand.Rand, batch int) (stored, asked, answers []int) {
	for range batch {
		p := rng.IntN(m.size)
		asked = append(asked, p)
		memory := make([]int, m.size)
		for i := range memory {
			memory[i] = rng.IntN(len(letters))
		}
		stored = append(stored, memory...)
		answers = append(answers, memory[p])
	}
	return stored, asked, answers
}
