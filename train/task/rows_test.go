package task

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// of is a small configuration for a file of a kind with this content.
func of(t testing.TB, name, file, content string) Config {
	t.Helper()
	c := small(t, name)
	c.Data.File = filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(c.Data.File, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return c
}

func lookOf(t *Task) *look { return t.set.(*rowSet).look }

func TestLookPairs(t *testing.T) {
	var s strings.Builder
	s.WriteString("word\tpronunciation\n")
	for i := range 400 {
		fmt.Fprintf(&s, "%s\tA B %s\n", strings.Repeat("x", 1+i%7)+fmt.Sprint(i), []string{"A", "B"}[i%2])
	}
	s.WriteString("x0\tA B A\n")                                 // again
	s.WriteString("x0\tB\n")                                     // another answer
	s.WriteString("only\n")                                      // bad, on line 404
	s.WriteString(strings.Repeat("y", 200) + "\tA B\n")          // far too long
	s.WriteString("z\t" + strings.Repeat("A B ", 100) + "A B\n") // so is its answer
	c := of(t, "seq2seq", "words.tsv", s.String())
	c.Data.Validation = 20
	task := made(t, c)
	l := lookOf(task)
	if l.Rows != 404 || l.Sources != 402 || l.Several != 1 || l.Duplicates != 1 || l.Bads != 1 || l.Long != 2 || l.Trains+l.Validates != 402 {
		t.Errorf("got %+v", l)
	}
	if l.Source.Units != tokenizer.Characters || l.Answer.Units != tokenizer.Tokens || l.Answer.Symbols != 2 || l.MaxLen != 64 || l.Max != 64 || l.Answer.Median != 3 {
		t.Errorf("got %+v", l)
	}
	if l.Validates < 8 || l.Validates > 40 || l.Validates != l.Held && l.Validates < l.Held {
		t.Errorf("%d rows of %d sources validate, want about 20", l.Validates, l.Held)
	}
	for _, want := range []string{
		"words.tsv: 404 rows of 402 sources, 1 of them with several answers; repeated: 1 row\n  columns: word and pronunciation, by the header\n",
		"left out: 1 bad row: line 404: ", "left out: 2 rows with a source longer than 64 symbols or an answer longer than 64\n",
		"sources: characters, a vocabulary of 13; up to 200 in a row", "answers: tokens, a vocabulary of 2; up to 202 in a row, half of the rows up to 3\n",
		fmt.Sprintf("to train on: %d rows; to validate on: %d, all of %d sources that seed 1 holds out\n", l.Trains, l.Validates, l.Held),
	} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the look is\n%swant %q in it", l, want)
		}
	}
}

func TestLookLabels(t *testing.T) {
	var s strings.Builder
	for i := range 300 {
		fmt.Fprintf(&s, "%d,a text that is number %d,%s\n", i, i, []string{"a", "a", "b"}[i%3])
	}
	c := of(t, "classification", "texts.csv", s.String())
	c.Data.Columns, c.Task.MaxLen = []string{"2", "3"}, 20
	l := lookOf(made(t, c))
	if len(l.Labels) != 2 || l.Labels[0].Label != "a" || l.Labels[0].N+l.Labels[1].N != l.Trains || l.Always < 0.3 || l.Always > 1 || l.Long == 0 || l.Rows != l.Trains+l.Validates {
		t.Errorf("got %+v", l)
	}
	for _, want := range []string{"columns: 2 and 3, and no header: the first row of data is \"a text that is number 0\", \"a\"\n", "rows longer than 20 symbols\n", "labels: a ", "always a would be right in ", " %\n"} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the look is\n%swant %q in it", l, want)
		}
	}
	var s2 strings.Builder
	for i := range 300 {
		fmt.Fprintf(&s2, "%d,\"%s\"\n", i, []string{"two\nlines", "end "}[i%2])
	}
	if l := lookOf(made(t, of(t, "classification", "texts.csv", s2.String()))); !strings.Contains(l.String(), `"two\nlines" 1`) || !strings.Contains(l.String(), `"end " 1`) {
		t.Errorf("the look is\n%s", l)
	}
	if made(t, small(t, "copy")).Look() != "" {
		t.Error("a rule has no look")
	}
}

