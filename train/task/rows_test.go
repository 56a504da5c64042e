package task

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// withFile returns a small configuration for the named task. It writes the content to a file with this name.
func withFile(t testing.TB, name, file, content string) Config {
	t.Helper()
	c := small(t, name)
	c.Data.File = filepath.Join(t.TempDir(), file)
	write(t, c.Data.File, content)
	return c
}

func descriptionOf(t *Task) *rows.Description { return t.set.(*rowSet).Description }

func TestLookSeq2Seq(t *testing.T) {
	var s strings.Builder
	s.WriteString("word\tpronunciation\n")
	for i := range 400 {
		fmt.Fprintf(&s, "%s\tA B %s\n", strings.Repeat("x", 1+i%7)+fmt.Sprint(i), []string{"A", "B"}[i%2])
	}
	s.WriteString("x0\tA B A\n")                                 // a repeated row
	s.WriteString("x0\tB\n")                                     // another answer
	s.WriteString("only\n")                                      // bad, on line 404
	s.WriteString(strings.Repeat("y", 200) + "\tA B\n")          // a far too long source
	s.WriteString("z\t" + strings.Repeat("A B ", 100) + "A B\n") // a far too long answer
	c := withFile(t, "seq2seq", "words.tsv", s.String())
	c.Data.Validation = 20
	task := made(t, c)
	l := descriptionOf(task)
	if l.Rows != 404 || l.Sources != 402 || l.Several != 1 || l.Duplicates != 1 || len(l.Bad) != 1 || l.Long != 2 || l.Trains+l.Validates != 402 {
		t.Errorf("got %+v", l)
	}
	if l.Source.Units != tokenizer.Characters || l.Answer.Units != tokenizer.Tokens || l.Answer.Symbols != 2 || l.MaxLen != 64 || l.MaxAnswer != 64 || l.Answer.Median != 3 {
		t.Errorf("got %+v", l)
	}
	if l.Validates < 8 || l.Validates > 40 || l.Validates != l.Held && l.Validates < l.Held {
		t.Errorf("%d rows of %d sources are for validation, want about 20", l.Validates, l.Held)
	}
	must.Have(t, l.String(),
		"words.tsv: 404 rows with 402 different sources, 1 of them with several answers; 1 repeated row\n  columns: word and pronunciation, named in the header\n",
		"left out: 1 bad row of 405: line 404: ", "left out: 2 rows with a source longer than 64 symbols or an answer longer than 64\n",
		"sources: characters; vocabulary of 13; length at most 200", "answers: tokens; vocabulary of 2; length at most 202, median 3\n",
		fmt.Sprintf("training: %d rows; validation: %d rows (all rows of %d sources, chosen by seed 1)\n", l.Trains, l.Validates, l.Held),
	)
}

func TestLookClassification(t *testing.T) {
	var s strings.Builder
	for i := range 300 {
		fmt.Fprintf(&s, "%d,a text that is number %d,%s\n", i, i, []string{"a", "a", "b"}[i%3])
	}
	c := withFile(t, "classification", "texts.csv", s.String())
	c.Data.Columns, c.Data.SourceUnits, c.Task.MaxLen = []string{"2", "3"}, tokenizer.Characters, 20
	l := descriptionOf(made(t, c))
	if l.Long == 0 || l.Rows != l.Trains+l.Validates {
		t.Errorf("got %+v", l)
	}
	must.Have(t, l.String(), "columns: 2 and 3, without a header; the first row is \"a text that is number 0\", \"a\"\n", "rows longer than 20 symbols\n", "  training labels: a ", "most frequent: always answering a is right for ", " % of the validation labels\n", "few validation labels: b 10 (with fewer than 20, scores per label are rough)\n")
	if strings.Contains(l.String(), "few validation labels: b 10, a") {
		t.Errorf("the description is\n%swant no warning about a, which has 20 rows", l)
	}
	var s2 strings.Builder
	for i := range 300 {
		fmt.Fprintf(&s2, "%d,\"%s\"\n", i, []string{"two\nlines", "end ", "2", "a, b"}[i%4])
	}
	l = descriptionOf(made(t, withFile(t, "classification", "texts.csv", s2.String())))
	must.Have(t, l.String(), `"two\nlines" `, `"end " `, `"2" `, `"a, b" `)
	if made(t, small(t, "copy")).DescribeData() != "" {
		t.Error("a rule without a file has a description, want none")
	}
}

