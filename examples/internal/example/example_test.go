package example

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, wrong string // beginning of the error message; empty if the call is right
		args        []string
		words       int
		seed        uint64
		own         bool
	}{
		{name: "no flag", words: 4, seed: 1},
		{name: "a size", args: []string{"--words", "7"}, words: 7, seed: 1, own: true},
		{name: "one dash and =", args: []string{"-seed=3"}, words: 4, seed: 3, own: true},
		{name: "an unknown flag", args: []string{"--wrods", "7"}, wrong: "flag provided but not defined: -wrods\n"},
		{name: "an argument", args: []string{"7"}, wrong: `sentence takes flags only, got the argument "7": quote a value that has spaces` + "\n"},
		{name: "an argument after a flag", args: []string{"--words", "7", "8"}, wrong: `sentence takes flags only, got the argument "8"`},
		{name: "zero", args: []string{"--words", "0"}, wrong: `invalid value "0" for flag -words: want a whole number from 1 to 64` + "\n"},
		{name: "too much", args: []string{"--words", "65"}, wrong: `invalid value "65" for flag -words: want a whole number from 1 to 64`},
		{name: "not a number", args: []string{"--words", "a"}, wrong: `invalid value "a" for flag -words: want a whole number from 1 to 64`},
		{name: "a negative seed", args: []string{"--seed", "-1"}, wrong: `invalid value "-1" for flag -seed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, seed := New("sentence")
			words := f.Size("words", 4, 64, "words of the sentence")
			err := f.Parse(c.args)
			var out, errs strings.Builder
			status := Status(err, &out, &errs)
			if c.wrong == "" {
				if err != nil || status != 0 || *words != c.words || *seed != c.seed || f.Own() != c.own {
					t.Errorf("got %d words, seed %d, own %v, status %d, error %v", *words, *seed, f.Own(), status, err)
				}
				return
			}
			if status != 2 || out.Len() > 0 || !strings.HasPrefix(errs.String(), c.wrong) {
				t.Errorf("got status %d and\n%s\nwant status 2 and\n%s", status, &errs, c.wrong)
			}
			must.Have(t, errs.String(), "Flags of sentence:\n", "  -seed N\n", "  -words N\n", "words of the sentence", "from 1 to 64", "(default 4)")
		})
	}
}

func TestStatus(t *testing.T) {
	f, _ := New("sentence")
	for _, c := range []struct {
		name          string
		err           error
		status        int
		stdout, wrong string // beginnings of standard output and standard error
	}{
		{name: "done"},
		{name: "help", err: f.Parse([]string{"--help"}), stdout: "Flags of sentence:\n"},
		{name: "wrong call", err: f.Wrong(errors.New("no words")), status: 2, wrong: "no words\nFlags of sentence:\n"},
		{name: "failure", err: errors.New("the disk is full"), status: 1, wrong: "the disk is full\n"},
		{name: "a bare ErrHelp is a failure", err: flag.ErrHelp, status: 1, wrong: "flag: help requested\n"},
	} {
		var out, errs strings.Builder
		if got := Status(c.err, &out, &errs); got != c.status {
			t.Errorf("%s: status %d, want %d", c.name, got, c.status)
		}
		if !strings.HasPrefix(out.String(), c.stdout) || (c.stdout == "") != (out.Len() == 0) {
			t.Errorf("%s: standard output is %q, want it to begin with %q", c.name, &out, c.stdout)
		}
		if !strings.HasPrefix(errs.String(), c.wrong) || (c.wrong == "") != (errs.Len() == 0) {
			t.Errorf("%s: standard error is %q, want it to begin with %q", c.name, &errs, c.wrong)
		}
	}
}
