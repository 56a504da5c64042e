package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// forRows returns the defaults for a kind, with a file of these rows.
func forRows(t testing.TB, kind data.Kind, rows string) Config {
	t.Helper()
	c := must.Get(Named(string(kind), 0))(t)
	c.Data.File = filepath.Join(t.TempDir(), "rows.tsv")
	write(t, c.Data.File, rows)
	return c
}

// judged returns the report on the examples.
func judged(t testing.TB, task *Task, examples []data.Example, o PredictOptions) *Report {
	t.Helper()
	r := must.Get(judge.Answers(t.Context(), task.Model, examples, o))(t)
	return r
}

// ofRows returns a task that learns these rows. The kind must be one that learns from rows.
func ofRows(t testing.TB, kind data.Kind, rows string) *Task {
	t.Helper()
	return made(t, rowsConfig(t, kind, rows))
}

// rowsConfig returns the configuration of ofRows.
func rowsConfig(t testing.TB, kind data.Kind, rows string) Config {
	t.Helper()
	c := forRows(t, kind, rows)
	c.Data.SourceUnits, c.Data.Validation = tokenizer.Tokens, 20
	c.Mix = false // a baseline would be right from the start
	if kindOf(kind).about().format.AnswerUnits {
		c.Data.TargetUnits = tokenizer.Tokens
	}
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 16, 1, 2
	c.Training.MaxEpochs = 3
	return c
}

// someRows returns 200 rows for a kind.
func someRows(kind data.Kind) string {
	var s strings.Builder
	for i := range 200 {
		words := []string{"a", "b", "c", "d"}[i%4] + " " + []string{"a", "b", "c", "d", "e"}[i%5]
		switch kind {
		case data.KindClassification:
			fmt.Fprintf(&s, "%s\t%s\n", words, []string{"vowel", "other"}[min(1, i%4)])
		default:
			fmt.Fprintf(&s, "%s\t%s\n", words, strings.ToUpper(words))
		}
	}
	return s.String()
}

var noAnswer = Answer{Err: &InputError{Input: "", Err: errors.New("too long")}}