// All files of a run have its Encoding and may be compressed. Answers are written back in the file's encoding.
func TestRowsInAnotherEncoding(t *testing.T) {
	var s bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&s, "gr\xfcn %d,\x80\nwei\xdf %d,b\n", i, i)
	}
	c := withFile(t, "classification", "texts.csv", s.String())
	must.Refuse(New(c))(t, "give its encoding, such as windows-1252")
	c.Data.Encoding = "cp1252"
	c.Data.ValidationFile = filepath.Join(t.TempDir(), "valid.csv.gz")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, "gr\xfc\xdf,\x80\n")
	z.Close()
	write(t, c.Data.ValidationFile, packed.String())
	task := made(t, c)
	if l := descriptionOf(task); l.Bad != nil || l.Validates != 1 || l.Source.Unknown != 0 || !strings.Contains(l.String(), "€") {
		t.Errorf("got %+v", l)
	}
	examples, _, err := ReadExamples(task.Model, c.Data.ValidationFile)
	if err != nil || len(examples) != 1 || examples[0].Source != "grüß" || examples[0].Answer != "€" {
		t.Errorf("got examples %v, error %v", examples, err)
	}
	var out bytes.Buffer
	err = PredictFile(t.Context(), task.Model, c.Data.ValidationFile, &out, PredictOptions{}, []string{"answer"}, func(int, Answer) []any { return []any{"€"} })
	if want := "gr\xfc\xdf,\x80,\x80\n"; err != nil || out.String() != want {
		t.Errorf("PredictFile wrote %q, error %v, want %q", &out, err, want)
	}
	out.Reset()
	err = PredictFile(t.Context(), task.Model, c.Data.ValidationFile, &out, PredictOptions{}, []string{"answer"}, func(int, Answer) []any { return []any{"世"} })
	if err == nil || !strings.Contains(err.Error(), "line 1: the row can't be written with its answer: windows-1252 has no character '世'") {
		t.Errorf("got error %v", err)
	}
	task.Model.Config.Data.Encoding = ""
	if _, _, err := ReadExamples(task.Model, c.Data.File); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("in UTF-8: got error %v", err)
	}
}

// Test validation files with symbols, labels and tags that the training file doesn't have.
func TestValidationFile(t *testing.T) {
	for _, test := range []struct{ name, trains, validates, want string }{
		{"seq2seq", "ab\tX Y\nba\tY X\n", "az\tX\nb\tX Q\nab\tY\n", "unknown: 1 validation source with"},
		{"classification", "a text\tx\nno text\ty\n", "a\tx\na\tnew\nc\ty\n", "unknown: 1 validation row with a label that no training row has\n"},
		{"tagging", "the dog\tD N\nthe the\tD D\n", "the cat\tD N\na dog runs\tD N V\n", "unknown: 1 validation answer with symbols that the model doesn't know and can't write"},
	} {
		c := withFile(t, test.name, "train.tsv", strings.Repeat(test.trains, 40))
		c.Data.ValidationFile = withFile(t, test.name, "valid.tsv", test.validates).Data.File
		task := made(t, c)
		if l := descriptionOf(task); !strings.Contains(l.String(), test.want) || l.Trains != 80 || l.Held != 0 {
			t.Errorf("%s: the description is\n%swant %q in it", test.name, l, test.want)
		}
		score, err := task.Evaluate(t.Context())
		want := map[string]int{"seq2seq": 3, "classification": 3, "tagging": 5}[test.name]
		if err != nil || score.Total != want || score.Right == score.Total {
			t.Errorf("%s: the score is %+v, %v, want a total of %d that aren't all right", test.name, score, err, want)
		}
	}
}

// All rows of a validation file must be used, unless the configuration limits their number.
func TestValidationFileSize(t *testing.T) {
	for validation, want := range map[int]int{-1: 1201, 30: 30} {
		c := withFile(t, "seq2seq", "train.csv", manyRows(40))
		c.Data.ValidationFile = withFile(t, "seq2seq", "valid.csv", manyRows(1201)).Data.File
		c.Data.Validation = validation
		task := made(t, c)
		if got := descriptionOf(task).Validates; got != want || task.Config.Data.Validation != want {
			t.Errorf("with a Validation of %d: got %d validation rows and a new Validation of %d, want %d", validation, got, task.Config.Data.Validation, want)
		}
	}
	if c, err := Named("seq2seq", 0); err != nil || c.Data.Validation != -1 {
		t.Errorf("the default Validation of seq2seq is %d, %v, want -1", c.Data.Validation, err)
	}
}

// All batches of a bucket must have the same shape, and all rows must occur once.
func TestBatchesOfRows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		c := small(t, name)
		c.Data.File = rowsFile(t, c.Task.Kind, 3000)
		task := made(t, c)
		p := task.Problem()
		shapes, rows := map[string]bool{}, 0
		buckets := map[int][]int{}
		for i := range p.Train.Len {
			buckets[p.Train.Bucket(i)] = append(buckets[p.Train.Bucket(i)], i)
		}
		for _, numbers := range buckets {
			for some := range slices.Chunk(numbers, task.Config.Training.BatchSize/task.Config.Training.MicroBatches) {
				b := must.Get(p.Train.Batch(some))(t)
				shapes[fmt.Sprint(b[0].Shape(), b[len(b)-1].Shape())] = true
				rows += len(some)
			}
		}
		if len(shapes) != len(buckets) || len(shapes) < 2 || len(shapes) > 12 || rows != p.Train.Len {
			t.Errorf("%s: got %d rows of %d, in batches with the shapes %v", name, rows, p.Train.Len, shapes)
		}
	}
}

