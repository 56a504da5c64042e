package task

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/score"
	"github.com/heed-go/heed/train/task/judge"
)

func TestWordTags(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{
		"O": "O O O", "NOUN": "NOUN NOUN NOUN", "S": "S S S", "-": "- - -", "B": "B I I", "I": "I I I",
		"B-a-b": "B-a-b I-a-b I-a-b", "I-x": "I-x I-x I-x", "M-x": "M-x M-x M-x",
		"E-x": "I-x I-x E-x", "x-B": "x-B x-I x-I", "x-y-S": "x-y-B x-y-I x-y-E", "L-x": "I-x I-x L-x", "S-x": "B-x I-x E-x", "U-x": "B-x I-x L-x",
	} {
		got := wordTags(tag, 3)
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", tag, got, want)
		}
		if one := wordTags(tag, 1); !slices.Equal(one, []string{tag}) {
			t.Errorf("%s: got %q for one word", tag, one)
		}
		if tag == "S" || tag == "NOUN" {
			continue
		}
		if n := len(score.FindEntities([]string{tag})); len(score.FindEntities(got)) != n || len(score.FindEntities(wordTags(tag, 2))) != n {
			t.Errorf("%s: its words don't mark %d entities", tag, n)
		}
	}
}

func TestIntoWords(t *testing.T) {
	t.Parallel()
	row := []string{"The  U.S. sent\tx2", "O S-LOC O B"}
	if err := intoWords(row, text.Words); err != nil || row[0] != "The U . S . sent x 2" || row[1] != "O B-LOC I-LOC I-LOC E-LOC O B I" {
		t.Errorf("got %q, %v", row, err)
	}
	long := []string{strings.Repeat(".", 1<<20), "B-" + strings.Repeat("x", 1<<20)}
	must.Fail(t, intoWords(long, text.Words), "the words of the row and their tags have more than 4 MiB")
}

// A model of words finds entities in plain text, and answers pre-split rows with one tag per token.
func TestTaggingWords(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for i := range 240 {
		name, place := []string{"Ann", "Zoë", "Tom"}[i%3], []string{"U.S.", "Bern", "Al-Ain"}[i/3%3]
		if i%2 == 0 {
			fmt.Fprintf(&rows, "%s B-PER\n, O\nin O\n%s B-LOC\n. O\n\n", name, place)
		} else {
			fmt.Fprintf(&rows, "In O\n%s B-LOC\n, O\n%s B-PER\n's O\ncat O\n. O\n\n", place, name)
		}
	}
	c := withFile(t, "tagging", "rows.conll", rows.String())
	c.Data.SourceUnits = tokenizer.Words
	c.Mix = false
	c.Model.Dim, c.Model.Layers, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 16, 1, 6, 0.01
	m := fitted(t, c).Model

	answers := must.Get(m.PredictAll(t.Context(), []string{"In Al-Ain, Zoë's cat."}, PredictOptions{}))(t)
	if a := answers[0]; a.Text != "O B-LOC I-LOC I-LOC O B-PER O O O O" ||
		!slices.Equal(a.Spans, []Span{span("LOC", 3, 9, "Al-Ain"), span("PER", 11, 15, "Zoë")}) {
		t.Errorf("got %+v", a)
	}

	file := filepath.Join(t.TempDir(), "new.conll")
	must.Do(t, os.WriteFile(file, []byte("In\nAl-Ain\n,\nZoë\n's\n\nTom\nin\nU.S.\n"), 0o666))
	var out strings.Builder
	var spans [][]Span
	err := PredictFile(t.Context(), m, file, &out, PredictOptions{Top: 2}, []string{"answer"}, func(_ int, a Answer) []any {
		spans = append(spans, a.Spans)
		if len(a.Top) != 2 || a.Top[0].Text != a.Text {
			t.Errorf("got the likeliest answers %+v to %q", a.Top, a.Text)
		}
		return []any{a.Text}
	})
	if want := "In O\nAl-Ain B-LOC\n, O\nZoë B-PER\n's O\n\nTom B-PER\nin O\nU.S. B-LOC\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
	if len(spans) != 2 || len(spans[0]) != 2 || spans[0][0].Text != "Al-Ain" || spans[1][1].Text != "U.S." {
		t.Errorf("got the spans %+v", spans)
	}
	examples, _, err := ReadExamples(m, c.Data.File)
	must.Do(t, err)
	r, err := judge.Answers(t.Context(), m, examples[:20], PredictOptions{})
	if err != nil || r.Entities.Total().F1 < 0.99 || r.UnknownReferences > 0 {
		t.Errorf("got %v, %v, want all entities found", r, err)
	}
	for _, j := range r.Judged {
		if j.Right && (len(j.Spans) != 2 || !slices.Equal(j.Spans, j.Answer.Spans)) {
			t.Errorf("got %+v, want the spans of the reference", j)
		}
	}
}

