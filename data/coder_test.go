package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func TestNewCoderErrors(t *testing.T) {
	tags := Rule{Name: "x", Kind: KindTagging, Alphabet: "ab", MaxLen: 3}
	tok := newTokenizer(t, tokenizer.Tokens, 0, "a b")
	own := Rule{Name: "own", Kind: KindSeq2Seq, MaxLen: 4, MaxAnswer: 4, Source: tok, Target: tok}
	for _, tc := range []struct {
		name   string
		change func(r *Rule)
		want   string
	}{
		{"no name", func(r *Rule) { r.Name = "" }, `a rule's Name must have 1 to 64 bytes, and only letters, digits, - and _, got ""`},
		{"a name with a path", func(r *Rule) { r.Name = "../x" }, `got "../x"`},
		{"a name with a control character", func(r *Rule) { r.Name = "x\a" }, `got "x\a"`},
		{"a long name", func(r *Rule) { r.Name = strings.Repeat("x", 65) }, "must have 1 to 64 bytes"},
		{"no kind", func(r *Rule) { r.Kind = "" }, `task "x": the kind must be one of ["classification" `},
		{"another kind", func(r *Rule) { r.Kind = "tag" }, `got "tag"`},
		{"no alphabet", func(r *Rule) { r.Alphabet = "" }, `task "x": the Alphabet: a vocabulary needs at least one symbol`},
		{"a symbol twice", func(r *Rule) { r.Alphabet = "aba" }, "holds each symbol once"},
		{"no length", func(r *Rule) { r.MaxLen = 0 }, "MaxLen must be at least 1 and MaxAnswer at least 0, got 0 and 0"},
		{"a length above the maximum", func(r *Rule) { r.MaxLen = math.MaxInt }, fmt.Sprintf("MaxLen and MaxAnswer may be at most 16777216, got %d and 0", math.MaxInt)},
		{"an answer above the maximum", func(r *Rule) { r.Kind, r.MaxAnswer = KindSeq2Seq, math.MaxInt }, fmt.Sprint("got 3 and ", math.MaxInt)},
		{"a negative answer", func(r *Rule) { r.Kind, r.MaxAnswer = KindSeq2Seq, -1 }, "got 3 and -1"},
		{"tagging with classes", func(r *Rule) { r.Classes = []string{"y", "n"} }, "with Classes needs Published, and no Target"},
		{"tagging with MaxAnswer", func(r *Rule) { r.MaxAnswer = 3 }, `a rule of kind "tagging" can't have a MaxAnswer`},
		{"classification without classes", func(r *Rule) { r.Kind = KindClassification }, "needs at least 2 Classes to choose from, got 0"},
		{"a class twice", func(r *Rule) { r.Kind, r.Classes = KindClassification, []string{"y", "y"} }, `Classes must differ and none may be empty, got "y" as number 1`},
		{"an empty class", func(r *Rule) { r.Kind, r.Classes = KindClassification, []string{"y", ""} }, `got "" as number 1`},
		{"a class that isn't text", func(r *Rule) { r.Kind, r.Classes = KindClassification, []string{"y", "\xff"} }, `Classes must be UTF-8, got "\xff" as number 1`},
		{"a Source and an alphabet", func(r *Rule) { *r = own; r.Alphabet = "ab" }, "a rule with a Source can't also have an Alphabet, Spell or Read"},
		{"a Source and a spelling", func(r *Rule) { *r = own; r.Read = strings.ToUpper }, "can't also have an Alphabet, Spell or Read"},
		{"a Target without a Source", func(r *Rule) { *r = own; r.Source = nil }, "a rule with a Target needs a Source"},
		{"tagging without a Target", func(r *Rule) { *r = own; r.Kind, r.MaxAnswer, r.Target = KindTagging, 0, nil }, "needs a Target, the tokenizer of the tags"},
		{"classification with a Target", func(r *Rule) { *r = own; r.Kind, r.MaxAnswer, r.Classes = KindClassification, 0, []string{"a", "b"} }, `a rule of kind "classification" can't have a Target`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tags
			tc.change(&r)
			must.Refuse(NewCoder(r))(t, tc.want)
		})
	}
}

