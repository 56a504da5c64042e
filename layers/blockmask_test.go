package layers_test

import (
	"fmt"
	"runtime"
	"testing"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// longformer is a window with global tokens (Beltagy et al., 2020).
func longformer(window, global int) func(query, key int) bool {
	return func(query, key int) bool {
		return query < global || key < global || query-key <= window && key-query <= window
	}
}

// TestBlockMaskIsAllow compares a BlockMask with the Allow of the same function: outputs and gradients have the same
// bits in the fused op, and in the composed form.
func TestBlockMaskIsAllow(t *testing.T) {
	const T = 300
	for name, sees := range map[string]func(query, key int) bool{
		"prefix":     func(query, key int) bool { return key < 70 || key <= query },
		"longformer": longformer(20, 3),
		"dilated":    func(query, key int) bool { return key <= query && query-key < 120 && (query-key)%4 == 0 },
		"square": func(query, key int) bool {
			return max(query/20-key/20, key/20-query/20, query%20-key%20, key%20-query%20) <= 2
		},
		"empty rows": func(query, key int) bool { return query%100 > 30 && key > 200 },
	} {
		for _, composed := range []bool{false, true} {
			run := func(blocks bool) [][]float64 {
				c := newBench(t)
				c.b.Composed = composed
				m := layers.Mask{}
				if blocks {
					m.Blocks = must.Get(layers.NewBlockMask(T, T, sees))(t)
				} else {
					allow := make([]bool, T*T)
					for i := range allow {
						allow[i] = sees(i/T, i%T)
					}
					m.Allow = input(c.g, "allow", dense(allow, T, T))
				}
				q, k, v := c.in("q", 1, T, 8), c.in("k", 1, T, 8), c.in("v", 1, T, 8)
				y := c.node(layers.ScaledDotProduct(c.b, q, k, v, layers.AttentionOptions{Heads: 2, Mask: m}))
				cost := weigh(t, y, input(c.g, "w", random(3, y.Shape()...)))
				return read(t, append(G.Nodes{y}, gradients(t, cost, q, k, v)...)...)
			}
			got, want := run(true), run(false)
			for i := range want {
				sameBits(t, fmt.Sprintf("%s, composed %t: result %d", name, composed, i), got[i], want[i])
			}
		}
	}
}

// TestBlockMaskMemory measures a BlockMask of a window with global tokens for 16,384 tokens.
func TestBlockMaskMemory(t *testing.T) {
	testseed.Slow(t)
	const T = 8192
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := must.Get(layers.NewBlockMask(T, T, longformer(256, 4)))(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 2<<20 { // an Allow takes 64 MiB
		t.Errorf("the BlockMask takes %d bytes, want at most 2 MiB", got)
	}
	runtime.KeepAlive(m)
}

func TestBlockMaskErrors(t *testing.T) {
	all := func(int, int) bool { return true }
	must.Refuse(layers.NewBlockMask(0, 3, all))(t, "block mask: T must be at least 1, got 0")
	must.Refuse(layers.NewBlockMask(3, -1, all))(t, "block mask: S must be at least 1, got -1")
	must.Refuse(layers.NewBlockMask(large, large, all))(t, fmt.Sprintf("block mask: %d queries", large), "memory")
}

// scoreSubject is attention with the Score wavy and, if the case has the option first, with a BlockMask.
func scoreSubject(t *testing.T, f fixture, p *layers.Params, b *layers.Build, inputs map[string]*G.Node) map[string]*G.Node {
	a := must.Get(layers.NewMultiHeadAttention(p, f.Config.Dim, layers.AttentionConfig{Heads: f.Config.Heads, NoBias: true, Softcap: f.Config.Scale}))(t)
	f.fill(t, p)
	a.Score = wavy
	var m layers.Mask
	if f.Config.First {
		m.Blocks = must.Get(layers.NewBlockMask(6, 6, onnxPrefix))(t)
	}
	return one(must.Get(a.Forward(b, inputs["x"], inputs["x"], inputs["x"], m))(t))
}
