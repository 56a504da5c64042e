package fit

import (
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// With one label per row, Labels fits the models of Classes. With several, each label is told from the others alone.
func TestLabels(t *testing.T) {
	testseed.Slow(t)
	const classes = lanes + 3
	texts, labels := topics(1, 300, classes)
	rows, o := linear.Texts(texts), Options{constants: []float64{0.5}, tolerance: 1e-6}
	one, several, third := make([][]int, len(labels)), make([][]int, len(labels)), make([]int, len(labels))
	for i, label := range labels {
		one[i] = []int{label}
		switch {
		case i%5 == 0: // no label
		case label%2 == 0:
			several[i] = []int{label, (label + 3) % classes}
		default:
			several[i] = []int{label}
		}
		if slices.Contains(several[i], 3) {
			third[i] = 1
		}
	}
	want, _, err := Classes(t.Context(), rows, labels, classes, linear.Rows{}, nil, o)
	must.Do(t, err)
	got, _, err := Labels(t.Context(), rows, one, classes, linear.Rows{}, nil, o)
	must.Do(t, err)
	near(t, "one label", got.ScoresOf(rows), want.ScoresOf(rows), 0)

	want, _, err = Classes(t.Context(), rows, third, 2, linear.Rows{}, nil, o)
	must.Do(t, err)
	got, held, err := Labels(t.Context(), rows, several, classes, linear.Rows{}, nil, o)
	must.Do(t, err)
	all, alone := got.ScoresOf(rows), want.ScoresOf(rows)
	for i := range labels {
		if d := all[i*classes+3] - alone[i*2+1]; math.Abs(float64(d)) > 1e-3 {
			t.Fatalf("row %d: the score of label 3 is %g among others and %g alone", i, all[i*classes+3], alone[i*2+1])
		}
	}
	if len(held.Rows) != len(texts) || len(held.Scores) != len(texts)*classes {
		t.Errorf("%d rows with %d scores are held out", len(held.Rows), len(held.Scores))
	}
	m, _, err := Labels(t.Context(), rows, several, classes, rows, several, Options{})
	must.Do(t, err)
	if p := averagePrecision(m.ScoresOf(rows), classes, several); p < 0.9 {
		t.Errorf("the average precision of rows that were seen is %g", p)
	}
	_, _, err = Labels(t.Context(), rows, one[1:], classes, linear.Rows{}, nil, o)
	must.Fail(t, err, "for each of the 300 training rows, got 299")
	_, _, err = Labels(t.Context(), rows, one, 2, linear.Rows{}, nil, o)
	must.Fail(t, err, "expected labels from 0 to 1")
	_, _, err = Labels(t.Context(), rows, one, classes, linear.Texts(texts[:2]), [][]int{{1}, {2, classes}}, o)
	must.Fail(t, err, "expected labels from 0 to 10, got 11 for validation row 1")
}