// If the data file was changed, New must return an error. If it was moved, training must go on.
func TestRowsFileChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		t.Run(name, func(t *testing.T) {
			c := small(t, name)
			dir := filepath.Join(t.TempDir(), "run")
			if s := run(t, made(t, c), dir, train.RunOptions{MaxSteps: 5}); !s.Unfinished {
				t.Fatalf("after 5 steps, the summary is %+v, want an unfinished run", s)
			}
			saved := must.Get(ReadConfig(dir))(t)
			moved := filepath.Join(t.TempDir(), "moved.tsv")
			content := read(t, c.Data.File)
			first, _, _ := strings.Cut(content, "\n")
			write(t, c.Data.File, content+first+"\n")
			write(t, moved, content)
			must.Refuse(New(saved))(t, "has changed since the run began")
			saved.Data.File = moved
			rest := made(t, saved)
			if s := run(t, rest, dir, train.RunOptions{}); s.Unfinished {
				t.Fatalf("after resuming, the summary is %+v, want a finished run", s)
			}
			if again, err := ReadConfig(dir); err != nil || again.Data.File != moved {
				t.Errorf("the run's config.json has the file %q, %v, want %q", again.Data.File, err, moved)
			}
			if _, err := rest.Train(t.Context(), dir, train.RunOptions{}); !errors.Is(err, ErrFinished) {
				t.Errorf("a finished run: got error %v, want ErrFinished", err)
			}
			m, err := Open(dir) // needs no data file
			if err == nil {
				_, err = m.Predict("cat")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A run must have the same bytes with one worker as with two workers and an interruption.
func TestRowsRepeat(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		c := small(t, name)
		if name != "seq2seq" {
			c.Training.ClassWeights = "balanced"
		}
		_, dir := trained(t, c)
		wantResumed(t, c, 7, dir)
	}
}

// Balanced classes must have the same total weight. Label smoothing must change the loss in training, but not in
// validation.
func TestClassWeights(t *testing.T) {
	c := withFile(t, "classification", "x.tsv", strings.Repeat("a\tx\nb\tx\nc\tx\nd\ty\n", 30))
	c.Data.ValidationFile, c.Mix = c.Data.File, false
	plain := evaluated(t, made(t, c))
	c.Training.ClassWeights = "balanced"
	task := made(t, c)
	if want := []float64{2.0 / 3, 2}; !slices.EqualFunc(task.classWeights, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("the class weights are %v, want %v", task.classWeights, want)
	}
	weighted, err := task.Evaluate(t.Context())
	if err != nil || weighted.Loss == plain.Loss || weighted.Right != plain.Right {
		t.Errorf("the score is %+v, %v, want another loss than without weights, %+v", weighted, err, plain)
	}
	if got, want := balanced([]int{10, 0, 30}), []float64{2, 1, 2.0 / 3}; !slices.Equal(got, want) {
		t.Errorf("balanced returns %v, want %v", got, want)
	}

	c.Training.ClassWeights, c.Training.LabelSmoothing = "", 0.3
	smooth := made(t, c)
	if got, err := smooth.Evaluate(t.Context()); err != nil || got != plain {
		t.Errorf("with label smoothing, the score is %+v, %v, want %+v", got, err, plain)
	}
	lossOf := func(task *Task) (loss float64) {
		options := train.RunOptions{Seed: task.Config.Seed, MaxSteps: 1, OnStep: func(_, _ int, l float64) bool { loss = l; return true }}
		must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, options))(t)
		return loss
	}
	c.Training.LabelSmoothing = 0
	if a, b := lossOf(smooth), lossOf(made(t, c)); a == b {
		t.Errorf("the training loss is %v with and without label smoothing, want different losses", a)
	}
}

// manyRows returns n different rows.
func manyRows(n int) (s string) {
	for i := range n {
		s += fmt.Sprintf("%d,title %d\n", i, i)
	}
	return s
}