// A file to validate on has symbols, labels and tags that the other hasn't.
func TestValidationFile(t *testing.T) {
	for _, test := range []struct{ name, trains, validates, want string }{
		{"seq2seq", "ab\tX Y\nba\tY X\n", "az\tX\nb\tX Q\nab\tY\n", "unknown: 1 source to validate on"},
		{"classification", "a text\tx\nno text\ty\n", "a\tx\nb\tnew\nc\ty\n", "unknown: 1 row to validate on with a label that no row to train on has\n"},
		{"tagging", "the dog\tD N\nthe the\tD D\n", "the cat\tD N\na dog runs\tD N V\n", "unknown: 1 answer to validate on with symbols that the model doesn't know, which can't come out right"},
	} {
		c := of(t, test.name, "train.tsv", strings.Repeat(test.trains, 40))
		c.Data.ValidationFile = of(t, test.name, "valid.tsv", test.validates).Data.File
		task := made(t, c)
		if l := lookOf(task); !strings.Contains(l.String(), test.want) || l.Trains != 80 || l.Held != 0 {
			t.Errorf("%s: the look is\n%swant %q in it", test.name, l, test.want)
		}
		score, err := task.Evaluate(t.Context())
		want := map[string]int{"seq2seq": 3, "classification": 3, "tagging": 5}[test.name]
		if err != nil || score.Total != want || score.Right == score.Total {
			t.Errorf("%s: the score is %+v, %v, want one of %d", test.name, score, err, want)
		}
	}
}

// All rows of a file to validate on do, unless the configuration says how many.
func TestValidationFileSize(t *testing.T) {
	for validation, want := range map[int]int{-1: 1201, 30: 30} {
		c := of(t, "seq2seq", "train.csv", manyRows(40))
		c.Data.ValidationFile = of(t, "seq2seq", "valid.csv", manyRows(1201)).Data.File
		c.Data.Validation = validation
		task := made(t, c)
		if got := lookOf(task).Validates; got != want || task.Config.Data.Validation != want {
			t.Errorf("with a Validation of %d, %d rows validate, and the configuration says %d; want %d", validation, got, task.Config.Data.Validation, want)
		}
	}
	if c, err := Named("seq2seq", 0); err != nil || c.Data.Validation != -1 {
		t.Errorf("the Validation of pairs is %d, %v", c.Data.Validation, err)
	}
}

// No source trains and validates, however often it comes.
func TestRowsDontOverlap(t *testing.T) {
	var s strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&s, "%d\tX %d\n", i%300, i)
	}
	c := of(t, "seq2seq", "x.tsv", s.String())
	set := made(t, c).set.(*rowSet)
	trains, validates := slices.Collect(set.trains.column(0)), slices.Collect(set.validates.column(0))
	for _, source := range validates {
		if slices.Contains(trains, source) {
			t.Fatalf("%q trains and validates", source)
		}
	}
	if len(validates) < 50 || len(validates) > 200 || len(trains)+len(validates) != 1000 {
		t.Errorf("%d rows train and %d validate", len(trains), len(validates))
	}
}

// The bounds are those that pad least, which trying all of them finds too.
func TestBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	padded := func(counts []int, bounds []int) (sum int) {
		for size, n := range counts {
			at, _ := slices.BinarySearch(bounds, size)
			sum += n * bounds[at]
		}
		return sum
	}
	for range 50 {
		counts := make([]int, 2+rng.IntN(12))
		for i := range counts {
			counts[i] = rng.IntN(20) * rng.IntN(2)
		}
		counts[0] = 0
		last := len(counts) - 1
		least := math.MaxInt
		for a := 1; a <= last; a++ {
			for b := a; b <= last; b++ {
				least = min(least, padded(counts, []int{a, b, last}))
			}
		}
		got := bounds(counts, 3)
		if len(got) > 3 || got[len(got)-1] != last || !slices.IsSorted(got) || padded(counts, got) != least {
			t.Fatalf("of %v the bounds are %v, which take %d; %d would do", counts, got, padded(counts, got), least)
		}
	}
	many := make([]int, 5000)
	for i := range many {
		many[i] = 3
	}
	if got := bounds(many, 4); len(got) != 4 || got[3] != 4999 || got[0] < 1000 || got[0] > 1500 {
		t.Errorf("of 5000 sizes the bounds are %v", got)
	}
}

