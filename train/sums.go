package train

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/train/optim"
)

// sums are what batches count for in means: the loss and each metric, with what they are divided by.
type sums struct {
	Loss    number      `json:"loss"`
	Weight  number      `json:"weight"`
	Metrics [][2]number `json:"metrics,omitempty"` // sum and count of each
}

func (s *sums) add(o sums) {
	s.Loss += o.Loss
	s.Weight += o.Weight
	if s.Metrics == nil {
		s.Metrics = make([][2]number, len(o.Metrics))
	}
	for i, m := range o.Metrics {
		s.Metrics[i][0] += m[0]
		s.Metrics[i][1] += m[1]
	}
}

// A window is some steps, one after the other.
type window struct {
	sums
	Steps int    `json:"steps"`
	Norm  number `json:"norm"` // sum of the norms of their gradients
	Rate  number `json:"rate"` // the learning rate of the last
}

// add adds a step, which a solver has taken; the solver may be nil.
func (w *window) add(s sums, solver *optim.Solver) {
	w.sums.add(s)
	w.Steps++
	if solver != nil {
		w.Norm += number(solver.Norm())
		w.Rate = number(solver.Rate())
	}
}

// loss returns the mean loss.
func (s *sums) loss() float64 { return float64(s.Loss / s.Weight) }

// diverged reports whether the mean loss isn't finite.
func (s *sums) diverged() bool { return s.Weight > 0 && !finite(s.loss()) }

// append appends the numbers of s: two, and two for each metric.
func (s *sums) append(to []float64) []float64 {
	to = append(to, float64(s.Loss), float64(s.Weight))
	for _, m := range s.Metrics {
		to = append(to, float64(m[0]), float64(m[1]))
	}
	return to
}

// sumsOf returns the sums that append has appended.
func sumsOf(numbers []float64) sums {
	s := sums{Loss: number(numbers[0]), Weight: number(numbers[1])}
	for m := range slices.Chunk(numbers[2:], 2) {
		s.Metrics = append(s.Metrics, [2]number{number(m[0]), number(m[1])})
	}
	return s
}

// note notes the metrics' means in a map, each under its name after a prefix.
func (s *sums) note(to map[string]float64, prefix string, metrics []Metric) {
	for i, m := range metrics {
		mean := float64(s.Metrics[i][0] / s.Metrics[i][1])
		if m.Of != nil {
			mean = m.Of(mean)
		}
		to[prefix+m.Name] = mean
	}
}

// checkMetrics checks the metrics of a graph.
func checkMetrics(metrics []Metric, g *G.ExprGraph) error {
	seen := map[string]bool{"": true}
	for _, m := range metrics {
		if seen[m.Name] || strings.EqualFold(m.Name, "loss") { // in any case, as a Check's JSON has it
			return fmt.Errorf("each metric needs a name of its own, other than loss, got %q", m.Name)
		}
		seen[m.Name] = true
		for _, n := range []*G.Node{m.Sum, m.Count} {
			if n == nil && m.Sum != nil {
				continue // no Count
			}
			if n == nil || !n.IsScalar() || n.Graph() != g {
				return fmt.Errorf("the metric %s must have a Sum, and may have a Count, that are scalar nodes of the inputs' graph, got %v", m.Name, n)
			}
		}
	}
	return nil
}
