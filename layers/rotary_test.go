package layers_test

import (
	"fmt"
	"math"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestRotaryDependsOnDistanceAlone checks that shifting queries and keys together doesn't change their products.
// Shifting only the queries changes the products.
func TestRotaryDependsOnDistanceAlone(t *testing.T) {
	const length, width = 6, 8
	rotaries := []layers.Rotary{{}, {Dim: 4}, {Interleaved: true}, {Interleaved: true, Dim: 4}}
	for _, s := range rotaryScalings {
		rotaries = append(rotaries, layers.Rotary{Scaling: s})
	}
	for _, r := range rotaries {
		t.Run(fmt.Sprintf("%+v", r), func(t *testing.T) {
			products := func(queryAt, keyAt int) []float64 {
				c := newBench(t)
				rotate := func(n *G.Node, first int) *G.Node {
					r.Offset = first
					return c.node(r.Rotate(c.b, n, 1, nil))
				}
				q, k := rotate(c.in("q", length, width), queryAt), rotate(c.in("k", length, width), keyAt)
				got := read(t, q, k)
				out := make([]float64, 0, length*length)
				for i := range length {
					for j := range length {
						dot := 0.0
						for e := range width {
							dot += got[0][i*width+e] * got[1][j*width+e]
						}
						out = append(out, dot)
					}
				}
				return out
			}
			want := products(0, 0)
			for _, shift := range []int{1, 37, 1000, -12} {
				near(t, fmt.Sprint("both shifted by ", shift), products(shift, shift), want, 1e-10)
			}
			apart := products(1, 0)
			for i := range length - 1 {
				for j := range length - 1 {
					if same := math.Abs(apart[i*length+j]-want[i*length+j]) < 1e-6; same {
						t.Errorf("the product of query %d and key %d doesn't depend on their distance", i, j)
					}
				}
			}
		})
	}
}

// TestRotaryPositions sets the same positions in every possible way: by Offset, by each sequence's first position, and
// by all positions. The results are the same.
func TestRotaryPositions(t *testing.T) {
	const batch, length, heads, width = 2, 3, 2, 4
	for _, r := range []layers.Rotary{{}, {Interleaved: true, Dim: 2}} {
		c := newBench(t)
		x := c.in("x", batch, length, heads*width)
		moved := r
		moved.Offset = 7
		nodes := G.Nodes{
			c.node(moved.Rotate(c.b, x, heads, nil)),
			c.node(r.Rotate(c.b, x, heads, c.ints("a", []int{7, 7}, 2))),
			c.node(r.Rotate(c.b, x, heads, c.ints("b", []int{7, 8, 9, 7, 8, 9}, 2, 3))),
			c.node(moved.Rotate(c.b, x, heads, c.ints("c", []int{7, 7}, 2))), // given positions replace the Offset
		}
		got := read(t, nodes...)
		for i := range got[1:] {
			sameBits(t, fmt.Sprint("node ", i+1), got[i+1], got[0])
		}
	}

	// A single token with its position gives the same result as that token in the whole sequence.
	c := newBench(t)
	x := random(1, batch, length, width)
	whole := read(t, c.node(layers.Rotary{}.Rotate(c.b, input(c.g, "x", x), 1, nil)))[0]
	for i := range length {
		c := newBench(t)
		var step []float64
		for b := range batch {
			step = append(step, x.Float64s()[(b*length+i)*width:][:width]...)
		}
		got := read(t, c.node(layers.Rotary{}.Rotate(c.b, input(c.g, "x", dense(step, batch, 1, width)), 1, c.ints("at", []int{i, i}, batch))))[0]
		for b := range batch {
			sameBits(t, fmt.Sprintf("token %d of %d", i, b), got[b*width:][:width], whole[(b*length+i)*width:][:width])
		}
	}
}

// TestRotaryFollowsItsPositions runs one graph with several sets of positions, and checks outputs and gradients.
func TestRotaryFollowsItsPositions(t *testing.T) {
	c := newBench(t)
	x, first := c.in("x", 2, 3, 4), c.ints("first", []int{0, 0}, 2)
	y := c.node(layers.Rotary{}.Rotate(c.b, x, 1, first))
	w := input(c.g, "w", random(5, 2, 3, 4))
	again := runner(t, y, gradients(t, weigh(t, y, w), x)[0])
	for _, offsets := range [][]int{{0, 0}, {5, 2}, {5, 2}, {0, 0}, {-3, 900}} {
		must.Do(t, G.Let(first, dense(offsets, 2)))
		got := must.Get(again())(t)
		fresh := newBench(t)
		fx := fresh.in("x", 2, 3, 4)
		fy := fresh.node(layers.Rotary{}.Rotate(fresh.b, fx, 1, fresh.ints("at", offsets, 2)))
		want := read(t, fy, gradients(t, weigh(t, fy, input(fresh.g, "w", random(5, 2, 3, 4))), fx)[0])
		sameBits(t, fmt.Sprint("output at ", offsets), got[0], want[0])
		sameBits(t, fmt.Sprint("gradient at ", offsets), got[1], want[1])
	}
}

// TestRotaryAndNormsHide changes padding: with rotary positions, normalised queries and keys, or any activation, no
// result may change.
func TestRotaryAndNormsHide(t *testing.T) {
	cases := []hidingCase{
		{name: "rotary attention", shape: []int{2, 4, 6}, hidden: past(3, 2), build: func(c *bench, x *G.Node) *G.Node {
			n := must.Get(layers.NewNorm(c.p, 6, layers.NormConfig{Kind: "rms"}))(c)
			q := c.node(layers.Rotary{}.Rotate(c.b, c.node(n.Forward(c.b, x)), 1, c.ints("at", []int{3, 0}, 2)))
			k := c.node(layers.Rotary{Interleaved: true, Dim: 4}.Rotate(c.b, c.node(n.Forward(c.b, x)), 1, nil))
			y, err := layers.ScaledDotProduct(c.b, q, k, x, layers.AttentionOptions{Mask: layers.Mask{KeyLengths: c.lengths(3, 2)}})
			return c.node(y, err)
		}},
		{name: "modern encoder block", shape: []int{2, 4, 4}, hidden: past(3, 1), build: func(c *bench, x *G.Node) *G.Node {
			e := must.Get(layers.NewEncoderBlock(c.p, 4, layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELU, Gated: true}, Norm: layers.NormConfig{Kind: "rms"}}))(c)
			bias := input(c.g, "alibi", as(x.Dtype(), alibiBias(c, 2, 0, 4, 4)))
			return c.node(e.Forward(c.b, x, layers.Mask{KeyLengths: c.lengths(3, 1), Bias: bias}))
		}},
	}
	for _, a := range everyActivation {
		cases = append(cases, hidingCase{name: a.String(), shape: []int{2, 3, 4}, hidden: from(2), build: func(c *bench, x *G.Node) *G.Node {
			return c.node(a.Forward(c.b, x))
		}})
		for _, gated := range []bool{false, true} {
			cases = append(cases, hidingCase{name: fmt.Sprintf("feed-forward with %v, gated %t", a, gated), shape: []int{2, 3, 4}, hidden: from(2), build: func(c *bench, x *G.Node) *G.Node {
				return c.node(c.feedForward(4, layers.FeedForwardConfig{Activation: a, Gated: gated}).Forward(c.b, x))
			}})
		}
	}
	hide(t, cases)
}

func TestRotaryOfFloat32StaysAccurateFarOut(t *testing.T) {
	const far = 1_000_000 // here an angle in float32 has an error of several hundredths
	x := random(1, 2, 4)
	turned := func(dt tensor.Dtype) []float64 {
		g := G.NewGraph()
		return read(t, must.Get(layers.Rotary{Offset: far}.Rotate(&layers.Build{}, input(g, "x", as(dt, x)), 1, nil))(t))[0]
	}
	near(t, "float32", turned(tensor.Float32), turned(tensor.Float64), 1e-6)
}
