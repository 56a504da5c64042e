package fit

import (
	"cmp"
	"context"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/metrics"
)

// Labels is like Classes for rows with any number of labels each, also none. Of the constants, it chooses the one with
// the largest average precision of all labels together.
func Labels(ctx context.Context, train linear.Rows, labels [][]int, classes int, validation linear.Rows, validationLabels [][]int,
	o Options) (m *linear.Model, held *Held, err error) {
	for _, part := range []struct {
		name   string
		rows   int
		labels [][]int
	}{{"training", train.N, labels}, {"validation", validation.N, validationLabels}} {
		err := checkLabels(part.name, part.rows, make([]int, len(part.labels)), 1)
		for _, some := range part.labels {
			err = cmp.Or(err, checkLabels(part.name, len(some), some, classes))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	p, err := newProblem(ctx, train, validation, classes, o)
	if err != nil {
		return nil, nil, err
	}
	s := &classFit{problem: p, classes: classes, several: Pick(labels, p.order)}
	s.quality = func(scores []float32, rows []int) float64 {
		if rows == nil {
			return averagePrecision(scores, classes, validationLabels)
		}
		return averagePrecision(scores, classes, Pick(s.several, rows))
	}
	return s.finish(ctx)
}

// averagePrecision returns the average precision of all labels together, of the rows that have scores (rows, classes),
// or 0 without labels.
func averagePrecision(scores []float32, classes int, labels [][]int) float64 {
	right, count := make([]bool, len(scores)), 0
	for row, some := range labels[:len(scores)/classes] {
		for _, label := range some {
			right[row*classes+label] = true
			count++
		}
	}
	if count == 0 {
		return 0
	}
	return metrics.AveragePrecision(scores, right)
}
