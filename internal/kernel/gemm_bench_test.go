package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkGemm times square products and the products of small transformers. A case lists count, m, n and k.
func BenchmarkGemm(b *testing.B) {
	for _, s := range [][4]int{
		{1, 64, 64, 64}, {1, 128, 128, 128}, {1, 256, 256, 256}, {1, 512, 512, 512}, {1, 1024, 1024, 1024},
		{1, 1024, 512, 2048}, {1, 2048, 512, 1024}, {1, 3072, 768, 256}, // a wide model
		{1, 512, 32, 32}, {1, 512, 128, 32}, {1, 512, 32, 128}, // a small model: x·W
		{1, 768, 128, 128}, {1, 768, 384, 128}, {1, 768, 512, 128}, {1, 768, 128, 512}, {1, 768, 65, 128},
		{1, 32, 32, 512}, {1, 128, 32, 512}, // dW
		{1, 128, 128, 768}, {1, 384, 128, 768}, {1, 512, 128, 768}, {1, 65, 128, 768},
		{1, 1, 128, 128}, {1, 1, 512, 128}, {1, 1, 128, 512}, {1, 1, 2048, 512}, // x·W for one token
		{48, 64, 64, 32}, {48, 64, 32, 64}, {64, 16, 16, 16}, // attention, head by head
	} {
		for _, trans := range []string{"NN", "NT", "TN", "TT"} {
			name := fmt.Sprintf("%dx%dx%dx%d/%s", s[0], s[1], s[2], s[3], trans)
			for _, set := range instructionSets {
				if !set.runs {
					continue
				}
				b.Run(name+"/float32/"+set.name, func(b *testing.B) {
					use(b, set)
					benchmarkGemm[float32](b, s, trans[0] == 'T', trans[1] == 'T')
				})
				b.Run(name+"/float64/"+set.name, func(b *testing.B) {
					use(b, set)
					benchmarkGemm[float64](b, s, trans[0] == 'T', trans[1] == 'T')
				})
				if s[0] == 1 {
					b.Run(name+"/bfloat16/"+set.name, func(b *testing.B) {
						use(b, set)
						benchmarkProduct(b, s, trans[0] == 'T', trans[1] == 'T', func(x, y, z []float32, lda, ldb int) {
							GemmBFloat16(0, trans[0] == 'T', trans[1] == 'T', s[1], s[2], s[3], 1, x, lda, y, ldb, 0, z, s[2], nil, nil)
						})
					})
				}
			}
		}
	}
}

func benchmarkGemm[F Float](b *testing.B, s [4]int, transA, transB bool) {
	count, m, n, k := s[0], s[1], s[2], s[3]
	benchmarkProduct(b, s, transA, transB, func(x, y, z []F, lda, ldb int) {
		GemmBatch(0, count, transA, transB, m, n, k, 1, x, lda, m*k, y, ldb, k*n, 0, z, n, m*n)
	})
}

func benchmarkProduct[F Float](b *testing.B, s [4]int, transA, transB bool, product func(x, y, z []F, lda, ldb int)) {
	count, m, n, k := s[0], s[1], s[2], s[3]
	x, y, z := normals[F](1, count*m*k), normals[F](2, count*k*n), normals[F](3, count*m*n)
	lda, ldb := k, n
	if transA {
		lda = m
	}
	if transB {
		ldb = k
	}
	for b.Loop() {
		product(x, y, z, lda, ldb)
	}
	b.ReportMetric(2*float64(count*m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
