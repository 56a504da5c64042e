package task

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

// In prose, held-out rows have words that the training rows lack: "drill." is not "drill". Then the units must be byte
// pairs, and the description must say why. Tokens of a closed vocabulary must stay tokens.
func TestUnitsOfProse(t *testing.T) {
	t.Parallel()
	prose := func(i int) string {
		return fmt.Sprintf("Hello, the number of my order for one drill is %d, and it does not turn on at all!", i)
	}
	closed := func(i int) string {
		return strings.Join([]string{"K", "AH", "T", "S", "IH"}[i%4:], " ") + strings.Repeat(" N", 1+i/4%20)
	}
	label := func(i int) string { return []string{"a", "b"}[i%2] }
	tags := func(i int) string {
		return strings.TrimSuffix(strings.Repeat("X ", len(strings.Fields(prose(i)))), " ")
	}
	const tokens, words, bpe = tokenizer.Tokens, tokenizer.Words, tokenizer.BPE
	for _, test := range []struct {
		name, kind     string
		source, answer func(i int) string
		change         func(c *Config)
		units          [2]tokenizer.Units
		description    string
	}{
		{"prose", "classification", prose, label, nil, [2]tokenizer.Units{words}, "sources: words; vocabulary of "},
		{"without validation", "classification", prose, label, func(c *Config) { c.Data.Validation = 0 }, [2]tokenizer.Units{words}, "sources: words; "},
		{"single words", "classification", func(i int) string { return strings.Repeat("x", 1+i) }, label, nil, [2]tokenizer.Units{tokenizer.Characters}, "sources: characters; "},
		{"unknown words", "classification", func(i int) string { return fmt.Sprintf("%d b%d", 100+i, i) }, label, nil, [2]tokenizer.Units{tokenizer.Characters}, "sources: characters; "},
		{"a validation file without unknown words", "classification", closed, label,
			func(c *Config) { c.Data.ValidationFile = c.Data.File }, [2]tokenizer.Units{tokens}, "sources: tokens; "},
		{"a validation file", "seq2seq", closed, label,
			func(c *Config) {
				c.Data.ValidationFile = withFile(t, "seq2seq", "valid.tsv", "K AH\ta\nT Q\tb\n").Data.File
			},
			[2]tokenizer.Units{bpe, tokenizer.Characters}, "because 50 % of the held-out sources"},
		{"both sides", "seq2seq", prose, prose, nil, [2]tokenizer.Units{bpe, bpe}, "answers: bpe, because 100 % of the held-out answers have unknown words; "},
		{"one side", "seq2seq", prose, closed, nil, [2]tokenizer.Units{bpe, tokens}, "answers: tokens; "},
		{"a closed vocabulary", "seq2seq", closed, closed, nil, [2]tokenizer.Units{tokens, tokens}, "sources: tokens; "},
		{"units that were set", "classification", prose, label, func(c *Config) { c.Data.SourceUnits = tokens }, [2]tokenizer.Units{tokens}, "sources: tokens; "},
		{"words of prose", "classification", prose, label, func(c *Config) { c.Data.SourceUnits = words }, [2]tokenizer.Units{words}, "sources: words; vocabulary of 20; length at most 22, median 22"},
		{"words of sources", "seq2seq", prose, closed, func(c *Config) { c.Data.SourceUnits = words }, [2]tokenizer.Units{words, tokens}, "sources: words; "},
		{"tags", "tagging", prose, tags, nil, [2]tokenizer.Units{tokens, tokens}, "sources: tokens; "},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s strings.Builder
			for i := range 200 {
				fmt.Fprintf(&s, "%s\t%s\n", test.source(i), test.answer(i))
			}
			c := withFile(t, test.kind, "rows.tsv", s.String())
			if test.change != nil {
				test.change(&c)
			}
			task := made(t, c)
			if d := task.Config.Data; [2]tokenizer.Units{d.SourceUnits, d.TargetUnits} != test.units {
				t.Errorf("the units are %q and %q, want %q", d.SourceUnits, d.TargetUnits, test.units)
			}
			must.Have(t, task.DescribeData(), test.description)
			if source := task.Config.Task.Source; test.units[0] == words {
				ids, err := source.Encode("HELLO Hello") // the rows have Hello
				if err != nil || ids[1] == source.Unknown() || (ids[0] == ids[1]) != (test.kind == "classification") {
					t.Errorf("the ids of HELLO and Hello are %v, %v: want one for labels, and otherwise two", ids, err)
				}
			}
			if shared := task.Config.Task.Target == nil; task.Config.Task.Kind == data.KindSeq2Seq && shared != (test.units == [2]tokenizer.Units{bpe, bpe}) {
				t.Errorf("sources and answers share a vocabulary: %t", shared)
			}
		})
	}
}
