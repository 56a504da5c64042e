package toy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func TestNamed(t *testing.T) {
	tests := []struct {
		name    string
		maxLen  int
		want    int
		wantErr string
	}{
		{"reverse", 0, 10, ""},
		{"copy", 1, 1, ""},
		{"sort", 64, 64, ""},
		{"add", 0, 5, ""},
		{"add", 5, 5, ""},
		{"add", 10, 0, "task add: the maximum source length is 5 symbols and can't be changed to 10"},
		{"copy", 65, 0, "task copy: the maximum source length must be from 1 to 64 symbols (0: the default, 10), got 65"},
		{"copy", -1, 0, "got -1"},
		{"shuffle", 0, 0, `unknown task "shuffle": the tasks are reverse, `},
		{"", 0, 0, "the tasks are"},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.name, tc.maxLen), func(t *testing.T) {
			task, err := Named(tc.name, tc.maxLen)
			if must.Match(t, err, tc.wantErr) {
				return
			}
			if task.Name != tc.name || task.MaxLen != tc.want {
				t.Errorf("got task %q with MaxLen %d, want %q and %d", task.Name, task.MaxLen, tc.name, tc.want)
			}
		})
	}
	if Names()[0] != "reverse" {
		t.Errorf("got %v, want the default rule, reverse, first", Names())
	}
}

