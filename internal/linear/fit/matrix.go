package fit

import (
	"context"

	"github.com/heed-go/heed/internal/linear"
)

const chunkRows = 256 // rows that are in memory at once as n-grams

// A matrix has a sparse vector per row. Row i has the features index[starts[i]:starts[i+1]], and value has their
// values. It also has the vectors of the texts, (rows, width), whose numbers are the features from first.
type matrix struct {
	starts []int
	index  []uint32
	value  []float32

	dense        []float32
	width, first int
}

func (m *matrix) rows() int { return len(m.starts) - 1 }

func (m *matrix) row(i int) ([]uint32, []float32) {
	start, end := m.starts[i], m.starts[i+1]
	return m.index[start:end], m.value[start:end]
}

func (m *matrix) vector(i int) []float32 { return m.dense[i*m.width:][:m.width] }

// newMatrix returns the vectors of the rows with the numbers in order, whose texts have vectors of this width. It
// expects to find the given number of entries.
func newMatrix(ctx context.Context, v *linear.Vocabulary, rows linear.Rows, order []int, width, entries int) (*matrix, error) {
	m := &matrix{
		starts: make([]int, 1, len(order)+1), index: make([]uint32, 0, entries), value: make([]float32, 0, entries),
		width: width, first: v.Features() - width - 1,
	}
	var indexes [chunkRows][]uint32
	var values [chunkRows][]float32
	for start := 0; start < len(order); start += chunkRows {
		chunk := order[start:min(len(order), start+chunkRows)]
		err := linear.ParallelScratch(ctx, len(chunk), func(i int, s *linear.Scratch) {
			index, value := v.Vector(s, rows.Text(chunk[i]))
			indexes[i], values[i] = append(indexes[i][:0], index...), append(values[i][:0], value...)
		})
		if err != nil {
			return nil, err
		}
		for i := range chunk {
			m.index, m.value = append(m.index, indexes[i]...), append(m.value, values[i]...)
			m.starts = append(m.starts, len(m.index))
		}
	}
	return m, nil
}
