package task

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/score"
)

// tagging gives each symbol of a source one tag.
type tagging struct{ common }

var taggingKind = tagging{common{facts{
	name: data.KindTagging, help: "the tag of each token in a file",
	format: &rows.Format{AnswerUnits: true, Aligned: true, Usual: tokenizer.Tokens, Columns: []table.Column{
		{Role: "token list", Names: []string{"tokens", "words", "text", "sentence", "source"}},
		{Role: "tag list", Names: []string{"tags", "labels", "ner_tags", "pos_tags", "target"}},
	}},
	classes: true, symbols: true, linear: linearClasses{}, small: true,
}}}

func (k tagging) check(c *Config) error {
	if c.Data.SourceUnits == tokenizer.Words && c.Data.TargetUnits == tokenizer.Characters {
		return setting.Errorf("%s %s needs tags with spaces between them: leave out %s %s", setting.Path("data.source_units"), tokenizer.Words, setting.Path("data.target_units"), tokenizer.Characters)
	}
	return k.common.check(c)
}

// row returns an error if a row doesn't have one tag per symbol, or if a published tokenizer drops one of its words.
// With words and with a published tokenizer, it makes words of a row's tokens.
func (tagging) row(c *Config) func(fields []string) error {
	count := func(units tokenizer.Units, field string) int {
		if units == tokenizer.Characters {
			return utf8.RuneCountInString(field)
		}
		return len(strings.Fields(field))
	}
	return func(fields []string) error {
		if symbols, tags := count(c.Data.SourceUnits, fields[0]), count(c.Data.TargetUnits, fields[1]); symbols != tags {
			return fmt.Errorf("the source has %d symbols and %d tags: each symbol needs one tag", symbols, tags)
		}
		switch c.Data.SourceUnits {
		case tokenizer.Words:
			return intoWords(fields, text.Words)
		case tokenizer.Published:
			err := intoWords(fields, text.VisibleWords)
			if err == nil {
				_, _, err = c.Task.Tagged(fields[0])
			}
			return err
		}
		return nil
	}
}

// maxWords is the greatest size of a row's words and their tags, in bytes.
const maxWords = 4 << 20

// intoWords replaces the tokens of a row by their words, and gives each word a tag. It returns an error if the row gets
// too long.
func intoWords(fields []string, split func(string) iter.Seq[string]) error {
	var words, tags []string
	size, each := 0, strings.Fields(fields[1])
	for i, token := range strings.Fields(fields[0]) {
		parts := slices.Collect(split(token))
		if size += len(token) + len(parts)*(len(each[i])+2); size > maxWords {
			return fmt.Errorf("the words of the row and their tags have more than %d MiB", maxWords>>20)
		}
		words, tags = append(words, parts...), append(tags, wordTags(each[i], len(parts))...)
	}
	fields[0], fields[1] = strings.Join(words, " "), strings.Join(tags, " ")
	return nil
}

// wordTags returns the tags of the n words of a token with this tag. If the tag says that the token begins or ends an
// entity, only its first or its last word does.
func wordTags(tag string, n int) []string {
	tags := slices.Repeat([]string{tag}, n)
	prefix, name, atEnd := score.SplitTag(tag)
	with := func(prefix string) string {
		switch {
		case tag == "B": // tags without types
			return prefix
		case atEnd:
			return name + "-" + prefix
		}
		return prefix + "-" + name
	}
	inside, first, last := with("I"), tag, tag
	switch {
	case n == 1 || prefix == tag && tag != "B": // other single letters may be parts of speech
		return tags
	case prefix == "B":
		last = inside
	case prefix == "E" || prefix == "L":
		first = inside
	case prefix == "S":
		first, last = with("B"), with("E")
	case prefix == "U":
		first, last = with("B"), with("L")
	default:
		return tags
	}
	for i := range tags[1:] {
		tags[i+1] = inside
	}
	tags[n-1], tags[0] = last, first
	return tags
}

func (k tagging) learner(m *model.Model, c *Config, weights []float64) learner {
	l := k.labels(m, c, weights)
	if tags := c.EntityTags(); tags != nil {
		l.more = append(l.more, one(func(b *layers.Build, logits, targets *G.Node) (train.Metric, error) {
			return entityF1(tags, b, logits, targets)
		}))
	}
	return l
}

// entityF1 returns the F1 score of score.Entities as a metric. The argument tags has the text of each id.
func entityF1(tags []string, b *layers.Build, logits, targets *G.Node) (train.Metric, error) {
	sums, err := ops.SumAnswers(b.Env(), "entity f1", logits, targets, 2, func(sums []float64, answers, targets []int) {
		var answered, right []string
		for i, id := range targets {
			if id < 0 { // padding
				continue
			}
			tag := "O"
			if answers[i] >= 0 {
				tag = tags[answers[i]]
			}
			answered, right = append(answered, tag), append(right, tags[id])
		}
		var e score.Entities
		e.Add(answered, right)
		total := e.Total()
		sums[0] += float64(2 * total.Right)
		sums[1] += float64(total.Answers + total.Rows)
	})
	return train.Metric{Name: "entity_f1", Sum: sums, Value: func(sums []float64) float64 {
		return sums[0] / max(sums[1], 1)
	}}, err
}

// tokenTags leaves one tag per token in an answer of a rule for words: the tag of the token's first word. It doesn't
// change an answer with tags of pieces.
func tokenTags(r *data.Rule, a *model.Answer) {
	words, _, err := r.Tagged(a.Input)
	if err != nil || a.Err != nil || len(strings.Fields(a.Text)) != len(words) {
		return
	}
	firsts := func(answer string) string {
		var tags []string
		for i, tag := range strings.Fields(answer) {
			if i == 0 || words[i-1].End < words[i].Start {
				tags = append(tags, tag)
			}
		}
		return strings.Join(tags, " ")
	}
	a.Text = firsts(a.Text)
	for i, t := range a.Top {
		a.Top[i].Text = firsts(t.Text)
	}
}