// TestRowsErrors checks the errors for wrong files, and for settings that don't fit a file.
func TestRowsErrors(t *testing.T) {
	for _, test := range []struct {
		name, task, content string
		change              func(c *Config)
		want                string
	}{
		{"one source", "seq2seq", "a\tb\na\tc\n", nil, "has only 1 source, and none is left for validation: set data.validation_file to a file, or data.validation to 0"},
		{"all sources held out", "seq2seq", "\uFFFD\tb\n\uFFFD\uFFFD\tb\n", func(c *Config) { c.Seed = 1 }, "has 2 sources, and seed 1 holds out all of them: set data.validation_file to a file, or choose another seed"},
		{"too many different labels", "classification", "id,title\n" + manyRows(30), nil, "31 different labels in 31 rows, in its columns 1 and 2, without a header; the first row is \"id\", \"title\": set data.columns to the columns of texts and labels"},
		{"one label", "classification", "a\tx\nb\tx\n", nil, "has 1 label, but needs 2 to 10000 different labels"},
		{"tags that don't fit", "tagging", strings.Repeat("a b\tX\n", 10), nil, "lines 1, 2, 3, 4, 5: the source has 2 symbols and 1 tags: each symbol needs one tag"},
		{"wrong steps per epoch", "seq2seq", strings.Repeat("a\tb\nb\tb\n", 30), func(c *Config) { c.Training.StepsPerEpoch = 7 }, "training.steps_per_epoch must be "},
		{"all rows too long", "seq2seq", "aaaa\tb\nbbbb\tb\n", func(c *Config) { c.Task.MaxLen = 2 }, "no row is left for training or validation with a source of at most 2 symbols"},
		{"no column", "classification", "text,label\na,b\n", func(c *Config) { c.Data.Columns = []string{"text", "nope"} }, `"nope"`},
		{"white space", "seq2seq", strings.Repeat(" \tb\n", 9), nil, ""},
	} {
		c := withFile(t, test.task, "x."+map[bool]string{true: "csv", false: "tsv"}[strings.Contains(test.content, ",")], test.content)
		if test.change != nil {
			test.change(&c)
		}
		must.Refuse(New(c))(t, test.want)
	}
}

// If the first row may be a header, New must ask. It must obey the answer.
func TestHeader(t *testing.T) {
	rows := strings.Repeat("printer is broken,technical\nwrong invoice,billing\n", 20)
	for _, test := range []struct {
		name, task, content string
		change              func(c *Config)
		want                string // error, or the rows and the columns in the description
	}{
		{"unknown header", "classification", "mail,queue\n" + rows, nil, `.csv": the label of the first row, "queue", occurs in no other row: set data.header yes if this row is a header, or data.header no if it isn't`},
		{"by number", "classification", "1," + strings.ReplaceAll("mail,queue\n"+rows, "\n", "\n1,") + "x,billing", func(c *Config) { c.Data.Columns = []string{"2", "3"} }, "set data.header yes"},
		{"yes", "classification", "mail,queue\n" + rows, func(c *Config) { c.Data.Header = "yes" }, "40 rows: mail and queue, named in the header"},
		{"no", "classification", "mail,queue\n" + rows, func(c *Config) { c.Data.Header = "no" }, `41 rows: 1 and 2, without a header; the first row is "mail", "queue"`},
		{"no, although it is known", "classification", "TEXT,Label\n" + rows, func(c *Config) { c.Data.Header = "no" }, "41 rows: 1 and 2, without a header"},
		{"known, in upper case, after a mark", "classification", "\uFEFFTEXT,LABEL\n" + rows, nil, "40 rows: TEXT and LABEL, named in the header"},
		{"a label of other rows", "classification", rows, nil, "40 rows: 1 and 2, without a header"},
		{"a label in another case", "classification", "it is lost,BILLING \n" + rows, nil, "41 rows: 1 and 2, without a header"},
		{"all labels differ", "classification", "a,x\nb,y\nc,z\n", nil, "set data.header yes"},
		{"too many labels", "classification", "id,title\n" + manyRows(30), nil, "31 different labels in 31 rows"},
		{"a bad first row", "classification", "mail,\nit is lost,shop\n" + strings.Repeat(rows, 3), nil, "121 rows: 1 and 2, without a header"},
		{"validation file", "classification", rows, func(c *Config) {
			c.Data.ValidationFile = withFile(t, "classification", "valid.csv", "mail,queue\nmy invoice,billing\n").Data.File
		}, `valid.csv": the label of the first row, "queue"`},
		{"the same header in both files", "classification", "mail,queue\n" + rows, func(c *Config) {
			c.Data.ValidationFile = withFile(t, "classification", "valid.csv", "mail,queue\nmy invoice,billing\n").Data.File
		}, `the label of the first row, "queue", occurs in no other row`},
		{"seq2seq", "seq2seq", "english,french\n" + rows, nil, "41 rows: 1 and 2, without a header"},
		{"seq2seq, yes", "seq2seq", "english,french\n" + rows, func(c *Config) { c.Data.Header = "yes" }, "40 rows: english and french, named in the header"},
		{"many columns", "tagging", "id,words,tags\n1,a b,X Y\n2,b,Y\n", func(c *Config) { c.Data.Header = "no" }, "choose the token list and the tag list, as in data.columns 2,3"},
		{"wrong answer", "seq2seq", rows, func(c *Config) { c.Data.Header = "maybe" }, "data.header must be yes or no, got maybe"},
	} {
		c := withFile(t, test.task, "x.csv", test.content)
		if test.change != nil {
			test.change(&c)
		}
		task, err := New(c)
		if err != nil {
			must.Fail(t, err, test.want)
			if wrong := new(ConfigError); !errors.As(err, &wrong) {
				t.Errorf("%s: got a %T, want a *ConfigError", test.name, err)
			}
			continue
		}
		if l := descriptionOf(task); !strings.HasPrefix(fmt.Sprintf("%d rows: %s", l.Rows, l.Columns), test.want) {
			t.Errorf("%s: got %d rows: %s, want %s", test.name, l.Rows, l.Columns, test.want)
		}
		task.Close()
	}
}

