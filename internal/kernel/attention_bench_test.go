package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkAttention times causal attention in several shapes, with heads on their own axis and side by side.
func BenchmarkAttention(b *testing.B) {
	for _, tc := range []struct {
		name  string
		shape [4]int
		width int
	}{
		{"tiny", [4]int{32, 2, 16, 16}, 16},
		{"nanogpt", [4]int{12, 4, 64, 64}, 32},
		{"long1024", [4]int{1, 4, 1024, 1024}, 64},
		{"long4096", [4]int{1, 4, 4096, 4096}, 64},
	} {
		for _, side := range []bool{false, true} {
			c := newAttentionCase[float32](1, tc.shape, tc.width, tc.width, side)
			c.a.Mask.Causal = true
			b.Run(fmt.Sprintf("%s/forward/side=%t", tc.name, side), func(b *testing.B) {
				for b.Loop() {
					c.a.Forward(0, c.q, c.k, c.v, c.out, c.lse)
				}
			})
			b.Run(fmt.Sprintf("%s/backward/side=%t", tc.name, side), func(b *testing.B) {
				for b.Loop() {
					c.a.Backward(0, c.q, c.k, c.v, c.out, c.dout, c.lse, c.dq, c.dk, c.dv, nil)
				}
			})
		}
	}
}

// windowAndFirst is a mask of nearby keys and of the first ones.
func windowAndFirst(t, j int) bool { return j < 4 || t-j < 256 }

// BenchmarkAttentionOptions times attention with one option each, for 1,024 or 4,096 queries. It also times a few
// queries at the end of 1,024 keys.
func BenchmarkAttentionOptions(b *testing.B) {
	long := [4]int{1, 4, 1024, 1024}
	for _, tc := range []struct {
		name   string
		shape  [4]int
		groups int
		set    func(a *Attention[float32])
	}{
		{"window256", [4]int{1, 4, 4096, 4096}, 0, func(a *Attention[float32]) {
			a.Mask.Window = &Window{Left: 255}
		}},
		{"documents256", [4]int{1, 4, 4096, 4096}, 0, func(a *Attention[float32]) {
			numbers := make([]int, 4096)
			for j := range numbers {
				numbers[j] = j / 256
			}
			a.Mask.Documents = documents(4096, numbers...)
		}},
		{"blocks", [4]int{1, 4, 4096, 4096}, 0, func(a *Attention[float32]) { a.Mask.Blocks = NewBlocks(4096, 4096, windowAndFirst) }},
		{"allow", [4]int{1, 4, 4096, 4096}, 0, func(a *Attention[float32]) {
			a.Mask.AllowShape, a.Mask.Allow = [4]int{1, 1, 4096, 4096}, make([]bool, 4096*4096)
			for i := range a.Mask.Allow {
				a.Mask.Allow[i] = windowAndFirst(i/4096, i%4096)
			}
		}},
		{"groups2", long, 2, func(a *Attention[float32]) {}},
		{"softcap", long, 0, func(a *Attention[float32]) { a.Softcap = 30 }},
		{"score", long, 0, func(a *Attention[float32]) {
			a.Score = func(score float64, head, query, key int) (value, derivative float64) {
				return score + float64(key-query)/1024, 1
			}
		}},
		{"slopes", long, 0, func(a *Attention[float32]) { a.Mask.Slopes = []float32{0.5, 0.25, 0.125, 0.0625} }},
		{"dropout", long, 0, func(a *Attention[float32]) { a.Dropout.P = 0.1 }},
		{"decode1", [4]int{1, 4, 1, 1024}, 0, func(a *Attention[float32]) { a.Mask.Offset = 1023 }},
		{"decode4", [4]int{1, 4, 4, 1024}, 0, func(a *Attention[float32]) { a.Mask.Offset = 1020 }},
	} {
		c := newGroupedCase[float32](1, tc.shape, tc.groups, 64, 64, false)
		c.a.Mask.Causal = true
		tc.set(c.a)
		b.Run(tc.name+"/forward", func(b *testing.B) {
			for b.Loop() {
				c.a.Forward(0, c.q, c.k, c.v, c.out, c.lse)
			}
		})
		if tc.shape[2] < 1024 {
			continue
		}
		b.Run(tc.name+"/backward", func(b *testing.B) {
			for b.Loop() {
				c.a.Backward(0, c.q, c.k, c.v, c.out, c.dout, c.lse, c.dq, c.dk, c.dv, nil)
			}
		})
	}
}
