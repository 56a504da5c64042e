package data

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	tests := []struct {
		name    string
		maxLen  int
		want    int
		wantErr string
	}{
		{DefaultTask, 0, 10, ""},
		{"copy", 1, 1, ""},
		{"sort", 64, 64, ""},
		{"add", 0, 5, ""},
		{"add", 5, 5, ""},
		{"add", 10, 0, "task add: the longest source has 5 symbols, which can't be changed to 10"},
		{"copy", 65, 0, "task copy: the longest source may have 1 to 64 symbols (0: the default, 10), got 65"},
		{"copy", -1, 0, "got -1"},
		{"shuffle", 0, 0, `unknown task "shuffle": the tasks are reverse, copy, sort, add`},
		{"", 0, 0, "the tasks are"},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.name, tc.maxLen), func(t *testing.T) {
			task, err := Named(tc.name, tc.maxLen)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if task.Name != tc.name || task.MaxLen != tc.want {
				t.Errorf("got task %q of length %d", task.Name, task.MaxLen)
			}
		})
	}
	if TaskNames()[0] != DefaultTask {
		t.Errorf("the first of %v isn't the default", TaskNames())
	}
}

func TestAnswer(t *testing.T) {
	tests := []struct{ task, source, want, wantErr string }{
		{"reverse", "lamp", "pmal", ""},
		{"reverse", "z", "z", ""},
		{"copy", "attention", "attention", ""},
		{"sort", "attention", "aeinnottt", ""},
		{"add", "12+34", "46", ""},
		{"add", "99+99", "198", ""},
		{"add", "0+0", "0", ""},
		{"add", "05+7", "12", ""},
		{"reverse", "", "", "task reverse: the source is empty, want 1 to 10 symbols"},
		{"copy", "abcdefghijk", "", "task copy: a source has at most 10 symbols, got 11"},
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
			task := named(t, tc.task, 0)
			got, err := task.Answer(tc.source)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestAnswerUnknownSymbolIsTyped(t *testing.T) {
	_, err := named(t, "copy", 0).Answer("a b")
	var unknown *UnknownSymbolError
	if !errors.As(err, &unknown) || unknown.Symbol != ' ' || unknown.Position != 1 {
		t.Errorf("got %v", err)
	}
}

func TestZeroTask(t *testing.T) {
	var task Task
	if s := task.Sample(rand.New(rand.NewPCG(1, 2))); s != "" {
		t.Errorf("sampled %q", s)
	}
	_, err := task.Answer("a")
	wantError(t, err, "Named")
	_, err = NewSplit(task, 0, 1)
	wantError(t, err, "Named")
	_, err = NewLabeler(task)
	wantError(t, err, "Named")
}

// Answers agree with other ways of computing them, and fit: within the alphabet, and no longer than the source.
func TestAnswerOfSamples(t *testing.T) {
	independent := map[string]func(source string) string{
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
			if _, err := fmt.Sscanf(source, "%d+%d", &a, &b); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(a + b)
		},
	}
	for _, name := range TaskNames() {
		task := named(t, name, 0)
		rng := rand.New(rand.NewPCG(1, 2))
		lengths := make(map[int]int)
		for range 5000 {
			source := task.Sample(rng)
			lengths[len(source)]++
			answer, err := task.Answer(source)
			if err != nil {
				t.Fatal(err)
			}
			if want := independent[name](source); answer != want {
				t.Fatalf("%s of %q is %q, want %q", name, source, answer, want)
			}
			if len(answer) > len(source) || !onlyOf(source+answer, task.Alphabet) {
				t.Fatalf("%s of %q is %q", name, source, answer)
			}
		}
		if name == "add" {
			continue
		}
		for n := 1; n <= task.MaxLen; n++ {
			if c := lengths[n]; c < 400 || c > 600 {
				t.Errorf("%s: %d of 5000 samples have length %d", name, c, n)
			}
		}
	}
}

// Every pair of numbers is a source of add, as likely as any other.
func TestSampleAdd(t *testing.T) {
	task := named(t, "add", 0)
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[string]bool)
	for range 150_000 {
		seen[task.Sample(rng)] = true
	}
	if len(seen) < 9_990 || len(seen) > 10_000 {
		t.Errorf("%d different sources, want 10,000", len(seen))
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"lamp", "", "12+34", "1+", "+", "é", "\xff", "0+00", "1++1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, name := range TaskNames() {
			task := named(t, name, 0)
			labeler, err := NewLabeler(task)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := task.Answer(source)
			if err == nil && (len(answer) > len(source) || !onlyOf(answer, task.Alphabet)) {
				t.Fatalf("%s of %q is %q", name, source, answer)
			}
			if _, batchErr := labeler.Batch([]string{source}, 1); (batchErr == nil) != (err == nil) {
				t.Fatalf("%s of %q: Answer says %v, Batch %v", name, source, err, batchErr)
			}
		}
	})
}

func named(t testing.TB, name string, maxLen int) Task {
	t.Helper()
	task, err := Named(name, maxLen)
	if err != nil {
		t.Fatal(err)
	}
	return task
}
