package layers_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// TestLargeNormal compares two million normal numbers with the distribution: in 200 intervals of equal probability, in
// the tails, and as pairs of neighbours.
func TestLargeNormal(t *testing.T) {
	testseed.Slow(t)
	const n, intervals = 1 << 21, 200
	p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	x := must.Get(p.New("w", layers.Normal(1), n))(t).Value.Float64s()
	counts, products := make([]float64, intervals), 0.0
	beyond := map[float64]float64{3: 0, 3.6541528853610088: 0, 4: 0, 4.5: 0} // the ziggurat's tail begins at the second
	for i, v := range x {
		counts[min(int(math.Erfc(-v/math.Sqrt2)/2*intervals), intervals-1)]++
		products += v * x[(i+1)%n]
		for limit := range beyond {
			if math.Abs(v) > limit {
				beyond[limit]++
			}
		}
	}
	squares, expected := 0.0, float64(n)/intervals
	for _, c := range counts {
		squares += (c - expected) * (c - expected) / expected
	}
	if d := (squares - intervals) / math.Sqrt(2*intervals); math.Abs(d) > 4 {
		t.Errorf("the counts in %d intervals differ from the normal distribution's by %.1f standard deviations of chi-squared", intervals, d)
	}
	for limit, count := range beyond {
		if want := n * math.Erfc(limit/math.Sqrt2); math.Abs(count-want) > 4*math.Sqrt(want) {
			t.Errorf("%v numbers of %d are beyond ±%v, want about %.0f", count, n, limit, want)
		}
	}
	if d := products / math.Sqrt(n); math.Abs(d) > 4 {
		t.Errorf("neighbours are correlated: the sum of their products is %.1f standard deviations from 0", d)
	}
}

// TestLargeParameters checks that a large parameter's numbers depend on their places and on the parameter's name, but
// not on its size, its dtype or the number of processors.
func TestLargeParameters(t *testing.T) {
	const n = 1<<18 + 1 // elements of the smallest large parameter
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, init := range []layers.Init{layers.Normal(0.02), layers.Uniform(0.3)} {
		draw := func(dtype tensor.Dtype, name string, size int) []float64 {
			p := must.Get(layers.NewParams(dtype, 5))(t)
			return floats(t, must.Get(p.New(name, init, size))(t).Value)
		}
		want := draw(tensor.Float32, "w", n)
		if unique := slices.Compact(slices.Sorted(slices.Values(draw(tensor.Float64, "w", 2*n)))); len(unique) < 2*n-10 {
			t.Errorf("%s: %d numbers of %d differ from all others", init.Kind, len(unique), 2*n)
		}
		for _, procs := range []int{1, 2, 5} {
			runtime.GOMAXPROCS(procs)
			if got := draw(tensor.Float32, "w", 2*n); !slices.Equal(got[:n], want) {
				t.Errorf("%s: on %d processors, a larger parameter begins with other numbers", init.Kind, procs)
			}
		}
		for i, v := range draw(tensor.Float64, "w", n) {
			if float64(float32(v)) != want[i] {
				t.Fatalf("%s: number %d is %v in float64 and %v in float32", init.Kind, i, v, want[i])
			}
		}
		if got := draw(tensor.Float32, "v", n); slices.Equal(got[:3], want[:3]) {
			t.Errorf("%s: parameters with different names are equal", init.Kind)
		}
	}
}

// BenchmarkNew measures a parameter per number: a small one, drawn one number after the other, and one that is drawn on
// all cores.
func BenchmarkNew(b *testing.B) {
	for _, size := range []int{1 << 18, 1 << 22} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
				must.Get(p.New("w", layers.Normal(0.02), size))(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/number")
		})
	}
}