// With SkipBad, the bad rows of a file must be left out, also of the validation file and by ReadExamples.
func TestSkipBad(t *testing.T) {
	content := strings.Repeat("a\tx\nb\ty\n", 20) + strings.Repeat("c\n", 10)
	c := withFile(t, "classification", "x.tsv", content)
	c.Data.ValidationFile = withFile(t, "classification", "valid.tsv", content).Data.File
	must.Refuse(New(c))(t, "10 of 50 rows are bad; without data.skip_bad, heed leaves out at most one in a hundred: lines 41, 42, 43, 44, 45: the label (column 2) is missing")
	c.Data.SkipBad = true
	task := made(t, c)
	const bad = ": lines 41, 42, 43, 44, 45: the label (column 2) is missing: the row has only 1 (fields between tabs); …"
	if l := descriptionOf(task); l.Rows != 40 || l.Validates != 30 || !slices.Equal(l.Bad, []string{"10 bad rows of 50" + bad, "10 bad validation rows of 50" + bad}) {
		t.Errorf("got %+v, want 40 rows, 30 for validation, and 10 bad ones of each file", l)
	}
	examples, notes, err := ReadExamples(task.Model, c.Data.File)
	if err != nil || len(examples) != 40 || !strings.Contains(fmt.Sprint(notes), "left out 10 bad rows of 50") {
		t.Errorf("ReadExamples returns %d examples, the notes %q, %v, want 40", len(examples), notes, err)
	}
}

// If a run's Header makes the first row a header, but this row has a label of the model, ReadExamples must add a note.
func TestRowTakenAsHeader(t *testing.T) {
	rows := strings.Repeat("a\tx\nb\ty\n", 20)
	c := withFile(t, "classification", "x.tsv", "mail\tqueue\n"+rows)
	c.Data.Header = "yes"
	task := made(t, c)
	for content, want := range map[string]string{
		"a\tx\n" + strings.Repeat("b\ty\n", 20): `["FILE: the first row, \"a\", \"x\", is read as the header, but \"x\" is a label: with header no, it is a row"]`,
		"text\tlabel\n" + rows:                  "[]",
	} {
		file := withFile(t, "classification", "y.tsv", content).Data.File
		_, notes, err := ReadExamples(task.Model, file)
		if got := strings.ReplaceAll(fmt.Sprintf("%q", notes), file, "FILE"); got != want || err != nil {
			t.Errorf("got the notes %s, error %v, want %s", got, err, want)
		}
	}
}

func TestFolded(t *testing.T) {
	for label, same := range map[string]string{
		" Spam ": "spam", "caf\u00e9": "cafe\u0301", "a\u200bb": "ab", "\ufeffa": "A", "1.0": "1", "-2.00": "-2", "007.0": "007",
	} {
		if folded(label) != folded(same) {
			t.Errorf("%+q and %+q aren't alike", label, same)
		}
	}
	for _, pair := range [][2]string{{"1.5", "1"}, {"1.", "1"}, {".0", ""}, {"v1.0", "v1"}, {"1", "01"}} {
		if folded(pair[0]) == folded(pair[1]) {
			t.Errorf("%q and %q are alike", pair[0], pair[1])
		}
	}
	if got := spelled("cafe\u0301"); got != `"cafe\u0301"` {
		t.Errorf("got %s, want an escape", got)
	}
}

