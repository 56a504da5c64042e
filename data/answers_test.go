package data

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func TestAnswerCoder(t *testing.T) {
	words := must.Get(tokenizer.New(tokenizer.Words, slices.Values([]string{"who sings ? Ann and Bob ."}), 0))(t)
	rule := Rule{Name: "qa", Kind: KindQA, Pairs: true, Source: words, MaxLen: 9}
	c := must.Get(NewCoder(rule))(t)
	source := "who sings?\tAnn sings. Ann and Bob . ." // 4 ids, and then Ann sings . Ann and Bob . . in windows of 5 that share 4
	windows := must.Get(rule.Windows(source))(t)
	if len(windows) != 4 || windows[1].Tokens[0] != (tokenizer.Token{ID: windows[0].Tokens[1].ID, Start: 4, End: 9}) {
		t.Errorf("got the windows %v", windows)
	}
	for _, test := range []struct {
		answer string
		window int
		want   []int
	}{
		{"Ann", 0, []int{4, 4}}, {"Ann", 1, []int{0, 0}}, {"Ann\t11", 0, []int{7, 7}}, {"Ann\t11", 1, []int{6, 6}},
		{"Ann and Bob\t11\tBob\t19", 1, []int{6, 8}}, {"Ann and Bob", 0, []int{0, 0}}, {"nd Bo", 2, []int{6, 7}}, {"", 2, []int{0, 0}}, {"\t", 0, []int{0, 0}},
	} {
		rows, lengths, err := rule.Divide(Example{Source: source, Answer: test.answer})
		must.Do(t, err)
		rows[test.window].Source = "" // Batch doesn't read it again
		b := must.Get(c.Batch(rows[test.window : test.window+1]))(t)
		if !slices.Equal(b.Targets, test.want) || b.Lengths[0] != lengths[test.window] || b.Lengths[0] != 9 {
			t.Errorf("%q in window %d: got the targets %d of %d ids, want %d of 9", test.answer, test.window, b.Targets, b.Lengths, test.want)
		}
	}
	tabs := "who sings?\tAnn\tsings. Bob"
	if b := must.Get(c.Batch([]Example{{Source: tabs, Answer: "Ann sings"}, {Source: tabs, Answer: "Ann sings\t0"}}))(t); !slices.Equal(b.Targets, []int{4, 5, 4, 5}) {
		t.Errorf("an answer with a tab has the targets %d", b.Targets)
	}
	must.Refuse(c.Batch([]Example{{Source: source, Answer: "Bob\t1"}}))(t, `the answer "Bob" isn't in the context at byte 1`)
	must.Refuse(c.Batch([]Example{{Source: source, Answer: "Eve"}}))(t, `the answer "Eve" isn't in the context`)
	must.Refuse(c.Batch([]Example{{Source: "who sings?", Answer: "Ann"}}))(t, "it must be a question and a context with a tab between them")
	must.Refuse(c.Batch([]Example{{Source: strings.Repeat("who ", 8) + "\tAnn", Answer: "Ann"}}))(t, "the question and special tokens leave no room for the context: they are 9 tokens, and the model reads 9 at once")
	must.Refuse(c.Answer([]int{1, 1}))(t, "which targets alone don't have")
	rule.Pairs = false
	must.Refuse(NewCoder(rule))(t, "a rule of kind qa needs Pairs")
	must.Refuse(NewCoder(Rule{Name: "r", Kind: KindTagging, Alphabet: "ab", MaxLen: 3, Unanswered: true}))(t, "can't have Unanswered or Starts")
}

func TestAnswersOf(t *testing.T) {
	for answer, want := range map[string]struct {
		texts  []string
		starts []int
	}{
		"": {}, "\t": {}, "\t5": {}, "Ann": {[]string{"Ann"}, []int{-1}}, "Ann\t": {[]string{"Ann"}, []int{-1}},
		"Ann\t7\tAnn Lee\t9": {[]string{"Ann", "Ann Lee"}, []int{7, 9}},
	} {
		if texts, starts := AnswersOf(answer); !reflect.DeepEqual(texts, want.texts) || !reflect.DeepEqual(starts, want.starts) {
			t.Errorf("%q: got %q at %d, want %q at %d", answer, texts, starts, want.texts, want.starts)
		}
	}
}
