package score_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/heed-go/heed/train/score"
)

// The values are scikit-learn's.
func TestLabels(t *testing.T) {
	names := []string{"a", "b", "c"}
	right := [][]bool{{true, false, true}, {false, true, false}, {true, true, false}, {false, false, false}, {true, false, false}, {false, true, false}}
	scores := [][]float64{{.9, .2, .4}, {.3, .8, .4}, {.6, .3, .1}, {.55, .5, .4}, {.2, .1, .3}, {.6, .6, .2}}
	var l score.Labels
	for i, row := range scores {
		var answer, want []string
		for k, p := range row {
			if p >= 0.5 {
				answer = append(answer, names[k])
			}
			if right[i][k] {
				want = append(want, names[k])
			}
		}
		l.Add(answer, want)
		for k, p := range row {
			l.AddScore(names[k], p, right[i][k])
		}
	}
	micro, mean := l.AveragePrecision()
	got := []float64{micro, mean, l.Micro().F1, l.Macro().F1, l.Micro().Precision, l.Macro().Recall}
	for i, want := range []float64{0.7141483516483518, 0.6574074074074073, 0.5714285714285714, 0.41269841269841273, 0.5714285714285714, 0.4444444444444444} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("value %d is %v, want %v", i, got[i], want)
		}
	}
	if s := fmt.Sprint(l.Classes()[2]); s != "{c 0 0 0 0 0 1}" {
		t.Errorf("the score of c is %s", s)
	}
	var none score.Labels
	if none.Add(nil, nil); none.Micro().F1 != 0 || none.Classes() != nil {
		t.Errorf("without labels, the scores are %v and %v", none.Micro(), none.Classes())
	}
	if micro, mean := none.AveragePrecision(); micro == micro || mean == mean {
		t.Errorf("without labels, the average precisions are %v and %v, want NaN", micro, mean)
	}
}
