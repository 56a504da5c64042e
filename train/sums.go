package train

import (
	"fmt"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/train/optim"
)

// sums holds the numerators and denominators of means over batches: of the loss and of each metric.
type sums struct {
	Loss    number      `json:"loss"`
	Weight  number      `json:"weight"`
	Metrics [][2]number `json:"metrics,omitempty"` // sum and count of each metric
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

// A window is the sum over successive steps.
type window struct {
	sums
	Steps int    `json:"steps"`
	Norm  number `json:"norm"` // sum of the gradient norms
	Rate  number `json:"rate"` // learning rate of the last step
}

// add adds a step that solver has just taken. The solver may be nil.
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

// append appends the numbers of s: loss, weight, and two numbers per metric.
func (s *sums) append(numbers []float64) []float64 {
	numbers = append(numbers, float64(s.Loss), float64(s.Weight))
	for _, m := range s.Metrics {
		numbers = append(numbers, float64(m[0]), float64(m[1]))
	}
	return numbers
}

// sumsOf decodes numbers from append.
func sumsOf(numbers []float64) sums {
	s := sums{Loss: number(numbers[0]), Weight: number(numbers[1])}
	for m := range slices.Chunk(numbers[2:], 2) {
		s.Metrics = append(s.Metrics, [2]number{number(m[0]), number(m[1])})
	}
	return s
}

// note stores the mean of each metric in the map values. The keys are the names with the prefix.
func (s *sums) note(values map[string]float64, prefix string, metrics []Metric) {
	for i, m := range metrics {
		mean := float64(s.Metrics[i][0] / s.Metrics[i][1])
		if m.Of != nil {
			mean = m.Of(mean)
		}
		values[prefix+m.Name] = mean
	}
}

// checkMetrics returns an error if the metrics of graph g are invalid.
func checkMetrics(metrics []Metric, g *G.ExprGraph) error {
	seen := map[string]bool{"": true}
	for _, m := range metrics {
		if seen[m.Name] || strings.EqualFold(m.Name, "loss") { // checkKey also ignores case
			return fmt.Errorf("each metric needs its own name, which must not be loss, got %q", m.Name)
		}
		seen[m.Name] = true
		for _, n := range []*G.Node{m.Sum, m.Count} {
			if n == nil && m.Sum != nil {
				continue // no Count
			}
			if n == nil || !n.IsScalar() || n.Graph() != g {
				return fmt.Errorf("the Sum of metric %s, and its Count if there is one, must be scalar nodes in the graph of the inputs, got %v", m.Name, n)
			}
		}
	}
	return nil
}