func TestJudgeOne(t *testing.T) {
	models := map[data.Kind]*Model{}
	for _, kind := range []data.Kind{data.KindSeq2Seq, data.KindClassification, data.KindTagging} {
		models[kind] = ofRows(t, kind, someRows(kind)).Model
	}
	for _, test := range []struct {
		name   string
		kind   data.Kind
		judged Judged
		right  bool
		edits  int
		beyond Beyond // wanted counts
	}{
		{"right", data.KindSeq2Seq, Judged{Source: "a b", References: []string{"A B"}, Answer: Answer{Text: "A B"}}, true, 0, Beyond{}},
		{"right but for spaces", data.KindSeq2Seq, Judged{Source: "a b", References: []string{"A  B "}, Answer: Answer{Text: "A B"}}, true, 0, Beyond{}},
		{"the second is right", data.KindSeq2Seq, Judged{Source: "a b", References: []string{"C", "A B"}, Answer: Answer{Text: "A B"}}, true, 0, Beyond{}},
		{"edits to the nearest reference", data.KindSeq2Seq, Judged{Source: "a", References: []string{"C D", "A B"}, Answer: Answer{Text: "A"}}, false, 1, Beyond{}},
		{"unknown reference", data.KindSeq2Seq, Judged{Source: "a", References: []string{"A Q"}, Answer: Answer{Text: "A B"}}, false, 1, Beyond{UnknownReferences: 1}},
		{"unknown reference, unknown answer", data.KindSeq2Seq, Judged{Source: "a", References: []string{"\uFFFD"}, Answer: Answer{Text: "\uFFFD"}}, false, 0, Beyond{UnknownReferences: 1}},
		{"unknown source", data.KindSeq2Seq, Judged{Source: "q", References: []string{"A"}, Answer: Answer{Text: "A", Unknown: true}}, true, 0, Beyond{UnknownSources: 1}},
		{"long reference", data.KindSeq2Seq, Judged{Source: "a", References: []string{strings.Repeat("A ", 600)}, Answer: Answer{Text: "A B"}}, false, 599, Beyond{LongReferences: 1}},
		{"no answer", data.KindSeq2Seq, Judged{Source: "a b", References: []string{"A B"}, Answer: noAnswer}, false, 2, Beyond{Unanswered: 1}},
		{"label", data.KindClassification, Judged{Source: "a", References: []string{"vowel"}, Answer: Answer{Text: "vowel"}}, true, 0, Beyond{}},
		{"wrong label", data.KindClassification, Judged{Source: "b", References: []string{"other"}, Answer: Answer{Text: "vowel"}}, false, 1, Beyond{}},
		{"unknown label", data.KindClassification, Judged{Source: "b", References: []string{"new"}, Answer: Answer{Text: "vowel"}}, false, 1, Beyond{UnknownReferences: 1}},
		{"cut source", data.KindClassification, Judged{Source: "a", References: []string{"vowel"}, Answer: Answer{Text: "vowel", Cut: true}}, true, 0, Beyond{CutSources: 1}},
		{"no label", data.KindClassification, Judged{Source: "b", References: []string{"other"}, Answer: noAnswer}, false, 1, Beyond{Unanswered: 1}},
		{"tagging", data.KindTagging, Judged{Source: "a b", References: []string{"A B"}, Answer: Answer{Text: "A B"}}, true, 0, Beyond{}},
		{"a wrong tag", data.KindTagging, Judged{Source: "a b", References: []string{"A B"}, Answer: Answer{Text: "B B"}}, false, 1, Beyond{}},
		{"unknown tag", data.KindTagging, Judged{Source: "a b", References: []string{"A Q"}, Answer: Answer{Text: "A B"}}, false, 1, Beyond{UnknownReferences: 1}},
		{"no tags", data.KindTagging, Judged{Source: "a b", References: []string{"A B"}, Answer: noAnswer}, false, 2, Beyond{Unanswered: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var examples []data.Example
			for _, reference := range test.judged.References {
				examples = append(examples, data.Example{Source: test.judged.Source, Answer: reference})
			}
			r := judge.New(models[test.kind], examples)
			r.Add(models[test.kind], []Answer{test.judged.Answer})
			test.judged = r.Judged[0]
			if test.judged.Right != test.right || test.judged.Edits != test.edits || (r.Right == 1) != test.right {
				t.Errorf("right: %v (%d in the report) with %d edits, want %v with %d edits", test.judged.Right, r.Right, test.judged.Edits, test.right, test.edits)
			}
			if r.Beyond != test.beyond {
				t.Errorf("the counts beyond the model are %+v, want %+v", r.Beyond, test.beyond)
			}
			if want := "Beyond the model: 1 source cut to the length of the model's context."; strings.Contains(r.String(), want) != (r.CutSources > 0) {
				t.Errorf("the report is\n%s\nwant %q in it: %t", r, want, r.CutSources > 0)
			}
			if edits := r.Errors.Edits; test.kind == data.KindSeq2Seq && edits != test.edits {
				t.Errorf("the error rate has %d edits, want %d", edits, test.edits)
			}
			if total := r.Classes.Macro(); test.kind != data.KindSeq2Seq && total.Rows-total.Right != test.edits {
				t.Errorf("%d of %d classes are right, want %d wrong", total.Right, total.Rows, test.edits)
			}
		})
	}
}

