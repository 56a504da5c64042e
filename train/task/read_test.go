package task

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// TestFormatsOfRows reads one set of sentences from TSV, JSONL and CoNLL, and writes the answers back into each file.
func TestFormatsOfRows(t *testing.T) {
	tsv := made(t, withFile(t, "tagging", "a.tsv", strings.Repeat("the dog runs\tD N V\na dog\tD N\n", 20)))
	answer := must.Get(tsv.Predict("the dog runs"))(t)
	tags := strings.Fields(answer)
	for _, test := range []struct{ name, file, content, columns, want string }{
		{"JSONL", "a.jsonl", `{"tokens":["the","dog","runs"],"id":1,"tags":["D","N","V"]}` + "\n" + `{"tags":"D N","tokens":"a dog"}` + "\n", "columns: tokens and tags, keys of each line\n",
			`{"tokens":["the","dog","runs"],"id":1,"tags":["D","N","V"],"answer":"` + answer + `","log_prob":-1.5}`},
		{"CoNLL", "a.conll", "-DOCSTART- O O\n\nthe x D\ndog x N\nruns x V\n\na x D\ndog x N\n\n", "columns: 1 and 3 of each token's line\n",
			"-DOCSTART- O O _ _\n\nthe x D " + tags[0] + " -1.5\ndog x N " + tags[1] + " -1.5\nruns x V " + tags[2] + " -1.5\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			task := made(t, withFile(t, "tagging", test.file, strings.Repeat(test.content, 20)))
			l := descriptionOf(task)
			if l.Rows != 40 || l.Sources != 2 || l.Source.Units != tokenizer.Tokens || l.Answer.Units != tokenizer.Tokens || !strings.Contains(l.String(), test.columns) {
				t.Errorf("the description is\n%swant 40 rows in tokens, and %q", l, test.columns)
			}
			var out strings.Builder
			err := PredictFile(t.Context(), tsv.Model, task.Config.Data.File, &out, PredictOptions{}, []string{"answer", "log_prob"}, func(_ int, a Answer) []any {
				return []any{a.Text, json.Number("-1.5")}
			})
			if err != nil || !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("error %v, and the file begins with\n%.200s\nwant\n%s", err, out.String(), test.want)
			}
			c := withFile(t, "tagging", test.file, strings.Repeat(test.content, 20))
			c.Data.Header = "yes"
			must.Refuse(New(c))(t, test.file+`" is JSONL or CoNLL, which has no header: leave out data.header`)
			examples, _, err := ReadExamples(tsv.Model, task.Config.Data.File)
			if err != nil || len(examples) != 40 || examples[0].Source != "the dog runs" || examples[0].Answer != "D N V" {
				t.Errorf("error %v and examples %v, want 40", err, examples)
			}
		})
	}

	conll := filepath.Join(t.TempDir(), "a.bio")
	write(t, conll, strings.Repeat("dog N\n\na D\n\n", 20))
	for name, change := range map[string]func(c *Config){
		"classification": func(c *Config) {},
		"seq2seq":        func(c *Config) {},
		"tagging":        func(c *Config) { c.Data.SourceUnits = tokenizer.Characters },
	} {
		c := small(t, name)
		c.Data.File = conll
		change(&c)
		must.Refuse(New(c))(t, "only the task tagging with units tokens reads such files")
	}
}

