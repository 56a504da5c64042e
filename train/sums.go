package train

import (
	"fmt"
	"strings"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/train/optim"
)

// sums holds the numerators and denominators of means over batches: of the loss and of each metric.
type sums struct {
	Loss    number     `json:"loss"`
	Weight  number     `json:"weight"`
	Metrics [][]number `json:"metrics,omitempty"` // of each metric: its sum and count, or the elements of its vector
}

func (s *sums) add(o sums) {
	s.Loss += o.Loss
	s.Weight += o.Weight
	if s.Metrics == nil {
		for _, m := range o.Metrics {
			s.Metrics = append(s.Metrics, make([]number, len(m)))
		}
	}
	for i, m := range o.Metrics {
		for j, x := range m {
			s.Metrics[i][j] += x
		}
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
		w.Norm += number(solver.Norm)
		w.Rate = number(solver.Rate)
	}
}

// loss returns the mean loss.
func (s *sums) loss() float64 { return float64(s.Loss / s.Weight) }

// diverged reports whether the mean loss isn't finite.
func (s *sums) diverged() bool { return s.Weight > 0 && !finite(s.loss()) }

// append appends the numbers of s: loss, weight, and the sums of each metric.
func (s *sums) append(numbers []float64) []float64 {
	numbers = append(numbers, float64(s.Loss), float64(s.Weight))
	for _, m := range s.Metrics {
		for _, x := range m {
			numbers = append(numbers, float64(x))
		}
	}
	return numbers
}

// sumsOf decodes numbers from append.
func sumsOf(numbers []float64, metrics []Metric) sums {
	s := sums{Loss: number(numbers[0]), Weight: number(numbers[1])}
	numbers = numbers[2:]
	for _, m := range metrics {
		own := make([]number, m.size())
		for i := range own {
			own[i] = number(numbers[i])
		}
		s.Metrics, numbers = append(s.Metrics, own), numbers[len(own):]
	}
	return s
}

// length returns the number of numbers that append appends.
func length(metrics []Metric) int {
	n := 2
	for _, m := range metrics {
		n += m.size()
	}
	return n
}

// size returns how many numbers of the metric are added up.
func (m Metric) size() int {
	if m.Value != nil {
		return m.Sum.Shape()[0]
	}
	return 2
}

// note stores the value of each metric in the map values. The keys are the names with the prefix.
func (s *sums) note(values map[string]float64, prefix string, metrics []Metric) {
	for i, m := range metrics {
		values[prefix+m.Name] = m.value(s.Metrics[i])
	}
}

// value returns the metric's value for its sums over all batches.
func (m Metric) value(sums []number) float64 {
	if m.Value != nil {
		vector := make([]float64, len(sums))
		for i, x := range sums {
			vector[i] = float64(x)
		}
		return m.Value(vector)
	}
	mean := float64(sums[0] / sums[1])
	if m.Of != nil {
		return m.Of(mean)
	}
	return mean
}

// mostSums is the greatest length of a metric's vector. Each check, and each checkpoint, may hold such a vector.
const mostSums = 1 << 18

// checkMetrics returns an error if the metrics of graph g are invalid.
func checkMetrics(metrics []Metric, g *G.ExprGraph) error {
	seen := map[string]bool{"": true}
	for _, m := range metrics {
		if seen[m.Name] || strings.EqualFold(m.Name, "loss") { // checkKey also ignores case
			return fmt.Errorf("each metric needs its own name, which must not be loss, got %q", m.Name)
		}
		seen[m.Name] = true
		if m.Value != nil {
			if n := m.Sum; n == nil || n.Dims() != 1 || n.Graph() != g || n.Shape()[0] > mostSums || m.Count != nil || m.Of != nil {
				return fmt.Errorf("metric %s has a Value, so its Sum must be a vector of at most %d elements in the graph of the inputs, without Count and Of, got %v", m.Name, mostSums, n)
			}
			continue
		}
		for _, n := range []*G.Node{m.Sum, m.Count} {
			if n == nil && m.Sum != nil {
				continue // no Count
			}
			if n == nil || !n.IsScalar() || n.Graph() != g {
				return fmt.Errorf("the Sum of metric %s, and its Count if there is one, must be scalar nodes in the graph of the inputs, got %v; a vector needs a Value", m.Name, n)
			}
		}
	}
	return nil
}