// If Spell makes a source too long, Batch returns an error. It doesn't write into the next row.
func TestSpellTooLong(t *testing.T) {
	rule := named(t, "copy", 3)
	rule.Spell = func(source, answer string) (string, string) { return source + source, answer }
	must.Refuse(newCoderOf(t, rule).Batch([]Example{{Source: "ab", Answer: "ab"}}))(t, `task copy: source "ab": its spelling "abab" must have 1 to 3 symbols, got 4`)
}

// If an example has no answer, Spell gets the rule's answer. If the rule has none either, Spell gets "".
func TestSpellIsGivenTheAnswer(t *testing.T) {
	var given []Example
	rule := Rule{Name: "x", Kind: KindSeq2Seq, Alphabet: "abc", MaxLen: 3, MaxAnswer: 3,
		Answer: func(source string) (string, error) {
			if source == "c" {
				return "ignored", errors.New("c has none")
			}
			return "<" + source + ">", nil
		},
		Spell: func(source, answer string) (string, string) {
			given = append(given, Example{Source: source, Answer: answer})
			return source, strings.Trim(answer, "<>")
		},
	}
	b := must.Get(newCoderOf(t, rule).Batch([]Example{{Source: "ab"}, {Source: "ba", Answer: "<a>"}}))(t)
	if want := []Example{{Source: "ab", Answer: "<ab>"}, {Source: "ba", Answer: "<a>"}}; !slices.Equal(given, want) {
		t.Errorf("Spell got %v, want %v", given, want)
	}
	wantIDs(t, "targets", b.Targets, []int{0, 1, 3, Ignore, 0, 3, Ignore, Ignore})
	given = nil
	_, err := newCoderOf(t, rule).Batch([]Example{{Source: "c"}})
	must.Fail(t, err, "task x: c has none")
	rule.Answer = nil
	if _, err = newCoderOf(t, rule).Batch([]Example{{Source: "a"}}); err != nil {
		t.Error(err)
	}
	if want := []Example{{Source: "c"}, {Source: "a"}}; !slices.Equal(given, want) {
		t.Errorf("Spell got %v, want %v", given, want)
	}
}

// Without a Spell, Batch calls Answer only for sources with symbols of the Alphabet.
func TestAnswerNeedsKnownSymbols(t *testing.T) {
	rule := named(t, "copy", 3)
	rule.Answer = func(source string) (string, error) {
		t.Errorf("Answer was called for %q", source)
		return "", nil
	}
	must.Refuse(newCoderOf(t, rule).Batch([]Example{{Source: "A"}}))(t, `task copy: source "A": symbol 'A' at position 0`)
}

