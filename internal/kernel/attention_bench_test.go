package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkAttention is causal attention of several shapes, with heads apart and side by side.
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
					c.a.Forward(c.q, c.k, c.v, c.out, c.lse)
				}
			})
			b.Run(fmt.Sprintf("%s/backward/side=%t", tc.name, side), func(b *testing.B) {
				for b.Loop() {
					c.a.Backward(c.q, c.k, c.v, c.out, c.dout, c.lse, c.dq, c.dk, c.dv, nil)
				}
			})
		}
	}
}
