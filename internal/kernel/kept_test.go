package kernel

import (
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// keptProduct multiplies by W of 70 rows and 540 columns, for m rows of ones and twos.
func keptProduct(cores, m int, half bool, w []float32, kept *Kept) []float32 {
	const n, k = 70, 540
	x, y := make([]float32, m*k), make([]float32, m*n)
	for i := range x {
		x[i] = float32(1 + i%2)
	}
	if half {
		GemmBFloat16(cores, false, true, m, n, k, 1, x, k, w, k, 0, y, n, nil, kept)
	} else {
		GemmFinish(cores, false, true, m, n, k, 1, x, k, w, k, 0, y, nil, kept)
	}
	return y
}

// TestMatrixPanelsKept checks that kept panels change no bit, for any number of cores, and that they are forgotten.
func TestMatrixPanelsKept(t *testing.T) {
	testseed.Slow(t)
	eachUnit(t, func(t *testing.T) {
		w := normals[float32](1, 70*540)
		w[3], w[540] = math.MaxFloat32, 1e-30 // for which the unit isn't precise enough
		var kept Kept
		for try := range 3 {
			for _, half := range []bool{false, true} {
				want := keptProduct(1, 40, half, w, nil)
				for _, cores := range []int{1, 2, 7} {
					if got := keptProduct(cores, 40, half, w, &kept); !slices.Equal(got, want) {
						t.Errorf("bfloat16 %t, %d cores, kept %t: the bits differ", half, cores, kept.keep)
					}
				}
			}
			if count := len(kept.made()); count != min(try, 1)*2 {
				t.Errorf("there are panels of %d precisions, with keep %t", count, kept.keep)
			}
			if try == 0 {
				kept.Keep(true)
				continue
			}
			w[7*540]++
			if same := slices.Equal(keptProduct(1, 40, false, w, &kept), keptProduct(1, 40, false, w, nil)); same {
				t.Error("the panels aren't used")
			}
			if got := keptProduct(1, 40, false, slices.Clone(w), &kept); !slices.Equal(got, keptProduct(1, 40, false, w, nil)) {
				t.Error("panels of one matrix are used for another")
			}
			shifted := keptProduct(1, 40, false, w, &kept)
			for i := range w {
				w[i] *= 0.99
			}
			if got := keptProduct(1, 40, false, w, &kept); !slices.Equal(got, keptProduct(1, 40, false, w, nil)) || slices.Equal(got, shifted) {
				t.Error("panels are used after all numbers have changed")
			}
			if kept.Forget(); len(kept.made()) > 0 || kept.w != nil {
				t.Error("panels or the matrix stay in memory")
			}
		}
	})
}

// made returns the panels that there are.
func (k *Kept) made() []*amxPanels {
	return slices.DeleteFunc(slices.Clone(k.panels[:]), func(p *amxPanels) bool { return p == nil })
}

// TestMatrixPanelsMemory checks that products keep nothing beyond Go's memory limit.
func TestMatrixPanelsMemory(t *testing.T) {
	eachUnit(t, func(t *testing.T) {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 10))
		w := normals[float32](1, 70*540)
		var kept Kept
		kept.Keep(true)
		if got := keptProduct(2, 40, false, w, &kept); !slices.Equal(got, keptProduct(1, 40, false, w, nil)) {
			t.Error("the bits differ")
		}
		if len(kept.made()) > 0 {
			t.Error("panels are kept beyond the limit")
		}
	})
}

// TestMatrixPanelsConcurrent fills the same panels from several goroutines.
func TestMatrixPanelsConcurrent(t *testing.T) {
	eachUnit(t, func(t *testing.T) {
		w := normals[float32](1, 70*540)
		want := keptProduct(1, 40, false, w, nil)
		var kept Kept
		kept.Keep(true)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if got := keptProduct(2, 40, false, w, &kept); !slices.Equal(got, want) {
					t.Error("the bits differ")
				}
			})
		}
		wg.Wait()
	})
}