// Most right answers are in TestAnswerOfSamples.
func TestAnswer(t *testing.T) {
	tests := []struct{ task, source, want, wantErr string }{
		{"reverse", "lamp", "pmal", ""},
		{"add", "0+0", "0", ""},
		{"add", "05+7", "12", ""},
		{"reverse", "", "", "task reverse: the source is empty, want 1 to 10 symbols"},
		{"copy", "abcdefghijk", "", "task copy: a source must have at most 10 symbols, got 11"},
		{"copy", "éééééééééé", "", "symbol 'é' at position 0"},
		{"sort", "abC", "", `task sort: source "abC": symbol 'C' at position 2 (from 0) isn't one of the 26 known`},
		{"reverse", "ab\xff", "", "not UTF-8: the byte at offset 2"},
		{"add", "12", "", "such as 12+34, got \"12\""},
		{"add", "+12", "", "two numbers"},
		{"add", "12+", "", "two numbers"},
		{"add", "+", "", "two numbers"},
		{"add", "1+2+3", "", "two numbers"},
		{"add", "1++2", "", "two numbers"},
		{"add", "123+4", "", "two numbers"},
		{"add", "1+234", "", "two numbers"},
		{"add", "12-34", "", "symbol '-' at position 2"},
		{"add", "12+345", "", "at most 5 symbols, got 6"},
	}
	for _, tc := range tests {
		t.Run(tc.task+" "+tc.source, func(t *testing.T) {
			got, err := solve(named(t, tc.task, 0), tc.source)
			if must.Match(t, err, tc.wantErr) {
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestAnswerUnknownSymbolIsTyped(t *testing.T) {
	_, err := solve(named(t, "copy", 0), "a b")
	var unknown *tokenizer.UnknownSymbolError
	if !errors.As(err, &unknown) || unknown.Symbol != ' ' || unknown.Position != 1 {
		t.Errorf("got error %v, want an UnknownSymbolError for ' ' at position 1", err)
	}
}

// Every rule has a description and an example. For every MaxLen, the example and all samples have answers, and the
// Coder gets each answer back from its targets.
func TestRules(t *testing.T) {
	t.Parallel()
	for i, name := range Names() {
		t.Run(name, func(t *testing.T) {
			task := named(t, name, 0)
			if task.Name != name || task.About == "" || task.Example == "" {
				t.Errorf("got %+v, want a rule with Name, About and Example", task)
			}
			for _, maxLen := range []int{0, 1, 2, 3, rules[i].longest} {
				task, err := Named(name, maxLen)
				if err != nil && rules[i].longest == 0 {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				coder := must.Get(data.NewCoder(task))(t)
				l := coder.Layout()
				rng := rand.New(rand.NewPCG(1, 2))
				for i := range 2000 {
					source := task.Sample(rng, task.MaxLen)
					if i == 0 {
						source = task.Example
					}
					want, err := task.Answer(source)
					if err != nil {
						t.Fatalf("%q: %v", source, err)
					}
					b := must.Get(coder.Batch([]data.Example{{Source: source, Answer: want}}))(t)
					valid := b.Targets[:b.Counted()]
					if got, err := coder.Answer(valid); err != nil || got != want {
						t.Fatalf("the targets of %q spell %q, %v; want %q", source, got, err, want)
					}
					if slices.Max(b.Inputs) >= l.Tokens || slices.Max(b.Targets) >= l.Classes || slices.Min(b.Inputs) < 0 || slices.Min(valid) < 0 {
						t.Fatalf("ids of %q are out of range: %+v", source, b)
					}
				}
			}
		})
	}
}

// TestAnswerOfSamples compares answers to random samples with independent implementations.
func TestAnswerOfSamples(t *testing.T) {
	for name, independent := range map[string]func(source string) string{
		"reverse": func(source string) (answer string) {
			for _, r := range source {
				answer = string(r) + answer
			}
			return answer
		},
		"copy": func(source string) string { return source },
		"sort": func(source string) (answer string) {
			for r := 'a'; r <= 'z'; r++ {
				answer += strings.Repeat(string(r), strings.Count(source, string(r)))
			}
			return answer
		},
		"add": func(source string) string {
			var a, b int
			must.Get(fmt.Sscanf(source, "%d+%d", &a, &b))(t)
			return fmt.Sprint(a + b)
		},
		"brackets": func(source string) string {
			for strings.Contains(source, "()") {
				source = strings.ReplaceAll(source, "()", "")
			}
			if source == "" {
				return "yes"
			}
			return "no"
		},
	} {
		task := named(t, name, 0)
		rng := rand.New(rand.NewPCG(1, 2))
		lengths, answers := make(map[int]int), make(map[string]int)
		for range 5000 {
			source := task.Sample(rng, task.MaxLen)
			lengths[len(source)]++
			got := must.Get(solve(task, source))(t)
			answers[got]++
			if want := independent(source); got != want {
				t.Fatalf("%s of %q is %q, want %q", name, source, got, want)
			}
		}
		if task.Alphabet == letters { // words
			for n := 1; n <= task.MaxLen; n++ {
				if c := lengths[n]; c < 400 || c > 600 {
					t.Errorf("%s: %d of 5000 samples have length %d, want about 500", name, c, n)
				}
			}
		}
		for _, class := range task.Classes {
			if answers[class] < 1000 {
				t.Errorf("%s: %d of 5000 samples have the answer %s, want at least 1000", name, answers[class], class)
			}
		}
	}
}

// All pairs of numbers are sources of add, and all are equally likely.
func TestSampleAdd(t *testing.T) {
	task := named(t, "add", 0)
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[string]bool)
	for range 150_000 {
		seen[task.Sample(rng, task.MaxLen)] = true
	}
	if len(seen) < 9_990 || len(seen) > 10_000 {
		t.Errorf("%d different sources, want 10,000", len(seen))
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"lamp", "", "12+34", "1+", "+", "é", "\xff", "0+00", "1++1", "(()", "7.3.24"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, name := range Names() {
			task := named(t, name, 0)
			got, err := solve(task, source)
			if err != nil {
				continue
			}
			if want, err := task.Answer(source); err != nil || got != want {
				t.Fatalf("%s of %q is %q, %v; the targets spell %q", name, source, want, err, got)
			}
		}
	})
}

// For all rules and several seeds, no source is used for both training and validation. For dates, which people write in
// several ways, no answer is.
func TestSplitIsDisjoint(t *testing.T) {
	t.Parallel()
	steps := 200
	if testing.Short() {
		steps = 20
	}
	for _, name := range Names() {
		rule := named(t, name, 0)
		key := func(e data.Example) string {
			if rule.ByAnswer {
				return e.Answer
			}
			return e.Source
		}
		for _, seed := range []uint64{0, 1, math.MaxUint64} {
			s := must.Get(data.NewSplit(rule, seed, 1000))(t)
			validation := make(map[string]bool)
			for _, e := range s.Validation() {
				if data.Place(seed, key(e)) >= 1.0/8 {
					t.Fatalf("%s: the validation source %q isn't held out", name, e.Source)
				}
				validation[key(e)] = true
			}
			if len(validation) != 1000 {
				t.Fatalf("%s: got %d different validation sources, want 1000", name, len(validation))
			}
			for step := range steps {
				for _, e := range must.Get(s.Train(step/50, step%50, 64))(t) {
					if validation[key(e)] || data.Place(seed, key(e)) < 1.0/8 {
						t.Fatalf("%s, seed %d: %q is used for training and for validation", name, seed, e.Source)
					}
				}
			}
		}
	}
}

// solve returns the answer that the targets of a source spell.
func solve(rule data.Rule, source string) (string, error) {
	coder, err := data.NewCoder(rule)
	if err != nil {
		return "", err
	}
	b, err := coder.Batch([]data.Example{{Source: source}})
	if err != nil {
		return "", err
	}
	return coder.Answer(b.Targets[:b.Counted()])
}

func named(t testing.TB, name string, maxLen int) data.Rule {
	t.Helper()
	return must.Get(Named(name, maxLen))(t)
}
