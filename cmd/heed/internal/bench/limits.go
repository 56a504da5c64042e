package bench

import (
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/heed-go/heed/internal/kernel"
)

// Limits are two limits of this machine, with all cores that Go may use at work at once.
type Limits struct {
	GFLOPS float64 `json:"limit_gflops"`   // of float32 products; each core has its own
	GBPerS float64 `json:"limit_gb_per_s"` // of reading an array that is larger than the caches
}

// MeasureLimits measures the limits of this machine. It takes about two seconds.
func MeasureLimits() Limits {
	cores := runtime.GOMAXPROCS(0)
	var l Limits
	for _, n := range []int{128, 256, 512} { // the best size depends on the processor
		matrices := make([][]float32, cores)
		for i := range matrices {
			matrices[i] = make([]float32, 3*n*n)
		}
		products := max(1, 1<<28/(n*n*n))
		took := shortest(cores, 10, func(core int) {
			a, b, c := matrices[core][:n*n], matrices[core][n*n:2*n*n], matrices[core][2*n*n:]
			for range products {
				kernel.Gemm(1, false, false, n, n, n, 1, a, n, b, n, 0, c, n)
			}
		})
		l.GFLOPS = max(l.GFLOPS, 2*float64(n*n*n*products*cores)/took.Seconds()/1e9)
	}
	array := make([]uint64, 1<<25/cores*cores) // 256 MB
	for i := range array {
		array[i] = uint64(i)
	}
	sums := make([]uint64, cores)
	took := shortest(cores, 5, func(core int) {
		part := len(array) / cores
		sums[core] += sum(array[core*part:][:part])
	})
	l.GBPerS = 8 * float64(len(array)) / took.Seconds() / 1e9
	return l
}

// shortest returns the shortest time in which all cores do their work once.
func shortest(cores, rounds int, work func(core int)) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range rounds {
		start := time.Now()
		var wait sync.WaitGroup
		for core := range cores {
			wait.Go(func() { work(core) })
		}
		wait.Wait()
		best = min(best, time.Since(start))
	}
	return best
}

// sum adds up x in four places at once: memory delivers to several places faster than to one.
func sum(x []uint64) (total uint64) {
	quarter := len(x) / 4
	a, b, c, d := x[:quarter], x[quarter:2*quarter], x[2*quarter:3*quarter], x[3*quarter:4*quarter]
	for len(a) >= 4 && len(b) >= 4 && len(c) >= 4 && len(d) >= 4 {
		total += a[0] + a[1] + a[2] + a[3] + b[0] + b[1] + b[2] + b[3] + c[0] + c[1] + c[2] + c[3] + d[0] + d[1] + d[2] + d[3]
		a, b, c, d = a[4:], b[4:], c[4:], d[4:]
	}
	return total
}