// Labels that differ only in how they are written must be reported, and MergeLabels must merge them in all files.
func TestMergeLabels(t *testing.T) {
	content := strings.Repeat("a\tbilling\nb\tBilling\nc\tBilling \nd\tspam\n", 10) + "e\tBILLING\nf\tΣΟΦΟΣ\ng\tσοφος\nh\tσοφος\n"
	c := withFile(t, "classification", "x.tsv", content)
	c.Data.ValidationFile = withFile(t, "classification", "valid.tsv", "a\tbilling\nb\t SPAM\nc\tΣοφος\n").Data.File
	description := descriptionOf(made(t, c)).String()
	const alike = "billing 11, Billing 10, \"Billing \" 10, BILLING 1; spam 10, \" SPAM\" 1; σοφος 2, ΣΟΦΟΣ 1, Σοφος 1 (counts of all rows; the labels differ only in how they are written"
	if want := "  alike: " + alike + "; --merge-labels merges them)\n"; !strings.Contains(description, want) {
		t.Errorf("the description is\n%swant %q in it", description, want)
	}
	c.Data.MergeLabels = true
	task := made(t, c)
	if want := []string{"Billing", "spam", "σοφος"}; !slices.Equal(task.Config.Task.Classes, want) {
		t.Errorf("the labels are %q, want %q", task.Config.Task.Classes, want)
	}
	description = descriptionOf(task).String()
	for _, want := range []string{"  merged: " + alike + ")\n", "  training labels: Billing 31 (70.5 %), spam 10 (22.7 %), σοφος 3 (6.8 %)\n"} {
		if !strings.Contains(description, want) || strings.Contains(description, "unknown") {
			t.Errorf("the description is\n%swant %q in it, and no unknown label", description, want)
		}
	}
	saved := made(t, task.Config) // as for a run that is resumed
	for name, task := range map[string]*Task{"new": task, "resumed": saved} {
		other := withFile(t, "classification", "y.tsv", strings.Repeat("a\t billing\n", 3)+"b\tSpam\nc\tNew \n").Data.File
		examples, _, err := ReadExamples(task.Model, other)
		got := ""
		for _, e := range examples {
			got += e.Answer + ","
		}
		if want := "Billing,Billing,Billing,spam,New,"; err != nil || got != want {
			t.Errorf("%s: ReadExamples returns the answers %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"tagging", "seq2seq", "text"} {
		c := small(t, name)
		c.Data.MergeLabels = true
		must.Refuse(New(c))(t, "data.merge_labels")
	}
}

// Other files must be read with the run's header, and ReadExamples must ask if nothing says whether there is one.
func TestHeaderOfOtherFiles(t *testing.T) {
	rows := strings.Repeat("broken,technical\ninvoice,billing\n", 20)
	c := withFile(t, "classification", "x.csv", rows)
	c.Data.Validation = 0
	task := made(t, c)
	for _, test := range []struct {
		header, content string
		examples        int
		want            string // error, or the first line of PredictFile's output
	}{
		{"", "mail,queue\nlate,shop\nlost,shop\n", 0, `the label of the first row, "queue", occurs in no other row: set data.header yes`},
		{"", "late,shop\nlost,shop\n", 2, "late,shop,?"},
		{"", "late,Billing\nlost,shop\n", 2, "late,Billing,?"},
		{"", "text,label\nlate,shop\n", 1, "text,label,answer"},
		{"yes", "mail,queue\nlate,shop\n", 1, "mail,queue,answer"},
		{"no", "text,label\nlate,shop\n", 2, "text,label,?"},
	} {
		task.Model.Config.Data.Header = test.header
		file := withFile(t, "classification", "y.csv", test.content).Data.File
		examples, _, err := ReadExamples(task.Model, file)
		if test.examples == 0 {
			must.Fail(t, err, file, test.want)
			continue
		}
		if err != nil || len(examples) != test.examples {
			t.Errorf("header %q, %q: got %d examples, %v, want %d", test.header, test.content, len(examples), err, test.examples)
		}
		var out strings.Builder
		err = PredictFile(t.Context(), task.Model, file, &out, PredictOptions{}, []string{"answer"}, func(int, Answer) []any { return []any{"?"} })
		if first, _, _ := strings.Cut(out.String(), "\n"); err != nil || first != test.want {
			t.Errorf("header %q, %q: the output begins with %q, %v, want %q", test.header, test.content, first, err, test.want)
		}
	}
}

// Open must return an error if a tokenizer of the run folder is missing or changed.
func TestTokenizersOfAFolder(t *testing.T) {
	t.Parallel()
	_, dir := trained(t, small(t, "seq2seq"))
	path := filepath.Join(dir, runfolder.TargetTokenizerFile)
	write(t, path, read(t, path)+"\n")
	must.Refuse(Open(dir))(t, runfolder.ConfigFile, "its target.json: its content doesn't match data.tokenizers_sha256: restore it")
	must.Do(t, os.Remove(path))
	must.Refuse(Open(dir))(t, "its target.json: ")
}

// Rows must use little memory besides their text.
func TestRowsAreHeldCompactly(t *testing.T) {
	const n = 100_000
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "word%d\tW %d\n", i, i%10)
	}
	text := s.Len()
	c := withFile(t, "seq2seq", "many.tsv", s.String())
	s.Reset()
	before := memory.HeapInUse()
	task := made(t, c)
	if held := int(memory.HeapInUse()) - int(before) - text; held > 50*n { // 100 MB for 2 million rows
		t.Errorf("%d rows use %d bytes besides their text of %d, want at most %d", n, held, text, 50*n)
	} else {
		t.Logf("%d bytes per row, besides %d of text", held/n, text/n)
	}
	if l := descriptionOf(task); l.Rows != n {
		t.Errorf("got %v", l)
	}
}

