package kernel

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// gemmShapes lists count, m, n and k of products that cover all ways of dividing the work.
var gemmShapes = [][4]int{{1, 200, 40, 70}, {1, 35, 313, 600}, {1, 15, 150, 300}, {1, 520, 70, 33}, {1, 32, 32, 768}, {1, 300, 260, 600}, {48, 64, 64, 32}, {64, 16, 16, 16}, {3, 100, 90, 80}}

func TestGemmSameBits(t *testing.T) {
	eachBody(t, testGemmSameBits[float32], testGemmSameBits[float64])
}

// testGemmSameBits checks that the number of cores and the transposes don't change a bit.
func testGemmSameBits[F Float](t *testing.T) {
	for _, s := range gemmShapes {
		count, m, n, k := s[0], s[1], s[2], s[3]
		a, b := normals[F](1, count*m*k), normals[F](2, count*k*n)
		ta, bt := transposed(a, m, k), transposed(b, k, n)
		var want []F
		for try := range 8 { // each number of cores gets two pairs of transposes, and each pair two numbers of cores
			cores, i := []int{1, 2, 3, 7, 7, 1, 2, 3}[try], try%4
			if try > 0 && testseed.LeftOut(fmt.Sprint(s, try)) {
				continue
			}
			x, y, lda, ldb := a, b, k, n
			if i&1 != 0 {
				x, lda = ta, m
			}
			if i&2 != 0 {
				y, ldb = bt, k
			}
			c := make([]F, count*m*n)
			GemmBatch(cores, count, i&1 != 0, i&2 != 0, m, n, k, 1, x, lda, m*k, y, ldb, k*n, 0, c, n, m*n)
			if want == nil {
				want = c
			}
			if !slices.Equal(c, want) {
				t.Errorf("%v on %d cores, transposes %02b: the bits differ", s, cores, i)
			}
		}
		accuracy(t, s, a, b, want)
	}
}

// TestGemmBlocksKeepBits checks that sizes which follow the processor's caches don't change a bit.
func TestGemmBlocksKeepBits(t *testing.T) {
	eachBody(t, testGemmBlocksKeepBits[float32], testGemmBlocksKeepBits[float64])
}

func testGemmBlocksKeepBits[F Float](t *testing.T) {
	g := &bodyOf[F]().tiles
	own := *g
	t.Cleanup(func() { *g = own })
	const m, n, k, lda = 130, 400, 600, 1024 // rows of A begin in the same set of the first cache
	a, b := normals[F](1, k*lda), normals[F](2, k*n)
	for _, transA := range []bool{false, true} {
		var want []F
		for _, sizes := range [][2]int{{own.band, own.slab}, {g.rows, g.cols}, {5 * g.rows, 4 * g.cols}} {
			for _, collides := range []bool{false, true} {
				g.band, g.slab, g.collides = sizes[0], sizes[1], collides
				c := make([]F, m*n)
				Gemm(2, transA, false, m, n, k, 1, a, lda, b, n, 0, c, n)
				if want == nil {
					want = c
				} else if !slices.Equal(c, want) {
					t.Errorf("band %d, slab %d, collides %t, A transposed: %t: the bits differ from those of band %d, slab %d", g.band, g.slab, collides, transA, own.band, own.slab)
				}
			}
		}
	}
}

// accuracy compares the first product with a sum in float64.
func accuracy[F Float](t *testing.T, s [4]int, a, b, c []F) {
	tol := 1e-5
	if any(F(0)) == any(float64(0)) {
		tol = 1e-14
	}
	m, n, k := s[1], s[2], s[3]
	for i := 0; i < m; i += 7 {
		for j := range n {
			sum, size := 0.0, 0.0
			for p := range k {
				x := float64(a[i*k+p]) * float64(b[p*n+j])
				sum += x
				size += math.Abs(x)
			}
			if d := math.Abs(float64(c[i*n+j]) - sum); !(d <= tol*size) {
				t.Fatalf("%v: element (%d, %d) is %v, want %v", s, i, j, c[i*n+j], sum)
			}
		}
	}
}

func TestGemmAllocates(t *testing.T) {
	for _, s := range gemmShapes {
		count, m, n, k := s[0], s[1], s[2], s[3]
		a, b, c := make([]float32, count*m*k), make([]float32, count*k*n), make([]float32, count*m*n)
		allocatesNothing(t, s, func() {
			GemmBatch(0, count, false, true, m, n, k, 1, a, k, m*k, b, k, k*n, 0, c, n, m*n)
		})
	}
	a, b, c := make([]float32, 40*50), make([]float32, 50*60), make([]float32, 40*60)
	allocatesNothing(t, "bfloat16", func() { GemmBFloat16(0, false, true, 40, 60, 50, 2, a, 50, b, 50, 1, c, 60, nil, nil) })
}

func TestGemmConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := gemmShapes[g%len(gemmShapes)]
			count, m, n, k := s[0], s[1], s[2], s[3]
			a, b, c := make([]float32, count*m*k), make([]float32, count*k*n), make([]float32, count*m*n)
			for i := range a {
				a[i] = 1
			}
			for i := range b {
				b[i] = float32(g)
			}
			for range 5 {
				GemmBatch(0, count, false, true, m, n, k, 1, a, k, m*k, b, k, k*n, 0, c, n, m*n)
				for i, x := range c {
					if x != float32(g*k) {
						t.Errorf("goroutine %d, element %d is %v, want %d", g, i, x, g*k)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
