package bench

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// TestSizes compares the calculated sizes with the sizes of the model's tensors, with and without tied weights.
func TestSizes(t *testing.T) {
	tied := NanoGPT
	tied.Vocab = 1001
	for _, c := range []GPT{NanoGPT, tied} {
		_, p, err := c.model()
		must.Do(t, err)
		var want []int
		for _, param := range p.All() {
			want = append(want, param.Value.Shape().TotalSize())
		}
		got := c.sizes()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("vocabulary %d: sizes %v, want %v", c.Vocab, got, want)
		}
	}
}

func TestLargestPart(t *testing.T) {
	for _, c := range []struct {
		name              string
		sizes             []int
		n                 int
		elements, tensors int
	}{
		{"one process", []int{1, 2, 3}, 1, 6, 3},
		{"halves", []int{1, 2, 3}, 2, 3, 1},
		{"the largest tensor is more than a half", []int{1, 5, 2}, 2, 5, 1},
		{"more processes than tensors", []int{4, 2}, 8, 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if elements, tensors := largestPart(c.sizes, c.n); elements != c.elements || tensors != c.tensors {
				t.Errorf("got %d elements and %d tensors, want %d and %d", elements, tensors, c.elements, c.tensors)
			}
		})
	}
}

func TestExchange(t *testing.T) {
	net := Network{Latency: 0.5, Bandwidth: 8}
	for _, c := range []struct {
		n    int
		want float64
	}{
		{1, 0},
		// Two exchanges of 3 elements of 4 bytes each way, in 3 messages; four agreements of one message; 6 norms of 8
		// bytes.
		{2, 2*(12./8+3*0.5) + 4*0.5 + 6},
		// The largest part is one tensor of 3 elements: 2 messages out, and 3 of 12 bytes in.
		{4, 2*(36/8.+5*0.5) + 4*2*0.5 + 12},
	} {
		if got := exchange([]int{1, 2, 3}, c.n, net); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d processes: %v s, want %v", c.n, got, c.want)
		}
	}
}

// TestForecasts checks that with more processes, exchanges take a larger share of the time, and that the speedup is
// plausible.
func TestForecasts(t *testing.T) {
	forecasts := Forecasts(1e11, Network{50e-6, 1e9})
	for i, f := range forecasts {
		if f.Processes == 1 {
			if f.Share != 0 || f.Speedup != 1 {
				t.Errorf("one process: %+v, want a share of 0 and a speedup of 1", f)
			}
		} else if f.Share <= forecasts[i-1].Share || f.Speedup > float64(f.Processes) || f.Speedup <= 1 {
			t.Errorf("%+v is followed by %+v, want a larger share, and a speedup above 1 and at most the number of processes", forecasts[i-1], f)
		}
	}
}

func TestScaleAlone(t *testing.T) {
	workers := 1
	err := Scale(t.Context(), nil, 2, func(s Scaling) error {
		if s.Workers != workers || s.Processes != 1 || s.Share != 0 || !(s.MinMS > 0) || s.MedianMS < s.MinMS || !(s.Flops() > 0) {
			t.Errorf("%d workers: %+v, want plausible times of one process without exchanges", workers, s)
		}
		workers *= 2
		return nil
	})
	if err != nil || workers == 1 {
		t.Errorf("error %v after %d workers, want none after at least 2", err, workers)
	}
}
