package judge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

func TestWriteAnswers(t *testing.T) {
	r := Report{kind: kindOf(data.KindSeq2Seq), Judged: []Judged{
		{Source: "a\tb\\", References: []string{"x\ny", "\r"}, Answer: model.Answer{Text: "x", LogProb: -0.5}, Edits: 2},
		{Source: "c", References: []string{"C"}, Answer: model.Answer{Text: "C", LogProb: -1e-5}, Right: true},
		{Source: "d", References: []string{"D"}, Answer: model.Answer{Err: errors.New("too long")}, Edits: 1},
	}}
	for separator, want := range map[rune]string{
		'\t': "source\tanswer\tright\tedits\tlog_prob\treference\n" +
			"a\\tb\\\\\tx\tfalse\t2\t-0.5000\tx\\ny\t\\r\n" + "c\tC\ttrue\t0\t0.0000\tC\n" + "d\t\tfalse\t1\t\tD\n",
		',': "source,answer,right,edits,log_prob,reference\n" +
			"a\tb\\,x,false,2,-0.5000,\"x\ny\",\"\r\"\n" + "c,C,true,0,0.0000,C\n" + "d,,false,1,,D\n",
	} {
		var got strings.Builder
		if err := r.WriteAnswers(&got, separator); err != nil || got.String() != want {
			t.Errorf("separator %q: got %q, %v, want %q", separator, got.String(), err, want)
		}
	}
}

// BLEU counts runs of four words. If all answers are shorter, the report must say this instead of a BLEU of 0.
func TestReportBLEU(t *testing.T) {
	for _, test := range []struct{ name, answer, reference, want string }{
		{"a word", "1984", "1984", "BLEU: none, as no answer has four words\n"},
		{"sentences", "the cat sat down", "the cat sat down", "BLEU: 100.00\n"},
		{"nothing right", "a b c d", "w x y z", "BLEU: 0.00\n"},
	} {
		r := Report{kind: kindOf(data.KindSeq2Seq), Judged: []Judged{{Answer: model.Answer{Text: test.answer}}}}
		r.BLEU.Add(test.answer, test.reference)
		must.Have(t, r.String(), test.want)
	}
}

// A kind without a line in kinds compares answers as texts, which needn't be known.
func TestOtherKind(t *testing.T) {
	r := Report{kind: kindOf("other"), Judged: []Judged{
		{References: []string{"the cat"}, Answer: model.Answer{Text: "the cat"}},
		{References: []string{"a dog"}, Answer: model.Answer{Text: "dog"}},
		{References: []string{""}, Answer: model.Answer{Err: errors.New("too long")}},
	}}
	m := &model.Model{Config: &model.Config{Task: data.Rule{Kind: "other"}, Data: data.Settings{File: "rows.tsv"}}}
	for i := range r.Judged {
		r.judge(m, &r.Judged[i])
	}
	must.Have(t, r.String(), "Exact: 0.3333 (1 of 3 sources answered with one of their references; 95 % interval 0.061 to 0.792)", "Beyond the model: 1 source without an answer.")
	s := ScoresOf(m, nil, &r)
	if s.Score != "exact_match" || *s.Value != r.Values()["exact_match"] || *s.Right != 1 || s.Unit != "answers" || s.Beyond.UnknownReferences != 0 {
		t.Errorf("got the scores %+v, want an exact_match of 1/3", s)
	}
}

// A class has the same keys as the mean of all classes, and its name. Tags of entities are scored by type.
func TestScoresOfClasses(t *testing.T) {
	r := Report{kind: kindOf(data.KindTagging), Judged: make([]Judged, 2)}
	r.Classes.Add("B-PER", "B-PER")
	r.Classes.Add("O", "B-PER")
	r.Entities.Add([]string{"B-PER", "O"}, []string{"B-PER", "B-PER"})
	var s Scores
	r.kind.scores(&r, &s)
	if want := []string{"answered", "class", "f1", "precision", "recall", "right", "rows"}; !slices.Equal(must.Keys(t, s.Classes[0]), want) {
		t.Errorf("a class has the keys %q, want %q", must.Keys(t, s.Classes[0]), want)
	}
	if c := s.Classes[0]; c.Class != "B-PER" || c.Recall != 0.5 || c.Precision != 1 || *s.Value != 0.5 || s.Macro.Rows != 2 {
		t.Errorf("got the class %+v, the value %g and the mean %+v, want B-PER with recall 0.5 and precision 1, 0.5 and 2 rows", c, *s.Value, s.Macro)
	}
	if s.Entities == nil || s.Entities.Recall != 0.5 || len(s.Types) != 1 || s.Types[0].Class != "PER" {
		t.Errorf("got the entities %+v and the types %+v, want recall 0.5 and the type PER", s.Entities, s.Types)
	}
}
