package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
)

// Spans point into the input, whatever is between its tokens.
func TestSpansOf(t *testing.T) {
	t.Parallel()
	m := ofRows(t, data.KindTagging, someEntities()).Model
	for _, test := range []struct {
		name, source, tags string
		want               []Span
	}{
		{"nothing", "ann saw", "O O", []Span{}},
		{"no input", "", "", []Span{}},
		{"white space", "  Zoë\tsaw \u3000ann  lee  ", "B-PER O B-PER I-PER", []Span{span("PER", 2, 6, "Zoë"), span("PER", 14, 22, "ann  lee")}},
		{"neighbours", "ann bob rome", "B-PER B-PER B-LOC", []Span{span("PER", 0, 3, "ann"), span("PER", 4, 7, "bob"), span("LOC", 8, 12, "rome")}},
		{"IOBES", "a b c d", "S-x B-y I-y E-y", []Span{span("x", 0, 1, "a"), span("y", 2, 7, "b c d")}},
		{"without types", "a b", "B I", []Span{span("", 0, 3, "a b")}},
		{"not an entity", "a b", "� NOUN", []Span{}},
		{"more tags", "ann", "B-PER I-PER", nil},
		{"more symbols", "ann lee", "B-PER", nil},
	} {
		if got := m.SpansOf(test.source, strings.Fields(test.tags)); !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// The spans of an answer follow from its tags. Answers whose tags don't mark entities have none.
func TestAnswerSpans(t *testing.T) {
	t.Parallel()
	inputs := []string{" ann  saw rome", "bob saw ann lee 3", "x", ""}
	for rows, marked := range map[string]bool{someEntities(): true, someRows(data.KindTagging): false} {
		task := fitted(t, ofRows(t, data.KindTagging, rows).Config)
		answers := must.Get(task.PredictAll(t.Context(), inputs, PredictOptions{Top: 2}))(t)
		found := 0
		for _, a := range answers {
			want := task.SpansOf(a.Input, strings.Fields(a.Text))
			if !marked || a.Err != nil {
				want = nil
			}
			if found += len(want); !slices.Equal(a.Spans, want) || (a.Spans == nil) != (want == nil) {
				t.Errorf("%+v: want the spans %+v", a, want)
			}
		}
		if marked && found == 0 {
			t.Error("the model answered no entity")
		}
	}
}