// Every batch of a bucket has one shape, which its rows fit, and all rows are there once.
func TestBatchesOfRows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		c := small(t, name)
		c.Data.File = rowsFile(t, c.Task.Kind, 3000)
		task := made(t, c)
		p := task.Problem()
		set := task.set.(*rowSet)
		shapes, rows, weight := map[string]bool{}, 0, 0.0
		for bucket := range set.widths {
			var all []int
			for i := range p.Train.Len {
				if p.Train.Bucket(i) == bucket {
					all = append(all, i)
				}
			}
			for some := range slices.Chunk(all, task.Config.Training.BatchSize/task.Config.Training.MicroBatches) {
				b, err := p.Train.Batch(some)
				if err != nil {
					t.Fatal(err)
				}
				shapes[fmt.Sprint(b.Values[0].Shape(), b.Values[len(b.Values)-1].Shape())] = true
				rows += len(some)
				weight += b.Weight
			}
		}
		if len(shapes) != len(set.widths) || len(shapes) < 2 || len(shapes) > mostBuckets || rows != p.Train.Len || weight < float64(rows) {
			t.Errorf("%s: %d rows of %d in batches of the shapes %v, weight %v", name, rows, p.Train.Len, shapes, weight)
		}
	}
}

func TestGuess(t *testing.T) {
	for name, test := range map[string]struct {
		texts []string
		want  tokenizer.Units
	}{
		"phonemes":               {slices.Repeat([]string{"B AW T", "K AH Z", "T"}, 20), tokenizer.Tokens},
		"words":                  {slices.Repeat([]string{"house", "tree"}, 50), tokenizer.Characters},
		"sentences":              {[]string{"A fine film.", "Not my cup of tea", "never again!"}, tokenizer.Characters},
		"a space here and there": {append(slices.Repeat([]string{"house"}, 50), slices.Repeat([]string{"new york"}, 20)...), tokenizer.Characters},
	} {
		if got := guess(slices.Values(test.texts)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := frequent(slices.Values([]string{"a b a", "b c"})); got != 3 {
		t.Errorf("a tokenizer of sources is to have %d ids, want 3: a, b and the unknown one", got)
	}
}

// A file that changed isn't trained on, and one that was moved is.
func TestRowsFileChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		t.Run(name, func(t *testing.T) {
			c := small(t, name)
			dir := filepath.Join(t.TempDir(), "run")
			if s, err := made(t, c).Train(t.Context(), dir, train.Call{MaxSteps: 5}); err != nil || !s.Unfinished {
				t.Fatal(err)
			}
			saved, err := ReadConfig(dir)
			if err != nil {
				t.Fatal(err)
			}
			moved := filepath.Join(t.TempDir(), "moved.tsv")
			content, err := os.ReadFile(c.Data.File)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(c.Data.File, append(content, content[:bytesTo(content, '\n')]...), 0o666), os.WriteFile(moved, content, 0o666)); err != nil {
				t.Fatal(err)
			}
			_, err = New(saved)
			wantError(t, err, "has changed since the run began")
			saved.Data.File = moved
			rest := made(t, saved)
			if s, err := rest.Train(t.Context(), dir, train.Call{}); err != nil || s.Unfinished {
				t.Fatal(err)
			}
			if again, err := ReadConfig(dir); err != nil || again.Data.File != moved {
				t.Errorf("the folder names %q, %v, want %q", again.Data.File, err, moved)
			}
			if _, err := rest.Train(t.Context(), dir, train.Call{}); !errors.Is(err, ErrFinished) {
				t.Errorf("trained to the end, it goes on: %v", err)
			}
			m, err := Open(dir) // which needs no file
			if err == nil {
				_, err = m.Predict("cat")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func bytesTo(content []byte, end byte) int { return slices.Index(content, end) + 1 }

// A run's bytes are those of any number of workers, with a pause or without.
func TestRowsRepeat(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	for _, name := range []string{"seq2seq", "classification", "tagging"} {
		c := small(t, name)
		if name != "seq2seq" {
			c.Training.ClassWeights = "balanced"
		}
		read := func(dir, file string) string {
			content, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			return string(content)
		}
		one, two := made(t, c), made(t, c)
		dirOne, dirTwo := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
		if _, err := one.Train(t.Context(), dirOne, train.Call{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := two.Train(t.Context(), dirTwo, train.Call{Workers: 2, MaxSteps: 7}); err != nil {
			t.Fatal(err)
		}
		if _, err := two.Train(t.Context(), dirTwo, train.Call{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{ConfigFile, WeightsFile, HistoryFile, CheckpointFile} {
			if read(dirOne, file) != read(dirTwo, file) {
				t.Errorf("%s: %s differs", name, file)
			}
		}
	}
}

// Balanced classes count for the same, and label smoothing and dropout count in training alone.
func TestClassWeights(t *testing.T) {
	c := of(t, "classification", "x.tsv", strings.Repeat("a\tx\nb\tx\nc\tx\nd\ty\n", 30))
	c.Data.ValidationFile = c.Data.File
	plain, err := made(t, c).Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Training.ClassWeights = "balanced"
	task := made(t, c)
	if want := []float64{2.0 / 3, 2}; !slices.EqualFunc(task.classWeights, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("the weights are %v, want %v", task.classWeights, want)
	}
	weighted, err := task.Evaluate(t.Context())
	if err != nil || weighted.Loss == plain.Loss || weighted.Right != plain.Right {
		t.Errorf("the score is %+v, %v, without weights %+v", weighted, err, plain)
	}
	b, err := task.set.(*rowSet).validation().batch([]int{0, 1, 2, 3})
	if err != nil || math.Abs(task.weight(b)-4) > 1e-12 || b.Counted() != 4 {
		t.Errorf("a batch with one of each has the weight %v, want 4", task.weight(b))
	}
	if got := balanced([]int{10, 0, 30}); !slices.Equal(got, []float64{2, 1, 2.0 / 3}) {
		t.Errorf("got %v", got)
	}

	c.Training.ClassWeights, c.Training.LabelSmoothing = "", 0.3
	smooth := made(t, c)
	if got, err := smooth.Evaluate(t.Context()); err != nil || got != plain {
		t.Errorf("with label smoothing the score is %+v, %v, want %+v", got, err, plain)
	}
	lossOf := func(task *Task) (loss float64) {
		call := train.Call{Seed: task.Config.Seed, MaxSteps: 1, OnStep: func(_, _ int, l float64) bool { loss = l; return true }}
		if _, err := train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, call); err != nil {
			t.Fatal(err)
		}
		return loss
	}
	c.Training.LabelSmoothing = 0
	if a, b := lossOf(smooth), lossOf(made(t, c)); a == b {
		t.Errorf("the training loss is %v with label smoothing and without", a)
	}
}

// manyRows are rows that all differ.
func manyRows(n int) (s string) {
	for i := range n {
		s += fmt.Sprintf("%d,title %d\n", i, i)
	}
	return s
}

// What is wrong with a file or with what is asked of it is said.
func TestRowsErrors(t *testing.T) {
	for _, test := range []struct {
		name, task, content string
		change              func(c *Config)
		want                string
	}{
		{"one source", "seq2seq", "a\tb\na\tc\n", nil, "has 1 source, and none is left to validate on: name a file with data.validation_file, or give a data.validation of 0"},
		{"sources held out together", "seq2seq", "\uFFFD\tb\n\uFFFD\uFFFD\tb\n", func(c *Config) { c.Seed = 1 }, "has 2 sources, which the seed 1 holds out together: name a file with data.validation_file, or give another seed"},
		{"hardly a label twice", "classification", "id,title\n" + manyRows(30), nil, "31 different labels in 31 rows, taken from its columns 1 and 2, and no header: the first row of data is \"id\", \"title\". data.columns names those of texts and labels"},
		{"one label", "classification", "a\tx\nb\tx\n", nil, "has 1 label, and 2 to 10000 different ones can be learned"},
		{"tags that don't fit", "tagging", strings.Repeat("a b\tX\n", 10), nil, "line 1: 2 symbols have 1 tags, and each needs one"},
		{"another length of an epoch", "seq2seq", strings.Repeat("a\tb\nb\tb\n", 30), func(c *Config) { c.Training.StepsPerEpoch = 7 }, "training.steps_per_epoch must be "},
		{"nothing that short", "seq2seq", "aaaa\tb\nbbbb\tb\n", func(c *Config) { c.Task.MaxLen = 2 }, "no row is left to train or to validate on that has a source of at most 2 symbols"},
		{"no column", "classification", "text,label\na,b\n", func(c *Config) { c.Data.Columns = []string{"text", "nope"} }, `"nope"`},
		{"white space", "seq2seq", strings.Repeat(" \tb\n", 9), nil, ""},
	} {
		c := of(t, test.task, "x."+map[bool]string{true: "csv", false: "tsv"}[strings.Contains(test.content, ",")], test.content)
		if test.change != nil {
			test.change(&c)
		}
		_, err := New(c)
		wantError(t, err, test.want)
	}
}

// A run folder without its tokenizers, or with others, isn't opened.
func TestTokenizersOfAFolder(t *testing.T) {
	t.Parallel()
	_, dir := trained(t, small(t, "seq2seq"))
	path := filepath.Join(dir, TargetTokenizerFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(content, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, ConfigFile, "its target.json: it isn't the one that data.tokenizers_sha256 is of: restore it")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, "its target.json: ")
}

// Rows take little memory beside their text.
func TestRowsAreHeldCompactly(t *testing.T) {
	const n = 100_000
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "word%d\tW %d\n", i, i%10)
	}
	text := s.Len()
	c := of(t, "seq2seq", "many.tsv", s.String())
	s.Reset()
	before := memory.HeapInUse()
	task := made(t, c)
	if held := int(memory.HeapInUse()) - int(before) - text; held > 50*n { // 100 MB of 2 million
		t.Errorf("%d rows hold %d bytes beside their text of %d", n, held, text)
	} else {
		t.Logf("%d bytes a row, beside %d of text", held/n, text/n)
	}
	if l := lookOf(task); l.Rows != n {
		t.Errorf("got %v", l)
	}
}

// Two parallel files of lines are rows.
func TestParallelFiles(t *testing.T) {
	c := of(t, "seq2seq", "source.txt", strings.Repeat("ab, c\nb \"a\n", 50))
	c.Data.TargetFile = of(t, "seq2seq", "target.txt", strings.Repeat("X\tY\nY\n", 50)).Data.File
	c.Data.Validation = 0
	task := made(t, c)
	if l := lookOf(task); l.Rows != 100 || l.Sources != 2 || l.Validates != 0 || !strings.Contains(l.String(), "none to validate on") || !strings.Contains(l.String(), "columns: the lines of it, and those of "+c.Data.TargetFile) {
		t.Errorf("got %v", l)
	}
	if sums := strings.Fields(task.Config.Data.SHA256); len(sums) != 2 {
		t.Errorf("the sums are %q", sums)
	}
}

// A run starts from another one's weights, as far as they fit, and goes on without it.
func TestStartFrom(t *testing.T) {
	t.Parallel()
	first, from := trained(t, small(t, "seq2seq"))
	start := func(name, dir string, change func(c *Config)) Config {
		c := small(t, name)
		if err := c.StartFrom(dir); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(&c)
		}
		return c
	}
	same := func(a, b *Task, name string) bool {
		return slices.Equal(a.Params.Get(name).Value.Float32s(), b.Params.Get(name).Value.Float32s())
	}
	open := func(dir string) *Task { // the weights as they are in the folder
		task := made(t, first.Config)
		if err := task.Load(dir); err != nil {
			t.Fatal(err)
		}
		return task
	}
	old := open(from)

	c := start("seq2seq", from, nil)
	task := made(t, c)
	if len(task.Loaded.Kept)+len(task.Loaded.Unused) > 0 || !same(task, old, "decoder.head.weight") || task.Config.From.SHA256 == "" {
		t.Errorf("of the same task all fits, got %+v", task.Loaded)
	}
	dir := filepath.Join(t.TempDir(), "next")
	if _, err := task.Train(t.Context(), dir, train.Call{MaxSteps: 6}); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if _, err := made(t, c).Train(t.Context(), whole, train.Call{}); err != nil {
		t.Fatal(err)
	}

	digits := of(t, "seq2seq", "digits.tsv", strings.Repeat("cat\t1\ndog\t2\n", 9)+"cow\tC O W\n")
	if err := digits.StartFrom(from); err != nil {
		t.Fatal(err)
	}
	if _, err := New(digits); err == nil {
		t.Error("a model starts to learn answers that it can't write")
	} else {
		wantError(t, err, "digits.tsv", "answers to train on have symbols that the model of ", "begin without its weights")
	}

	labels := made(t, start("classification", from, nil))
	if want := []string{"head.weight", "head.bias"}; !slices.Equal(labels.Loaded.Kept, want) || !same(labels, old, "encoder.blocks.0.attention.query.weight") || !same(labels, old, "encoder.embedding.weight") {
		t.Errorf("of labels the head is new, got %v", labels.Loaded.Kept)
	}
	if l := lookOf(labels); l.Source.Unknown < 150 || !strings.Contains(l.String(), " sources with symbols that the model doesn't know") {
		t.Errorf("of texts with spaces, got\n%v", l)
	}
	_, err := New(start("tagging", from, nil))
	wantError(t, err, "the run "+from+" to start from: nothing of its model fits this one")
	wider := made(t, start("seq2seq", from, func(c *Config) { c.Model.Dim = 32 }))
	if len(wider.Loaded.Kept) != len(wider.Params.All())-1 || slices.Contains(wider.Loaded.Kept, "decoder.head.bias") {
		t.Errorf("of another width all is new but the head's bias, got %v", wider.Loaded.Kept)
	}
	c = start("text", from, nil)
	_, err = New(c)
	wantError(t, err, "nothing of its model fits")

	// Of another alphabet of that size, the tables are new.
	_, copies := trained(t, smaller(t, Defaults(ownRule())))
	own := ownRule()
	own.Alphabet = "jihgfedcba"
	c = smaller(t, Defaults(own))
	_, err = ReadConfig(copies, own)
	wantError(t, err, "learned another task own-rule")
	own.Name = "another"
	c.Task = own
	if err := c.StartFrom(copies); err != nil {
		t.Fatal(err)
	}
	if got, want := made(t, c).Loaded.Kept, []string{"embedding.weight", "head.weight", "head.bias"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("of another alphabet %v are new, want %v", got, want)
	}

	// It goes on without the other folder once it has a checkpoint, and doesn't begin with other weights.
	weights := filepath.Join(from, WeightsFile)
	if err := os.WriteFile(weights, []byte("other"), 0o666); err != nil {
		t.Fatal(err)
	}
	saved, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	rest := made(t, saved)
	if _, err := rest.Train(t.Context(), filepath.Join(t.TempDir(), "new"), train.Call{}); err == nil || !strings.Contains(err.Error(), "its weights have changed since this run began") {
		t.Errorf("from changed weights: %v", err)
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	if _, err := made(t, saved).Train(t.Context(), dir, train.Call{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{ConfigFile, WeightsFile, HistoryFile} {
		got, errGot := os.ReadFile(filepath.Join(dir, file))
		want, errWant := os.ReadFile(filepath.Join(whole, file))
		if errGot != nil || errWant != nil || string(got) != string(want) {
			t.Errorf("%s differs: %v, %v", file, errGot, errWant)
		}
	}
}

// Byte pairs are one vocabulary for both sides, with one table for sources, answers and the head, or one for a side.
func TestBytePairs(t *testing.T) {
	t.Parallel()
	c := small(t, "seq2seq")
	c.Data.SourceUnits, c.Data.TargetUnits, c.Data.VocabSize = tokenizer.BPE, tokenizer.BPE, 300
	task, dir := trained(t, c)
	if task.Params.Get("embedding.weight") == nil || task.Params.Get("decoder.head.weight") != nil || task.layout.Tokens != task.layout.Classes {
		t.Error("there must be one table")
	}
	l := lookOf(task)
	if l.Source.Units != tokenizer.BPE || l.Source.Symbols > 300 || l.Source.Symbols < 257 || l.Source != l.Answer && l.Source.Symbols != l.Answer.Symbols {
		t.Errorf("got %+v", l)
	}
	if _, err := os.Stat(filepath.Join(dir, TokenizerFile)); err != nil || len(task.Config.Data.Tokenizers) != 1 {
		t.Error(err)
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{"catdog", "né\x00 🙂"} { // nothing is unknown
		want, err := task.Predict(input)
		if got, errGot := m.Predict(input); err != nil || errGot != nil || got != want {
			t.Errorf("of %q it makes %q, %v, want %q, %v", input, got, errGot, want, err)
		}
	}
	again := small(t, "seq2seq")
	if err := again.StartFrom(dir); err != nil {
		t.Fatal(err)
	}
	if next := made(t, again); len(next.Loaded.Kept)+len(next.Loaded.Unused) > 0 || next.Config.Data.SourceUnits != tokenizer.BPE {
		t.Errorf("started from it, got %+v", next.Loaded)
	}
	if a, err := task.Attention("catdog", ""); err != nil || len(a.Layers) == 0 {
		t.Errorf("got %v, %v", a, err)
	}

	c = small(t, "seq2seq")
	c.Data.SourceUnits, c.Data.TargetUnits = tokenizer.BPE, tokenizer.Tokens
	if task := made(t, c); task.Config.Data.VocabSize != 512 || len(task.Config.Data.Tokenizers) != 2 || task.Params.Get("embedding.weight") != nil {
		t.Errorf("of sources alone, got %+v", task.Config.Data)
	}
	c = small(t, "classification")
	c.Data.SourceUnits = tokenizer.BPE
	if task := made(t, c); len(task.Config.Data.Tokenizers) != 1 || lookOf(task).Source.Units != tokenizer.BPE {
		t.Errorf("of labels, got %+v", task.Config.Data)
	}
}
