package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkMulInt8 measures products in the sizes of GPT-2, beside those with float32 weights.
func BenchmarkMulInt8(b *testing.B) {
	for _, s := range [][2]int{{768, 768}, {3072, 768}, {768, 3072}, {50257, 768}} {
		n, k := s[0], s[1]
		weights := normals[float32](1, n*k)
		w := newInt8(b, weights, n)
		for _, m := range []int{1, 8, 512} {
			if m*n > 512*3072 {
				continue
			}
			x, y := normals[float32](2, m*k), make([]float32, m*n)
			name := fmt.Sprintf("%d/%dx%d", m, n, k)
			rate := func(b *testing.B) {
				b.ReportMetric(float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
			}
			b.Run("int8/"+name, func(b *testing.B) {
				for b.Loop() {
					MulInt8(0, y, x, w)
				}
				rate(b)
			})
			b.Run("float32/"+name, func(b *testing.B) {
				for b.Loop() {
					Gemm(0, false, true, m, n, k, 1, x, k, weights, k, 0, y, n)
				}
				rate(b)
			})
		}
	}
}

// BenchmarkInt8Rows measures products of several rows with weights that are too large for the caches, with every
// instruction set that has assembly.
func BenchmarkInt8Rows(b *testing.B) {
	for _, s := range [][2]int{{3072, 768}, {768, 3072}} {
		n, k := s[0], s[1]
		weights := []*Int8{newInt8(b, normals[float32](1, n*k), n)}
		for len(weights)*n*k < 96<<20 {
			next := *weights[0]
			next.values = slices.Clone(next.values)
			weights = append(weights, &next)
		}
		for _, set := range instructionSets {
			for _, m := range []int{1, 2, 4, 8} {
				if !set.runs || set.int8.four == nil {
					continue
				}
				x, y := normals[float32](2, m*k), make([]float32, m*n)
				b.Run(fmt.Sprintf("%s/%dx%d/%d", set.name, n, k, m), func(b *testing.B) {
					use(b, set)
					for i := 0; b.Loop(); i++ {
						MulInt8(0, y, x, weights[i%len(weights)])
					}
					b.ReportMetric(b.Elapsed().Seconds()*1e12/float64(b.N*n*k), "ps/weight")
				})
			}
		}
	}
}