// TestParallelFiles reads rows from the lines of two parallel files.
func TestParallelFiles(t *testing.T) {
	c := withFile(t, "seq2seq", "source.txt", strings.Repeat("ab, c\nb \"a\n", 50))
	c.Data.TargetFile = withFile(t, "seq2seq", "target.txt", strings.Repeat("X\tY\nY\n", 50)).Data.File
	c.Data.Validation = 0
	task := made(t, c)
	if l := descriptionOf(task); l.Rows != 100 || l.Sources != 2 || l.Validates != 0 || !strings.Contains(l.String(), "; no validation") || !strings.Contains(l.String(), "columns: the lines of this file and of "+c.Data.TargetFile) {
		t.Errorf("got %v", l)
	}
	if sums := strings.Fields(task.Config.Data.SHA256); len(sums) != 2 {
		t.Errorf("the checksums are %q, want two", sums)
	}
}

// A run must start from the weights of another run, as far as they fit, and must not need that run once it has a
// checkpoint.
func TestStartFrom(t *testing.T) {
	t.Parallel()
	first, from := trained(t, small(t, "seq2seq"))
	start := func(name, dir string, change func(c *Config)) Config {
		c := small(t, name)
		must.Do(t, c.StartFrom(dir))
		if change != nil {
			change(&c)
		}
		return c
	}
	same := func(a, b *Task, name string) bool {
		return slices.Equal(a.Params.Get(name).Value.Float32s(), b.Params.Get(name).Value.Float32s())
	}
	open := func(dir string) *Task { // a task with the weights of the folder
		task := made(t, first.Config)
		must.Do(t, task.Load(dir))
		return task
	}
	old := open(from)

	c := start("seq2seq", from, nil)
	task := made(t, c)
	if len(task.Loaded.Kept)+len(task.Loaded.Unused) > 0 || !same(task, old, "decoder.head.weight") || task.Config.From.SHA256 == "" {
		t.Errorf("for the same task, got %+v, want all weights to fit", task.Loaded)
	}
	dir := filepath.Join(t.TempDir(), "next")
	run(t, task, dir, train.RunOptions{MaxSteps: 6})
	whole := filepath.Join(t.TempDir(), "whole")
	run(t, made(t, c), whole, train.RunOptions{})

	digits := withFile(t, "seq2seq", "digits.tsv", strings.Repeat("cat\t1\ndog\t2\n", 9)+"cow\tC O W\n")
	must.Do(t, digits.StartFrom(from))
	if _, err := New(digits); err == nil {
		t.Error("New accepts answers that the model of the other run can't write")
	} else {
		must.Fail(t, err, "digits.tsv", "training answers have symbols that the model of ", "start without its weights")
	}

	classifier := made(t, start("classification", from, nil))
	if want := []string{"head.weight", "head.bias"}; !slices.Equal(classifier.Loaded.Kept, want) || !same(classifier, old, "encoder.blocks.0.attention.query.weight") || !same(classifier, old, "encoder.embedding.weight") {
		t.Errorf("for classification, the new parameters are %v, want only the head", classifier.Loaded.Kept)
	}
	if l := descriptionOf(classifier); l.Source.Unknown < 75 || !strings.Contains(l.String(), " sources with letters, or with mostly words, that the model doesn't know") {
		t.Errorf("the description is\n%vwant unknown symbols, because texts have spaces", l)
	}
	tagger := made(t, start("tagging", from, nil))
	if want := []string{"head.weight", "head.bias"}; !slices.Equal(tagger.Loaded.Kept[1:], want) || tagger.Loaded.Kept[0] != "embedding.weight" {
		t.Errorf("for tagging, the new parameters are %v, want only the embedding of its own symbols and the head", tagger.Loaded.Kept)
	}
	wider := made(t, start("seq2seq", from, func(c *Config) { c.Model.Dim = 32 }))
	if len(wider.Loaded.Kept) != len(wider.Params.All())-1 || slices.Contains(wider.Loaded.Kept, "decoder.head.bias") {
		t.Errorf("for another width, the new parameters are %v, want all except the head's bias", wider.Loaded.Kept)
	}
	must.Refuse(New(start("text", from, func(c *Config) { c.Model.Dim = 32 })))(t, "can't start from "+from+": none of its weights fit this model")

	// With another alphabet of the same size, the embedding and the head must be new.
	_, copies := trained(t, smaller(t, Defaults(ownRule())))
	own := ownRule()
	own.Alphabet = "jihgfedcba"
	c = smaller(t, Defaults(own))
	must.Refuse(ReadConfig(copies, own))(t, "the run's task own-rule differs from the known task of that name")
	own.Name = "another"
	c.Task = own
	must.Do(t, c.StartFrom(copies))
	if got, want := made(t, c).Loaded.Kept, []string{"embedding.weight", "head.weight", "head.bias"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("with another alphabet, the new parameters are %v, want %v", got, want)
	}

	// A run with a checkpoint must resume without the other folder. A run without one must not start if the other
	// weights have changed.
	weights := filepath.Join(from, runfolder.WeightsFile)
	write(t, weights, "other")
	saved := must.Get(ReadConfig(dir))(t)
	rest := made(t, saved)
	must.Refuse(rest.Train(t.Context(), filepath.Join(t.TempDir(), "new"), train.RunOptions{}))(t, "its weights have changed since this run began")
	must.Do(t, os.RemoveAll(from))
	run(t, made(t, saved), dir, train.RunOptions{})
	wantFiles(t, dir, whole, runfolder.ConfigFile, runfolder.WeightsFile, runfolder.HistoryFile)
}