func TestClassification(t *testing.T) {
	rule := named(t, "brackets", 4)
	rule.Answer = nil
	c := newCoderOf(t, rule)
	if got, want := c.Layout(), (Layout{Tokens: 3, Classes: 2, Len: 4, Start: -1, End: -1, Pad: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b := must.Get(c.Batch([]Example{{Source: "()", Answer: "yes"}, {Source: "())", Answer: "no"}, {Source: "("}}))(t)
	wantIDs(t, "inputs", b.Inputs, []int{0, 1, 2, 2, 0, 1, 1, 2, 0, 2, 2, 2})
	wantIDs(t, "lengths", b.Lengths, []int{2, 3, 1})
	wantIDs(t, "targets", b.Targets, []int{0, 1, Ignore}) // an unknown answer gives Ignore
	if b.TargetLen != 0 || b.Counted() != 2 || b.DecoderInputs != nil {
		t.Errorf("got %+v", b)
	}
	must.Refuse(c.Batch([]Example{{Source: "()", Answer: "maybe"}}))(t, `task brackets: the answer to "()" must be one of ["yes" "no"], got "maybe"`)
	for _, targets := range [][]int{nil, {2}, {-1}, {0, 1}} {
		must.Refuse(c.Answer(targets))(t, "a row has one class from 0 to 1, got")
	}
	rule.Answer = func(string) (string, error) { return "", nil } // "" is not a class
	must.Refuse(newCoderOf(t, rule).Batch([]Example{{Source: "()"}}))(t, `the answer to "()" must be one of ["yes" "no"], got ""`)
}

func TestTextCoder(t *testing.T) {
	c := newCoderOf(t, Rule{Name: "text", Kind: KindText, Alphabet: "abcd", MaxLen: 3})
	if got, want := c.Layout(), (Layout{Tokens: 4, Classes: 4, Len: 3, TargetLen: 3, Start: -1, End: -1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	b, err := c.Batch([]Example{{Source: "abcd", Answer: "a"}, {Source: "ba"}}) // only the end of a long source is used
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Inputs, []int{1, 2, 3, 1, 0, 0}) || !slices.Equal(b.Lengths, []int{3, 2}) ||
		!slices.Equal(b.Targets, []int{2, 3, 0, 0, Ignore, Ignore}) || b.Counted() != 4 {
		t.Errorf("got %+v", b)
	}
	if got, err := c.Answer([]int{2}); got != "c" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, tc := range []struct {
		e    Example
		want string
	}{
		{Example{Source: "", Answer: "a"}, "the input is empty"}, {Example{Source: "aé"}, "symbol 'é' at position 1"},
		{Example{Source: "a", Answer: "ab"}, "one symbol that follows"}, {Example{Source: "a", Answer: "x"}, "symbol 'x'"},
	} {
		must.Refuse(c.Batch([]Example{tc.e}))(t, tc.want)
	}
}

// odd is a Tokenizer whose Decode returns text that isn't UTF-8.
type odd struct{ tokenizer.Tokenizer }

func (odd) Decode([]int) (string, error) { return "a\xffb\xe2\x82", nil }

// Coders of every kind return answers in UTF-8, although tokens may be parts of characters and a rule's Read and
// Tokenizer may return any bytes.
func TestAnswersAreUTF8(t *testing.T) {
	bytes := newTokenizer(t, tokenizer.BPE, 258, "the the the")
	part, err := bytes.Encode("é")
	if err != nil || len(part) != 2 {
		t.Fatalf("%v, %v", part, err)
	}
	read := func(string) string { return "a\xffb\xe2\x82" }
	for name, test := range map[string]struct {
		rule    Rule
		targets []int
		want    string
	}{
		"tagging":                    {Rule{Kind: KindTagging, Source: bytes, Target: bytes}, part[:1], "�"},
		"tagging, Read":              {Rule{Kind: KindTagging, Alphabet: "ab", Read: read}, []int{0, 1}, "a�b�"},
		"classification":             {Rule{Kind: KindClassification, Source: bytes, Classes: []string{"yes", "é"}}, []int{1}, "é"},
		"seq2seq":                    {Rule{Kind: KindSeq2Seq, MaxAnswer: 4, Source: bytes}, []int{part[0], part[1], part[1], part[0]}, "é�"},
		"seq2seq, a whole character": {Rule{Kind: KindSeq2Seq, MaxAnswer: 4, Source: bytes}, part, "é"},
		"seq2seq, Target":            {Rule{Kind: KindSeq2Seq, MaxAnswer: 4, Source: odd{bytes}, Target: bytes}, part[1:], "�"},
		"seq2seq, Read":              {Rule{Kind: KindSeq2Seq, MaxAnswer: 4, Alphabet: "ab", Read: read}, []int{0}, "a�b�"},
		"seq2seq, own Decode":        {Rule{Kind: KindSeq2Seq, MaxAnswer: 4, Source: odd{bytes}}, []int{0}, "a�b�"},
		"text":                       {Rule{Kind: KindText, Source: bytes}, part[:1], "�"},
		"text, several bytes":        {Rule{Kind: KindText, Source: odd{bytes}}, []int{0}, "a�b�"},
	} {
		t.Run(name, func(t *testing.T) {
			test.rule.Name, test.rule.MaxLen = "own", 4
			got, err := newCoderOf(t, test.rule).Answer(test.targets)
			if err != nil || got != test.want || !utf8.ValidString(got) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// distinct returns the characters of s, sorted and without repeats.
func distinct(s []rune) []rune {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}

// wantIDs fails the test if the ids got and want differ. The argument name describes the ids in the error.
func wantIDs(t *testing.T, name string, got, want []int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got\n%v, want\n%v", name, got, want)
	}
}
