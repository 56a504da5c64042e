package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/train/model"
)

// Wilson's intervals are those of R's prop.test without a correction, with 1.96 standard deviations.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, n, low, high float64
	}{
		{12, 20, 0.3866, 0.7812},
		{0, 10, 0, 0.2775},
		{10, 10, 0.7225, 1},
		{3600, 6000, 0.5875, 0.6123},
	} {
		if got := wilson(c.right/c.n, c.n); math.Abs(got[0]-c.low) > 1e-4 || math.Abs(got[1]-c.high) > 1e-4 {
			t.Errorf("the interval of %v of %v is %.4f, want %v to %v", c.right, c.n, got, c.low, c.high)
		}
	}
}

// A mean of normal numbers is in its interval in about 95 % of samples, also if these are small.
func TestBootstrap(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{6, 20, 100} {
		const samples = 400
		inside := 0
		for range samples {
			numbers := make([]float64, n)
			for i := range numbers {
				numbers[i] = random.NormFloat64()
			}
			interval := bootstrap(n, func(rows []int) float64 {
				sum := 0.0
				for _, i := range rows {
					sum += numbers[i]
				}
				return sum / float64(len(rows))
			})
			if interval[0] <= 0 && interval[1] >= 0 {
				inside++
			}
		}
		if share := float64(inside) / samples; share < 0.9 || share > 0.98 {
			t.Errorf("of %d numbers, %.3f of the intervals contain the mean, want about 0.95", n, share)
		}
	}
	for _, undefined := range [][2]float64{bootstrap(1, func([]int) float64 { return 1 }), bootstrap(5, func([]int) float64 { return math.Inf(-1) })} {
		if undefined != [2]float64{} {
			t.Errorf("a value that isn't defined has the interval %v", undefined)
		}
	}
}

// Rows of tags that are right or wrong together count as one answer each.
func TestIntervalOfTags(t *testing.T) {
	r := &Report{kind: kindOf("tagging")}
	add := func(answers string, n int) {
		for range n {
			j := Judged{References: []string{"A A A A A"}, Answer: model.Answer{Text: answers}}
			r.countClasses(&j, r.symbols(answers), r.symbols(j.References[0]))
			r.Judged = append(r.Judged, j)
		}
	}
	r.Units = "words"
	add("A A A A A", 12)
	add("B B B B B", 8)
	if got, want := r.Interval(), wilson(0.6, 20); math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Judged, r.Classes = nil, (&Report{}).Classes
	if got := r.Interval(); got != [2]float64{} {
		t.Errorf("without rows, got %v", got)
	}
	add("A A A A A", 20)
	if got := r.Interval(); got != wilson(1, 20) {
		t.Errorf("got %v, want %v for 20 right rows", got, wilson(1, 20))
	}
}
