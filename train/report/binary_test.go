package report

import (
	"math"
	"testing"

	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

func TestBinary(t *testing.T) {
	r := &judge.Report{}
	for _, x := range []struct {
		p    float64 // of odd
		want string
	}{{0.95, "odd"}, {0.85, "even"}, {0.65, "odd"}, {0.25, "even"}, {0.25, "even"}, {0.15, "odd"}, {0.05, "even"}} {
		answer := model.Answer{Text: "odd", LogProb: math.Log(x.p)}
		if x.p < 0.5 {
			answer = model.Answer{Text: "even", LogProb: math.Log(1 - x.p)}
		}
		r.Judged = append(r.Judged, judge.Judged{References: []string{x.want}, Answer: answer})
	}
	b := binaryOf(r, []string{"even", "odd"})
	if b == nil || b.Label != "odd" || b.Rows != 7 || b.Positives != 3 || len(b.Recall.Dots) != 3 || len(b.Calibration.Dots) != 6 {
		t.Fatalf("got %+v", b)
	}
	if want := (1 + 2./3 + 3./6) / 3; math.Abs(b.Average-want) > 1e-9 {
		t.Errorf("the average precision is %v, want %v", b.Average, want)
	}
	if want := (0.05 + 0.85 + 0.35 + 0.5 + 0.85 + 0.05) / 7; math.Abs(b.Miscalibration-want) > 1e-9 {
		t.Errorf("the expected calibration error is %v, want %v", b.Miscalibration, want)
	}
	if d := b.Recall.Dots[2]; d.X != scatterSize || d.Y != scatterSize/2 || d.Title != "threshold 0.15: recall 100 %, precision 50.0 %" {
		t.Errorf("the last threshold is %+v", d)
	}
	if binaryOf(r, []string{"even", "odd", "none"}) != nil || binaryOf(&judge.Report{Judged: r.Judged[:1]}, []string{"even", "odd"}) != nil {
		t.Error("three labels, or rows of one label, have charts, want none")
	}
}