// A model that begins as a published one gives each word of a plain text a tag, at the word's first piece, and each
// token of a file the tag of its first word.
func TestTaggingPublished(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	var rows strings.Builder
	for i := range 240 {
		name, place := []string{"ann", "zoe", "tom"}[i%3], []string{"u.s.", "bern"}[i/3%2]
		fmt.Fprintf(&rows, "%s B-PER\nlee I-PER\nis O\nin O\n%s B-LOC\n\n", name, place)
		if i%3 == 0 {
			fmt.Fprintf(&rows, "in O\n%s B-LOC\n%s B-PER\n? O\n\n", place, name)
		}
	}
	c := withFile(t, "tagging", "rows.conll", rows.String())
	must.Do(t, c.StartFrom(publishedFolder(t, "bert")))
	c.Mix = false
	c.Training.BatchSize, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 16, 12, 0.005
	m := fitted(t, c).Model

	inputs := []string{"in u.s.\tzoe", "tom lee is", " ", strings.Repeat("a ", 20), "in bern zoe?"}
	answers := must.Get(m.PredictAll(t.Context(), inputs, PredictOptions{Top: 2}))(t)
	if a := answers[0]; a.Text != "O B-LOC I-LOC I-LOC I-LOC B-PER" || len(a.Top) != 2 || !slices.Equal(a.Spans, []Span{span("LOC", 3, 7, "u.s."), span("PER", 8, 11, "zoe")}) {
		t.Errorf("got %+v", a)
	}
	if a := answers[1]; a.Text != "B-PER I-PER O" || !slices.Equal(a.Spans, []Span{span("PER", 0, 7, "tom lee")}) {
		t.Errorf("got %+v", a)
	}
	must.Fail(t, answers[2].Err, "must have 1 to 32 symbols, got 0")
	if a := answers[3]; a.Err != nil || len(strings.Fields(a.Text)) != 20 {
		t.Errorf("got %+v, want a tag for each of 20 words", a)
	}
	if a := answers[4]; a.Text != "O B-LOC B-PER O" || !slices.Equal(a.Spans, []Span{span("LOC", 3, 7, "bern"), span("PER", 8, 11, "zoe")}) {
		t.Errorf("got %+v", a)
	}
	for _, a := range answers[:2] { // the logits say the same
		_, outputs, err := m.Outputs(t.Context(), []string{a.Input}, mixture{})
		must.Do(t, err)
		var tags []int
		logProb := 0.0
		for logits := range slices.Chunk(outputs[0].Network, m.Coder.Layout().Classes) {
			best, p := logit.Likeliest(logits)
			tags, logProb = append(tags, best), logProb+p
		}
		if text, err := m.Coder.Answer(tags); err != nil || text != a.Text || math.Abs(logProb-a.LogProb) > 1e-5 {
			t.Errorf("%q: got %s with %v, want %s with %v, %v", a.Input, a.Text, a.LogProb, text, logProb, err)
		}
	}

	file := filepath.Join(t.TempDir(), "new.conll")
	write(t, file, "in\nbern\n\ntom\nlee\nis\n")
	var out strings.Builder
	err := PredictFile(t.Context(), m, file, &out, PredictOptions{}, []string{"answer"}, func(_ int, a Answer) []any { return []any{a.Text} })
	if want := "in O\nbern B-LOC\n\ntom B-PER\nlee I-PER\nis O\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
	examples, _, err := ReadExamples(m, c.Data.File)
	must.Do(t, err)
	r, err := judge.Answers(t.Context(), m, examples[:20], PredictOptions{})
	if err != nil || r.Entities.Total().F1 < 0.99 || r.Right != len(r.Judged) || r.Classes.Macro().Rows < 80 {
		t.Errorf("got %v, %v, want all entities found, and tags counted per word", r, err)
	}
}

