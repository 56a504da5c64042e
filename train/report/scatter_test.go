package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// The page about a regression of pairs has a plot and the farthest answers, but nothing about right answers. A private
// page has the plot only.
func TestScatter(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("one\tother\tsize\n")
	for i := range 200 {
		fmt.Fprintf(&rows, "zebra %d\tokapi %d\t%d\n", i, i%7, 100*(i%7))
	}
	learned, read := trained(t, "regression", rows.String(), func(c *task.Config) { c.Data.Columns = []string{"one", "other", "size"} })
	for _, private := range []bool{false, true} {
		r := read()
		r.Private = private
		must.Do(t, r.AddAnswers(t.Context(), learned.Model, learned))
		want, unwanted := []string{`<svg class="scatter"`, "<circle", "validation R²", "The validation R² is", "Mean absolute error"}, []string{"right answers", "nats", "of the validation rows"}
		texts := []string{"Answers farthest from the right numbers", "│ okapi"}
		if private {
			unwanted = append(unwanted, append(texts, "zebra")...)
		} else {
			want = append(want, texts...)
		}
		wantIn(t, written(t, r), want, unwanted)
	}
}

func TestScatterOf(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	r := &judge.Report{Judged: []judge.Judged{
		{Source: "a", References: []string{"0"}, Answer: model.Answer{Number: number(1)}},
		{Source: "b", References: []string{"10"}, Answer: model.Answer{Number: number(5)}},
		{Source: "c", References: []string{"3"}},
	}}
	s, far := scatterOf(r, strings.ToUpper)
	if len(s.Points) != 2 || s.Points[1].X != scatterSize || s.Points[1].Y != scatterSize/2 || s.Points[0].Y != 0.9*scatterSize {
		t.Errorf("the points are %+v, want (0, 0.9) and (1, 0.5) of the size", s.Points)
	}
	if len(s.Ticks) < 3 || s.Ticks[0].Label != "0" || s.Ticks[len(s.Ticks)-1].Label != "10" {
		t.Errorf("the ticks are %+v, want 0 to 10", s.Ticks)
	}
	if len(far) != 2 || far[0].Source != "B" || far[0].Error != "-5" {
		t.Errorf("the farthest answers are %+v, want b first", far)
	}
	r.Judged = r.Judged[2:]
	if s, far := scatterOf(r, strings.ToUpper); s != nil || far != nil {
		t.Errorf("without answers: got %v and %v, want nothing", s, far)
	}
}