// TestJudge compares a report with the answers of Predict, and looks for the numbers in its text.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, kind := range []data.Kind{data.KindSeq2Seq, data.KindClassification, data.KindTagging} {
		t.Run(string(kind), func(t *testing.T) {
			task := ofRows(t, kind, someRows(kind))
			run(t, task, filepath.Join(t.TempDir(), "run"), train.RunOptions{})
			examples, notes, err := ReadExamples(task.Model, task.Config.Data.File)
			if err != nil || len(examples) != 200 || len(notes) != 1 || !strings.Contains(notes[0], "the run was trained on") {
				t.Fatalf("got %d examples, notes %q, %v, want 200 and a note", len(examples), notes, err)
			}
			examples = append(examples, data.Example{Source: "a b", Answer: "A A"}, data.Example{Source: "", Answer: "A"}, data.Example{Source: "q", Answer: "Q"})
			r := judged(t, task, examples, PredictOptions{})
			right := 0
			references := map[string][]string{}
			for _, e := range examples {
				references[e.Source] = append(references[e.Source], e.Answer)
			}
			judged := len(examples)
			if kind == data.KindSeq2Seq {
				judged = len(references)
			}
			for i, j := range r.Judged {
				want, _ := task.Predict(j.Source)
				if j.Answer.Text != want {
					t.Errorf("%q: the report has the answer %q, Predict returns %q", j.Source, j.Answer.Text, want)
				}
				answers := references[j.Source]
				if kind != data.KindSeq2Seq {
					answers = []string{examples[i].Answer}
				}
				if slices.Contains(answers, want) != j.Right {
					t.Errorf("the answer %q to %q: right is %v, with the references %q", want, j.Source, j.Right, answers)
				}
				if j.Right {
					right++
				}
			}
			if len(r.Judged) != judged || r.Right != right || r.Unanswered != 1 || r.UnknownSources != 1 || r.UnknownReferences == 0 {
				t.Errorf("%d judged, %d right, %d unanswered, %d unknown sources, %d unknown references; want %d judged, %d right, 1, 1 and at least 1", len(r.Judged), r.Right, r.Unanswered, r.UnknownSources, r.UnknownReferences, judged, right)
			}
			text := r.String()
			must.Have(t, text, map[data.Kind][]string{
				data.KindSeq2Seq:        {fmt.Sprintf("(%d of %d sources answered", right, judged), "the nearest references have ", "chrF: ", "BLEU: "},
				data.KindClassification: {fmt.Sprintf("(%d of 203 labels right; 95 %% interval 0.727 to 0.839)", right), "precision", "vowel 2", "mean of"},
				data.KindTagging:        {fmt.Sprintf("(%d of 203 rows with every tag right)", right), "tags right", "mean of"},
			}[kind]...)
			must.Have(t, text, "Beyond the model: 1 source without an answer; 1 source with letters")
		})
	}
}

// On the validation examples, Judge and Evaluate must count the same right answers.
func TestJudgeIsEvaluate(t *testing.T) {
	t.Parallel()
	for _, kind := range []data.Kind{data.KindClassification, data.KindTagging} {
		task := ofRows(t, kind, someRows(kind))
		s := evaluated(t, task)
		r := judged(t, task, task.Examples(), PredictOptions{})
		if total := r.Classes.Macro(); total.Right != s.Right || total.Rows != s.Total || s.Total == 0 {
			t.Errorf("%s: Judge counts %d of %d right, Evaluate %d of %d", kind, total.Right, total.Rows, s.Right, s.Total)
		}
	}
	task := fitted(t, small(t, "brackets"))
	s := evaluated(t, task)
	if r, err := judge.Answers(t.Context(), task.Model, task.Examples(), PredictOptions{}); err != nil || r.Right != s.Right || len(r.Judged) != s.Total {
		t.Errorf("brackets: Judge counts %d of %d right, %v; Evaluate %d of %d", r.Right, len(r.Judged), err, s.Right, s.Total)
	}
}

