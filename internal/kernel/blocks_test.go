package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestBlocks compares Blocks with the function that they come from.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 3))
	for range 60 {
		queries, keys := 1+r.IntN(200), 1+r.IntN(200)
		allow := make([]bool, queries*keys)
		kind, salt := r.IntN(4), r.IntN(100)
		for i := range allow {
			switch t, j := i/keys, i%keys; kind {
			case 0:
				allow[i] = j <= t
			case 1:
				allow[i] = j < 3 || t-j < salt && j <= t
			case 2:
				allow[i] = r.IntN(500) == 0
			case 3:
				allow[i] = (t/64+j/64+salt)%2 == 0
			}
		}
		m := NewBlocks(queries, keys, func(t, j int) bool { return allow[t*keys+j] })
		for p := -2; p < queries+2; p++ {
			scores := make([]float64, keys+3)
			hideBlocks(m, scores, p, 0)
			for j := range scores {
				want := p >= 0 && p < queries && j < keys && allow[p*keys+j]
				if m.sees(p, j) != want || (scores[j] == 0) != want {
					t.Fatalf("(%d, %d) of (%d, %d), kind %d: sees is %t and the score %v, want %t", p, j, queries, keys, kind, m.sees(p, j), scores[j], want)
				}
			}
			from := r.IntN(keys)
			part := make([]float64, r.IntN(keys-from)+1)
			if hideBlocks(m, part, p, from); !slices.Equal(part, scores[from:][:len(part)]) {
				t.Fatalf("keys from %d on have the scores %v, want %v", from, part, scores[from:][:len(part)])
			}
		}
		for range 50 {
			p0, j0 := r.IntN(queries), r.IntN(keys)
			p1, j1 := p0+1+r.IntN(queries-p0), j0+1+r.IntN(keys-j0)
			seen := false
			for p := p0; p < p1; p++ {
				seen = seen || slices.Contains(allow[p*keys+j0:p*keys+j1], true)
			}
			if seen && !m.any(p0, p1, j0, j1) {
				t.Fatalf("queries %d to %d see some of the keys %d to %d, but any reports none", p0, p1, j0, j1)
			}
		}
	}
}

// TestBlocksAreAllow compares attention with Blocks and with the equal Allow, bit by bit.
func TestBlocksAreAllow(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Of(t), 4))
	for round := range testseed.Cases(60) {
		shape := [4]int{1 + r.IntN(2), 1 + r.IntN(2), 1 + r.IntN(400), 1 + r.IntN(400)}
		seed := r.Uint64()
		run := func(blocks bool, r *rand.Rand) [][]float32 {
			c := newAttentionCase[float32](seed, shape, 16, 8, false)
			m := &c.a.Mask
			m.Causal = r.IntN(2) == 0
			if r.IntN(2) == 0 {
				m.Window = &Window{r.IntN(200), -1}
			}
			if m.Blocks = randomBlocks(r, shape[2], shape[3]); !blocks {
				m.AllowShape, m.Allow = [4]int{1, 1, shape[2], shape[3]}, make([]bool, shape[2]*shape[3])
				for i := range m.Allow {
					m.Allow[i] = m.Blocks.sees(i/shape[3], i%shape[3])
				}
				m.Blocks = nil
			}
			c.run()
			return c.results()
		}
		got, want := run(true, rand.New(rand.NewPCG(seed, 1))), run(false, rand.New(rand.NewPCG(seed, 1)))
		for i := range got {
			if !slices.Equal(got[i], want[i]) {
				t.Fatalf("round %d, shape %v: the %s with Blocks has other bits than with Allow", round, shape, attentionResults[i])
			}
		}
	}
}

// TestBlocksSkip puts NaN into keys that only empty blocks have, and checks that no tile reads them.
func TestBlocksSkip(t *testing.T) {
	const length = 1024
	c := newAttentionCase[float32](1, [4]int{1, 1, length, length}, 8, 8, false)
	c.a.Mask.Causal = true
	c.a.Mask.Blocks = NewBlocks(length, length, func(t, j int) bool { return j < 3 || t-j < 50 })
	c.run()
	for j := 128; j < 512; j++ { // the queries from 640 on see neither these keys nor keys in their tiles
		c.k.from(0, 0, j)[0], c.v.from(0, 0, j)[0] = float32(math.NaN()), float32(math.NaN())
	}
	c.a.attentionOperands = attentionOperands[float32]{q: c.q, k: c.k, v: c.v, out: c.out, dout: c.dout, lse: c.lse, dq: c.dq, dk: c.dk, dv: c.dv}
	c.a.backward()
	if anyNaN(c.dq.Data[640*8:]) || anyNaN(c.dk.Data[640*8:]) {
		t.Error("the gradients have NaN of keys in empty blocks")
	}
	if c.a.forward(); anyNaN(c.out.Data[640*8:]) {
		t.Error("the outputs have NaN of keys in empty blocks")
	}
}