// A source that is longer than the model's context has a tag for each symbol. A tag is one of a part's, in which it is
// far from the end, and the linear model's scores belong to the same symbols.
func TestLongTags(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, "%s B-PER\nlee I-PER\nis O\nin O\n%s B-LOC\n\n", []string{"ann", "zoe", "tom"}[i%3], []string{"u.s.", "bern"}[i/3%2])
	}
	long := strings.TrimSpace(strings.Repeat("tom lee is in u.s. zoe ann in bern ", 12))
	for name, begin := range map[string]func(c *Config){
		"words":     func(c *Config) { c.Data.SourceUnits = tokenizer.Words },
		"tokens":    func(c *Config) { c.Data.SourceUnits = tokenizer.Tokens },
		"published": func(c *Config) { must.Do(t, c.StartFrom(publishedFolder(t, "bert"))) },
	} {
		t.Run(name, func(t *testing.T) {
			c := withFile(t, "tagging", "rows.conll", rows.String())
			begin(&c)
			task := made(t, c)
			m, r := task.Model, &task.Config.Task
			solved, _, err := task.fitLinear(t.Context(), nil, false)
			must.Do(t, err)
			m.Linear = solved
			symbols, _, err := r.Tagged(long)
			must.Do(t, err)
			for _, x := range []mixture{{}, {Linear: 0.4}, {Linear: 1}} {
				m.Mixture = x
				var want []string
				for _, part := range must.Get(r.TaggedParts(long))(t) {
					if part.From != len(want) || part.Source != long[symbols[part.First].Start:symbols[part.End-1].End] {
						t.Fatalf("got the part %+v after %d symbols", part, len(want))
					}
					a := must.Get(m.PredictAll(t.Context(), []string{part.Source}, PredictOptions{}))(t)[0]
					must.Do(t, a.Err)
					want = append(want, strings.Fields(a.Text)[part.From-part.First:part.To-part.First]...)
				}
				inputs := []string{"ann lee", long, "in bern"}
				got := must.Get(m.PredictAll(t.Context(), inputs, PredictOptions{Top: 2}))(t)
				a := got[1]
				if a.Err != nil || a.Cut || len(want) != len(symbols) || len(a.Top) != 2 || a.Top[0].Text != a.Text {
					t.Fatalf("%v: got %+v, want %d tags", x, a, len(symbols))
				}
				if x.Linear == 0 && a.Text != strings.Join(want, " ") {
					t.Errorf("%v: got %s, want %s", x, a.Text, strings.Join(want, " "))
				}
				if x.Linear == 1 { // it reads the whole source
					scores := must.Get(solved.SourceScores(t.Context(), r, linear.Rows{N: 1, Text: func(int) string { return long }}))(t)
					var tags []int
					for some := range slices.Chunk(scores[0], solved.Outputs()) {
						best, _ := logit.Likeliest(some)
						tags = append(tags, best)
					}
					if text, err := m.Coder.Answer(tags); err != nil || a.Text != text {
						t.Errorf("got %s, want %s, %v", a.Text, text, err)
					}
				}
				answers, outputs, err := m.Outputs(t.Context(), inputs, mixture{Linear: 0.5})
				if err != nil || len(outputs) != len(inputs) {
					t.Fatalf("got %d outputs, %v", len(outputs), err)
				}
				if err := m.Mix(answers, outputs, x, PredictOptions{}); err != nil || answers[1].Text != a.Text {
					t.Errorf("%v: mixed later, %s, want %s, %v", x, answers[1].Text, a.Text, err)
				}
			}
		})
	}
}

