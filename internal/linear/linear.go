// Package linear has the simple models with which every result on rows of text is compared: linear functions of the
// words and characters of a text, and for tagging of a token with its neighbours. A text may also have a vector, such
// as that of a published model. Features are TF-IDF values of n-grams, and the numbers of the vector.
//
// Package fit, in the folder below, fits these models. This package computes their scores, and writes and reads them.
//
// Scores have the same bits for the same model and text, whatever the number of goroutines. Sums of products are never
// fused, so other processors give the same bits too, except where their logarithms differ.
package linear

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Limits of a model.
const (
	MaxWeights = 1 << 24 // number of weights
	Largest    = 1e30    // greatest weight or number, so that no score overflows
	widest     = 1 << 16 // vector of a text
)

// Rows are N texts. Text returns text i; any number of goroutines may call it at once. Vectors, of shape (N, Width),
// has the vector of each text.
type Rows struct {
	N       int
	Text    func(i int) string
	Vectors []float32
}

// Vector returns the vector of row i, which has this width.
func (r Rows) Vector(i, width int) []float32 { return r.Vectors[i*width:][:width] }

// Texts makes Rows of a slice.
func Texts(texts []string) Rows {
	return Rows{N: len(texts), Text: func(i int) string { return texts[i] }}
}

// A Model gives scores to texts: a score for each class, or a number. It doesn't change, so any number of goroutines
// may use it at once.
type Model struct {
	Vocabulary
	outputs int
	weights []float32 // (features, outputs)
}

// NewModel returns the model with these weights, of shape (v.Features(), outputs). It uses their memory.
func NewModel(v *Vocabulary, outputs int, weights []float32) *Model {
	return &Model{*v, outputs, weights}
}

// Scale multiplies all scores of the model by a factor, and then adds a number to them.
func (m *Model) Scale(by, plus float32) {
	for i := range m.weights {
		m.weights[i] *= by
	}
	intercepts := m.weights[len(m.weights)-m.outputs:]
	for i := range intercepts {
		intercepts[i] += plus
	}
}

// Outputs returns the number of classes, or 1 for numbers.
func (m *Model) Outputs() int { return m.outputs }

// Width returns how many numbers the vector of a text has.
func (m *Model) Width() int { return m.width }

// Layer returns what the model computes of a vector alone: weights of shape (Width, Outputs), and a bias (Outputs).
func (m *Model) Layer() (weights, bias []float32) {
	end := len(m.weights) - m.outputs
	return m.weights[end-m.width*m.outputs : end], m.weights[end:]
}

// Scores computes the scores of a text: for classes, a distance from the class's hyperplane, positive if the text
// belongs to it. The length of out must be Outputs, and that of the vector Width.
func (m *Model) Scores(out []float32, s *Scratch, text string, vector []float32) {
	out = out[:m.outputs]
	clear(out)
	index, value := m.Vector(s, text)
	add := func(feature int, x float32) {
		row := m.weights[feature*m.outputs:][:len(out)]
		for i, w := range row {
			out[i] += float32(w * x)
		}
	}
	for k, feature := range index {
		add(int(feature), value[k])
	}
	for k, x := range vector {
		add(m.sparse()-1+k, x)
	}
}

// ScoresOf returns the scores of many texts, of shape (rows.N, Outputs), computed in parallel.
func (m *Model) ScoresOf(rows Rows) []float32 {
	out := make([]float32, rows.N*m.outputs)
	ParallelScratch(context.Background(), rows.N, func(i int, s *Scratch) {
		m.Scores(out[i*m.outputs:(i+1)*m.outputs], s, rows.Text(i), rows.Vector(i, m.width))
	})
	return out
}

// ParallelScratch is Parallel with scratch memory, for quick calls: a goroutine takes several at a time.
func ParallelScratch(ctx context.Context, n int, do func(i int, s *Scratch)) error {
	const part = 16
	return Parallel(ctx, (n+part-1)/part, func(p int) {
		var s Scratch
		for i := p * part; i < min(n, (p+1)*part); i++ {
			do(i, &s)
		}
	})
}

// Parallel calls do for 0 to n-1, on several goroutines. It returns when all calls have returned. If ctx ends first, it
// skips the remaining calls and returns ctx's error.
func Parallel(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(i)
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return ctx.Err()
}
