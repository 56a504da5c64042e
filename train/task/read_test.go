package task

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
)

// TestFormatsOfRows reads one set of sentences from TSV, JSONL and CoNLL, and writes the answers back into each file.
func TestFormatsOfRows(t *testing.T) {
	tsv := made(t, withFile(t, "tagging", "a.tsv", strings.Repeat("the dog runs\tD N V\na dog\tD N\n", 20)))
	answer, err := tsv.Predict("the dog runs")
	if err != nil {
		t.Fatal(err)
	}
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
			err := tsv.PredictFile(t.Context(), task.Config.Data.File, &out, PredictOptions{}, []string{"answer", "log_prob"}, func(_ int, a Answer) []any {
				return []any{a.Text, json.Number("-1.5")}
			})
			if err != nil || !strings.HasPrefix(out.String(), test.want) {
				t.Errorf("error %v, and the file begins with\n%.200s\nwant\n%s", err, out.String(), test.want)
			}
			c := withFile(t, "tagging", test.file, strings.Repeat(test.content, 20))
			c.Data.Header = "yes"
			_, err = New(c)
			wantError(t, err, test.file+`" is JSONL or CoNLL, which has no header: leave out data.header`)
			examples, _, err := tsv.ReadExamples(task.Config.Data.File)
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
		_, err := New(c)
		wantError(t, err, "only the task tagging with units tokens reads such files")
	}
}