// Rows with spans of characters teach a published model for tags, which keeps its head. The exported run opens as such
// a model, with the same tags.
func TestTaggingSpans(t *testing.T) {
	t.Parallel()
	const from = "../model/testdata/entities/pieces"
	var rows strings.Builder
	for i := range 240 {
		name, place := []string{"Ann", "Lee", "Dr"}[i%3], []string{"Oslo", "York"}[i/3%2]
		fmt.Fprintf(&rows, `{"text": "%s in %s.", "label": [[0, %d, "PER"], [%d, %d, "LOC"]]}`+"\n", name, place, len(name), len(name)+4, len(name)+8)
	}
	c := withFile(t, "tagging", "rows.jsonl", rows.String())
	c.Mix = false
	must.Do(t, c.StartFrom(from))
	c.Training.BatchSize, c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 32, 6, 0.01
	task := made(t, c)
	if l := task.Loaded; len(l.Kept)+len(l.Unused) > 0 {
		t.Errorf("new parameters: %q, left out: %q", l.Kept, l.Unused)
	}
	must.Have(t, task.DescribeData(), "480 spans in 240 texts of characters became tags on whole words\n")
	texts := []string{"Ann in Oslo .", "Lee isn't in York ."}
	published := must.Get(Open(from))(t)
	begun, want := must.Get(task.PredictAll(t.Context(), texts, PredictOptions{}))(t), must.Get(published.PredictAll(t.Context(), texts, PredictOptions{}))(t)
	for i := range texts {
		ours, theirs := strings.Fields(begun[i].Text), strings.Fields(want[i].Text)
		for j := range theirs {
			if slices.Contains([]string{"O", "B-PER", "B-LOC"}, theirs[j]) && ours[j] != theirs[j] { // the rows lack the other tags
				t.Errorf("%q: the run begins with %q, want %q", texts[i], begun[i].Text, want[i].Text)
			}
		}
	}
	out := filepath.Join(t.TempDir(), "run")
	run(t, task, out, train.RunOptions{})
	learned := must.Get(Open(out))(t)
	if a := must.Get(learned.PredictAll(t.Context(), texts[:1], PredictOptions{}))(t); a[0].Text != "B-PER O B-LOC O" {
		t.Errorf("learned %q", a[0].Text)
	}
	folder := filepath.Join(t.TempDir(), "published")
	must.Do(t, learned.Export(folder))
	exported := must.Get(Open(folder))(t)
	for given, want := range map[string]string{"A B C": "A C", "A B C D E": "A B C D E"} {
		a := Answer{Input: "Oslo. York", Text: given}
		if tokenTags(&exported.Config.Task, &a); a.Text != want {
			t.Errorf("tags of tokens: got %q, want %q", a.Text, want)
		}
	}
	got, want := must.Get(exported.PredictAll(t.Context(), texts, PredictOptions{}))(t), must.Get(learned.PredictAll(t.Context(), texts, PredictOptions{}))(t)
	for i := range texts {
		if got[i].Text != want[i].Text || len(got[i].Spans) != len(want[i].Spans) {
			t.Errorf("exported: got %+v, want %+v", got[i], want[i])
		}
	}
}

// Tags that are numbers stand for a published model's tags, before a token becomes words.
func TestNumbersOfTags(t *testing.T) {
	m := must.Get(Open(publishedFolder(t, "bert-tags")))(t)
	m.Config.Task.Classes = []string{"O", "B-A", "I-A"}
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	write(t, file, `{"tokens": ["a", "b.c"], "ner_tags": [0, 1]}`+"\n")
	examples, _, err := ReadExamples(m, file)
	if err != nil || examples[0].Answer != "O B-A I-A I-A" {
		t.Errorf("got %+v, %v", examples, err)
	}
}