// If both sides are byte pairs, they must share one vocabulary, and one table for sources, answers and the head. One
// side alone may be byte pairs too.
func TestBytePairs(t *testing.T) {
	t.Parallel()
	c := small(t, "seq2seq")
	c.Data.SourceUnits, c.Data.TargetUnits, c.Data.VocabSize = tokenizer.BPE, tokenizer.BPE, 300
	task, dir := trained(t, c)
	if task.Params.Get("embedding.weight") == nil || task.Params.Get("decoder.head.weight") != nil || task.Coder.Layout().Tokens != task.Coder.Layout().Classes {
		t.Error("sources, answers and the head don't share one table")
	}
	l := descriptionOf(task)
	if l.Source.Units != tokenizer.BPE || l.Source.Symbols > 300 || l.Source.Symbols < 257 || l.Source != l.Answer && l.Source.Symbols != l.Answer.Symbols {
		t.Errorf("got %+v", l)
	}
	if _, err := os.Stat(filepath.Join(dir, runfolder.TokenizerFile)); err != nil || len(task.Config.Data.Tokenizers) != 1 {
		t.Error(err)
	}
	wantSame(t, must.Get(Open(dir))(t), task.Model, "catdog", "né\x00 🙂") // byte pairs know all symbols
	again := small(t, "seq2seq")
	must.Do(t, again.StartFrom(dir))
	if next := made(t, again); len(next.Loaded.Kept)+len(next.Loaded.Unused) > 0 || next.Config.Data.SourceUnits != tokenizer.BPE {
		t.Errorf("started from this run: got %+v, want all weights to fit", next.Loaded)
	}
	if a, err := task.Attention("catdog", ""); err != nil || len(a.Layers) == 0 {
		t.Errorf("Attention: got %v, %v, want layers", a, err)
	}

	c = small(t, "seq2seq")
	c.Data.SourceUnits, c.Data.TargetUnits = tokenizer.BPE, tokenizer.Tokens
	if task := made(t, c); task.Config.Data.VocabSize != 512 || len(task.Config.Data.Tokenizers) != 2 || task.Params.Get("embedding.weight") != nil {
		t.Errorf("byte pairs only in sources: got %+v", task.Config.Data)
	}
	c = small(t, "classification")
	c.Data.SourceUnits = tokenizer.BPE
	if task := made(t, c); len(task.Config.Data.Tokenizers) != 1 || descriptionOf(task).Source.Units != tokenizer.BPE {
		t.Errorf("byte pairs in classification: got %+v", task.Config.Data)
	}
}

func TestSeveralLabels(t *testing.T) {
	for _, test := range []struct {
		labels string // between slashes
		want   bool
	}{
		{"spam/toxic/spam,toxic", false}, {"toxic/spam,toxic/spam,rude/toxic,rude/spam,toxic,rude", true}, {"a|b/b|c/a|c/a|b|c", true},
		{"toxic spam/spam toxic/spam", true}, {"New York/New Delhi/Old York", false}, {"Smith, A/Jones, B/Hill, C", false},
		{"yes/no", false}, {"a b/a  b", false}, {"x;y/y;x", true}, {"", false},
	} {
		if joined, separator := severalLabels(strings.Split(test.labels, "/")); (joined != "") != test.want || !strings.Contains(joined, separator) {
			t.Errorf("%s: got %q, %q", test.labels, joined, separator)
		}
	}
	c := withFile(t, "classification", "x.tsv", strings.Repeat("a\ttoxic spam\nb\tspam toxic\nc\tspam\n", 9))
	must.Refuse(New(c))(t, `rows have several labels, such as "toxic spam": to learn them all, set task.separator to " "`)
}
