package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestAttentionIsTheSameBits compares the bits of results on different numbers of cores. The shapes cover every way of
// dividing the work.
func TestAttentionIsTheSameBits(t *testing.T) {
	for _, shape := range [][4]int{{1, 1, 300, 300}, {1, 3, 500, 500}, {2, 5, 130, 257}, {30, 2, 16, 16}} {
		for _, option := range []string{"none", "bias", "window", "groups", "dropout", "distances", "distances and bias", "documents", "blocks", "score", "sinks", "single"} {
			name := fmt.Sprint(shape, option)
			if testseed.LeftOut(name) {
				continue
			}
			groups := 0
			switch option {
			case "groups", "distances and bias":
				groups = 1
			case "single":
				shape[2] = 1
			}
			c := newGroupedCase[float32](1, shape, groups, 32, 16, true)
			c.a.Mask.Causal = true
			switch option {
			case "bias":
				c.a.Mask.BiasShape = [4]int{1, 1, shape[2], shape[3]}
				c.a.Mask.Bias = normals[float32](4, shape[2]*shape[3])
				c.dbias = make([]float32, len(c.a.Mask.Bias))
			case "window":
				c.a.Mask.Window, c.a.Softcap = &Window{Left: 40}, 3
			case "documents":
				c.a.Mask.Documents = documents(shape[3], randomDocuments(rand.New(rand.NewPCG(1, 1)), shape[0], shape[3])...)
			case "blocks":
				c.a.Mask.Blocks = randomBlocks(rand.New(rand.NewPCG(1, 1)), shape[2], shape[3])
			case "score":
				c.a.Score = wavy
			case "dropout":
				c.a.Dropout = AttentionDropout{P: 0.3, Seed: 1}
			case "sinks":
				c.a.Sinks, c.dsinks = normals[float32](5, shape[1]), make([]float32, shape[1])
				c.a.SinkGrads = c.dsinks
			case "distances":
				c.distances(rand.New(rand.NewPCG(1, 2)), 3, 100)
			case "distances and bias":
				c.distances(rand.New(rand.NewPCG(1, 2)), 3, 100)
				c.a.Mask.BiasShape = [4]int{shape[0], 1, shape[2], shape[3]}
				c.a.Mask.Bias = normals[float32](4, shape[0]*shape[2]*shape[3])
				c.dbias = make([]float32, len(c.a.Mask.Bias))
			case "single":
				c.a.Mask.Offset = shape[3]
			}
			t.Run(name, func(t *testing.T) {
				sameOnAnyCores(t, func(cores int) []float32 {
					c.cores = cores
					c.run()
					return slices.Concat(c.results()...)
				})
			})
		}
	}
}

// TestAttentionAllocatesNothing checks that attention allocates only in its first run.
func TestAttentionAllocatesNothing(t *testing.T) {
	if testseed.Race {
		t.Skip("the race detector empties pools")
	}
	for _, shape := range [][4]int{{32, 2, 16, 16}, {1, 1, 300, 300}} {
		c := newGroupedCase[float32](1, shape, 1, 16, 16, true)
		c.a.Mask.Causal = true
		for range 2 {
			c.run()
			if n := testing.AllocsPerRun(20, c.run); n > 1 {
				t.Errorf("%v, dropout %v: %v allocations per run, want at most 1", shape, c.a.Dropout.P, n)
			}
			c.a.Softcap, c.a.Dropout.P = 5, 0.1
			c.distances(rand.New(rand.NewPCG(1, 2)), 3, 100)
		}
	}
}

// TestAttentionMemoryIsLinear checks how much memory two runs with 16,384 queries and keys allocate.
func TestAttentionMemoryIsLinear(t *testing.T) {
	if testing.Short() || testseed.Race {
		t.Skip("takes some seconds")
	}
	const length, width = 4096, 8
	c := newAttentionCase[float32](1, [4]int{1, 1, length, length}, width, width, false)
	c.distances(rand.New(rand.NewPCG(1, 2)), 3, 200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.run()
	runtime.ReadMemStats(&after)
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(10*4*length*width+4<<20); got > limit {
		t.Errorf("allocated %d bytes, want at most %d: all scores would take %d", got, limit, 4*length*length)
	}
}