// If the references have unknown tags, the unknown symbol isn't a right answer, in Evaluate and in Judge.
func TestUnknownIsNeverRight(t *testing.T) {
	c := withFile(t, "tagging", "rows.tsv", someRows(data.KindTagging))
	c.Data.ValidationFile = filepath.Join(t.TempDir(), "new.tsv")
	write(t, c.Data.ValidationFile, "a b\tX Y\nb c\tY Z\n")
	task := made(t, c)
	task.Params.Get("head.bias").Value.Float32s()[task.Config.Task.Target.Unknown()] = 100
	s := evaluated(t, task)
	r := judged(t, task, task.Examples(), PredictOptions{})
	if text := r.Judged[0].Answer.Text; text != "� �" || r.Right != 0 || s.Right != 0 || s.Total != 4 {
		t.Errorf("the answer is %q: Judge counts %d rows right, and Evaluate %d of %d tags; want no rows, and 0 of 4 tags", text, r.Right, s.Right, s.Total)
	}
}

func TestJudgeErrors(t *testing.T) {
	model := ofRows(t, data.KindSeq2Seq, someRows(data.KindSeq2Seq))
	text := made(t, small(t, "text"))
	columns := ofRows(t, data.KindSeq2Seq, someRows(data.KindSeq2Seq))
	columns.Model.Config.Data.Columns = []string{"x", "y"}
	predictFile := func(task *Task, file string) error {
		return PredictFile(t.Context(), task.Model, file, io.Discard, PredictOptions{}, nil, nil)
	}
	for name, call := range map[string]func() error{
		"no examples": func() error { _, err := judge.Answers(t.Context(), model.Model, nil, PredictOptions{}); return err },
		"Judge with a text model": func() error {
			_, err := judge.Answers(t.Context(), text.Model, []data.Example{{Source: "a", Answer: "b"}}, PredictOptions{})
			return err
		},
		"ReadExamples with a text model": func() error { _, _, err := ReadExamples(text.Model, "x"); return err },
		"PredictFile with a text model":  func() error { return predictFile(text, "x") },
		"no file":                        func() error { _, _, err := ReadExamples(model.Model); return err },
		"a missing file":                 func() error { _, _, err := ReadExamples(model.Model, "none.tsv"); return err },
		"a missing column": func() error {
			_, _, err := ReadExamples(columns.Model, columns.Config.Data.File)
			return err
		},
		"a missing column of inputs": func() error { return predictFile(columns, columns.Config.Data.File) },
	} {
		if err := call(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	columns.Model.Config.Data.Columns = []string{}
	must.Fail(t, predictFile(columns, columns.Config.Data.File), "data.columns must name 1 column, the source, got []")
	if examples := text.Examples(); examples != nil {
		t.Errorf("a text task has the examples %v, want nil", examples)
	}
}

// A model of byte pairs with little training generates parts of characters. Its answers and reports must be valid
// UTF-8.
func TestAnswersOfBytePairsAreUTF8(t *testing.T) {
	c := forRows(t, data.KindSeq2Seq, strings.Repeat("été là\tgarçon 世界\nsommer\tgroß 🙂\nnoël\tœuf\n", 9))
	c.Data.SourceUnits, c.Data.TargetUnits, c.Data.VocabSize = tokenizer.BPE, tokenizer.BPE, 270
	task := made(t, c) // untrained
	parts := 0
	for _, beam := range []int{1, 3} {
		r := judged(t, task, []data.Example{{Source: "été", Answer: "là"}, {Source: "ñ", Answer: "世"}}, PredictOptions{Beam: beam})
		var file bytes.Buffer
		if err := r.WriteAnswers(&file, '\t'); err != nil || !utf8.Valid(file.Bytes()) {
			t.Errorf("with a beam of %d, WriteAnswers writes %q, %v, want valid UTF-8", beam, file.Bytes(), err)
		}
		a, err := task.Attention("été", "")
		if err != nil || !utf8.ValidString(a.Answer) {
			t.Errorf("Attention has the answer %q, %v, want valid UTF-8", a.Answer, err)
		}
		for _, j := range r.Judged {
			parts += strings.Count(j.Answer.Text, "\uFFFD")
		}
	}
	if parts == 0 {
		t.Error("no answer has a part of a character, so the test checks nothing")
	}
}
