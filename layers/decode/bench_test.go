package decode_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// BenchmarkStep measures the time to compute the next token's logits, for sequences of several lengths: with a Session,
// and by applying the model to the whole sequence.
func BenchmarkStep(b *testing.B) {
	d := newDecoder(b, tensor.Float32, layers.ModelConfig{Vocab: 65, Dim: 128, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}, Layers: 4, Positions: layers.Rotary{}})
	for _, length := range []int{16, 256, 1024} {
		prompt := make([]int, length)
		for i := range prompt {
			prompt[i] = i % 65
		}
		b.Run(fmt.Sprintf("session/%d", length), func(b *testing.B) {
			const more = 256 // tokens generated before the session is reset
			s := newSession(b, d, decode.Config{Capacity: length + more})
			token := [][]int{{7}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%more == 0 {
					b.StopTimer()
					s.Reset()
					must[[][]float64](b)(s.Step([][]int{prompt}))
					b.StartTimer()
				}
				if _, err := s.Step(token); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("whole/%d", length), func(b *testing.B) {
			g := G.NewGraph()
			logits := must[*G.Node](b)(d.Forward(&layers.Build{}, ids(g, "ids", prompt), layers.Mask{}))
			var v G.Value
			G.Read(logits, &v)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			b.ReportAllocs()
			for b.Loop() {
				noError(b, vm.RunAll())
				vm.Reset()
			}
		})
	}
}