// A task with three columns learns two texts per row, with a tab between them.
func TestPairs(t *testing.T) {
	var s strings.Builder
	s.WriteString("label,left,right,id\n")
	for i := range 100 {
		fmt.Fprintf(&s, "%s,a\tb %d,\"c, %d\",%d\n", []string{"yes", "no"}[i%2], i, i%2, i)
	}
	s.WriteString("yes,a,,100\n")
	columns := []string{"left", "right", "label"}
	c := withFile(t, "classification", "pairs.csv", s.String())
	c.Data.Columns = columns
	task := made(t, c)
	if !task.Config.Task.Pairs || !slices.Equal(task.Config.Task.Classes, []string{"no", "yes"}) || !strings.HasPrefix(task.Examples()[0].Source, "a b ") || strings.Count(task.Examples()[0].Source, "\tc, ") != 1 {
		t.Errorf("got the rule %+v and the examples %v", task.Config.Task, task.Examples())
	}
	must.Have(t, task.DescribeData(), "columns: left, right and label, named in the header\n", "line 102: the second text (column 3) is empty\n")

	file := filepath.Join(t.TempDir(), "new.tsv")
	write(t, file, "right\tleft\nc\ta\n\tb\n")
	answered := func(columns ...string) (out string, inputs []string, err error) {
		task.Model.Config.Data.Columns = columns
		var s strings.Builder
		err = PredictFile(t.Context(), task.Model, file, &s, PredictOptions{}, []string{"answer"}, func(_ int, a Answer) []any {
			inputs = append(inputs, a.Input)
			return []any{"x"}
		})
		return s.String(), inputs, err
	}
	for _, names := range [][]string{columns, columns[:2]} {
		if out, inputs, err := answered(names...); err != nil || !slices.Equal(inputs, []string{"a\tc", "\tb"}) || out != "right\tleft\tanswer\nc\ta\tx\n\tb\t\n" {
			t.Errorf("columns %q: the inputs are %q, the file is %q, and the error is %v", names, inputs, out, err)
		}
	}
	_, _, err := answered("left")
	must.Fail(t, err, `data.columns must name 2 columns, the first text and the second text, got ["left"]`)
	_, _, err = ReadExamples(task.Model, file)
	must.Fail(t, err, `data.columns must name 3 columns, the first text, the second text and the label, got ["left"]`)
	_, _, err = ReadExamples(task.Model, file, file)
	must.Fail(t, err, "several texts per row must be columns of one file")

	// Without Columns, a file with the usual names of two texts has two.
	c = withFile(t, "classification", "pairs.tsv", strings.Repeat("label\tpremise\thypothesis\nyes\ta\tb\nno\tb\tc\n", 30))
	c.Data.SkipBad = true
	must.Have(t, made(t, c).DescribeData(), "columns: premise, hypothesis and label, named")
	c.Task.Pairs, c.Data.Columns = false, []string{"1", "2", "3", "4"}
	must.Refuse(New(c))(t, `data.columns must name 2 columns, the text and the label, got ["1" "2" "3" "4"]; for two texts per row, name three`)
	c = withFile(t, "tagging", "pairs.tsv", strings.Repeat("a\tX\nb\tY\n", 30))
	c.Data.Columns = []string{"1", "2", "3"}
	must.Refuse(New(c))(t, "must name 2 columns, the token list and the tag list, got")
	c.Data.Columns, c.Task.Pairs = nil, true
	must.Refuse(New(c))(t, "task.pairs can't be set: a task of kind tagging learns one text per row")
}

// A published classifier reads one text or two: a tab in a file's only column of texts doesn't make it two. A run that
// begins with the model knows how many there are.
func TestTabs(t *testing.T) {
	dir := publishedFolder(t, "llama-classes")
	m := must.Get(Open(dir))(t)
	for path, rows := range map[string]string{"texts.csv": "text,more,label\n\"a\tb\",c,good\n", "texts.jsonl": `{"text":"a\tb","more":"c","label":"good"}` + "\n"} {
		file := filepath.Join(t.TempDir(), path)
		write(t, file, rows)
		for want, columns := range map[string][]string{"a b": {"text", "label"}, "a b\tc": {"text", "more", "label"}} {
			m.Config.Data.Columns = columns
			if examples, _, err := ReadExamples(m, file); err != nil || examples[0].Source != want {
				t.Errorf("%s, columns %q: the examples are %+v, %v, want the source %q", path, columns, examples, err, want)
			}
			m.Config.Data.Columns = columns[:len(columns)-1]
			must.Do(t, PredictFile(t.Context(), m, file, io.Discard, PredictOptions{}, nil, func(_ int, a Answer) []any {
				if a.Input != want {
					t.Errorf("%s, columns %q: the input is %q, want %q", path, columns, a.Input, want)
				}
				return nil
			}))
		}
	}
	m.Config.Data.Columns = nil
	classes := m.Config.Task.Classes
	for last, want := range map[string]string{"1": classes[1], "0": classes[0], "99": "99", "-1": "-1", classes[1]: classes[1]} {
		file := filepath.Join(t.TempDir(), "numbers.csv")
		write(t, file, "text,label\na,"+last+"\n")
		examples, notes, err := ReadExamples(m, file)
		if named := last != want; err != nil || examples[0].Answer != want || named != strings.Contains(fmt.Sprint(notes), "numbers stand for the model's labels: 0 is "+classes[0]) {
			t.Errorf("label %s: got %+v, %q, %v, want %s", last, examples, notes, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "pairs.csv")
	write(t, file, "id,premise,hypothesis\n1,a,b\n")
	must.Do(t, PredictFile(t.Context(), m, file, io.Discard, PredictOptions{}, nil, func(_ int, a Answer) []any {
		if a.Input != "a\tb" {
			t.Errorf("columns with the usual names of two texts: the input is %q", a.Input)
		}
		return nil
	}))
	if c := fromPublished(t, "classification", dir, ""); c.Task.Published.Tabs {
		t.Error("a run that begins with a published model has Tabs")
	}
}
