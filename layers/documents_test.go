package layers_test

import (
	"fmt"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// TestPackedDocuments compares documents that share a row with the same documents in rows of their own: the outputs of
// a Decoder and of an Encoder, and the gradients of all parameters, with every position scheme.
func TestPackedDocuments(t *testing.T) {
	t.Parallel()
	documents := [][]int{{1, 2, 3, 4}, {5, 6}, {3, 3, 1}, {4}, {2, 1, 4, 4}, {6}}
	const vocab, width = 7, 9
	type model interface {
		Forward(b *layers.Build, x *G.Node, m layers.Mask) (*G.Node, error)
	}
	for name, scheme := range schemes() {
		config := layers.ModelConfig{Vocab: vocab, Dim: 8, Layers: 2, Outputs: vocab, Positions: scheme, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}}}
		for _, kind := range []string{"decoder", "encoder"} {
			for _, composed := range []bool{false, true} {
				name := fmt.Sprintf("%s/%s/composed %t", name, kind, composed)
				if testseed.LeftOut(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					p := newParams(t)
					var m model
					if kind == "decoder" {
						m = must.Get(layers.NewDecoder(p, config))(t)
					} else {
						m = must.Get(layers.NewEncoder(p, config))(t)
					}
					randomise(p)
					// run returns the outputs of the documents in each row, in their order, and the gradients.
					run := func(rows [][]int, width int) (outputs map[int][]float64, gradient []float64) {
						var ids, numbers, positions []int
						weighting := make([]float64, 0, len(rows)*width*vocab)
						for _, row := range rows {
							end := len(ids) + width
							for _, d := range row {
								for i, id := range documents[d] {
									ids, numbers, positions = append(ids, id), append(numbers, d), append(positions, i)
									for j := range vocab {
										weighting = append(weighting, float64(1+(d+3*i+5*j)%7))
									}
								}
							}
							for len(ids) < end { // padding
								ids, numbers, positions = append(ids, 0), append(numbers, len(documents)), append(positions, 0)
								weighting = append(weighting, make([]float64, vocab)...)
							}
						}
						g := G.NewGraph()
						at := func(name string, x []int) *G.Node { return input(g, name, dense(x, len(rows), width)) }
						b := &layers.Build{Training: true, Composed: composed, Positions: at("positions", positions)}
						y := must.Get(m.Forward(b, at("ids", ids), layers.Mask{Documents: at("documents", numbers)}))(t)
						cost := weigh(t, y, input(g, "weighting", dense(weighting, len(rows), width, vocab)))
						got := read(t, append(G.Nodes{y}, gradients(t, cost, b.Learnables()...)...)...)
						outputs = map[int][]float64{}
						for r, row := range rows {
							start := r * width * vocab
							for _, d := range row {
								outputs[d] = got[0][start:][:len(documents[d])*vocab]
								start += len(documents[d]) * vocab
							}
						}
						return outputs, slices.Concat(got[1:]...)
					}
					packed, gradient := run([][]int{{0, 1, 2}, {4, 5, 3}}, width)
					want, wantGradient := run([][]int{{0}, {1}, {2}, {4}, {5}, {3}}, 4)
					for d := range documents {
						near(t, fmt.Sprintf("document %d", d), packed[d], want[d], 1e-12)
					}
					near(t, "gradients", gradient, wantGradient, 1e-11)
				})
			}
		}
	}
}

// TestCachedDocuments decodes rows of several documents token by token, with a BlockMask and a Score, and compares
// the outputs with a full pass.
func TestCachedDocuments(t *testing.T) {
	const length = 9
	a := must.Get(layers.NewMultiHeadAttention(newParams(t), 8, layers.AttentionConfig{Heads: 4, KeyValueHeads: 2}))(t)
	a.Positions, a.Score = layers.Rotary{}, wavy
	x, numbers := random(4, 2, length, 8), []int{0, 0, 0, 1, 1, 1, 1, 2, 2, 5, 4, 4, 5, 5, 4, 4, 5, 5}
	blocks := must.Get(layers.NewBlockMask(length, length, func(query, key int) bool { return (query+key)%3 != 1 }))(t)
	for _, composed := range []bool{false, true} {
		mask := func(g *G.ExprGraph) layers.Mask {
			return layers.Mask{Causal: true, Blocks: blocks, Documents: input(g, "documents", dense(numbers, 2, length))}
		}
		g := G.NewGraph()
		whole := input(g, "x", x)
		full := read(t, must.Get(a.Forward(&layers.Build{}, whole, whole, whole, mask(g)))(t))[0]

		cache := must.Get(layers.NewCache(2, length))(t)
		for _, step := range [][2]int{{0, 4}, {4, 5}, {5, 6}, {6, 9}} {
			n := step[1] - step[0]
			rows := make([]float64, 0, 2*n*8)
			for b := range 2 {
				rows = append(rows, x.Float64s()[(b*length+step[0])*8:][:n*8]...)
			}
			g := G.NewGraph()
			y := must.Get(a.Cached(&layers.Build{Cache: cache, Composed: composed}, input(g, "x", dense(rows, 2, n, 8)), mask(g)))(t)
			must.Do(t, cache.Extend(n, n))
			got := read(t, y)[0]
			cache.Commit()
			for b := range 2 {
				near(t, fmt.Sprintf("composed %t, row %d, tokens from %d on", composed, b, step[0]), got[b*n*8:][:n*8], full[(b*length+step[0])*8:][:n*8], 1e-12)
			}
		}
	}
}
