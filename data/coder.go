package data

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
)

// A Coder turns examples into batches of token ids for a model, and the model's output back into answers. Each Kind has
// its own Coder.
type Coder interface {
	// Batch returns a batch with one row per example. It returns an error if there are no examples, or if the rule
	// doesn't allow a source or an answer. If a symbol is unknown, the error wraps a *tokenizer.UnknownSymbolError. If
	// an example has no answer, Batch uses the rule's Answer. If the rule has no Answer either, the targets that depend
	// on the answer may be wrong; don't use them.
	Batch(examples []Example) (Batch, error)

	// Answer converts the targets that a model chose for one row to an answer. The answer is UTF-8: because tokens may
	// be parts of characters, each run of bytes that isn't a whole character becomes one U+FFFD (�). Answer returns an
	// error if an id can't be a target, and for a Layout with Number.
	Answer(targets []int) (string, error)

	// Layout returns the meaning of the ids and the size of a row.
	Layout() Layout

	// Tokenizers returns the tokenizers of sources and of answers: the rule's own, or the vocabulary of its Alphabet.
	Tokenizers() (source, target tokenizer.Tokenizer)
}

// coder is the common part of all Coders.
type coder struct {
	rule           Rule
	cuts           bool
	source, target tokenizer.Tokenizer
	layout         Layout
	published      *tokenizer.Pipeline // the source, if the rule has Published; its Inputs have at most MaxLen tokens if cuts is true
}

// tokenized returns a coder with the tokenizers of sources and answers.
func tokenized(rule Rule) (coder, error) {
	c := coder{rule: rule, source: rule.Source, target: rule.Target}
	switch {
	case rule.Source == nil && rule.Target != nil:
		return c, errors.New("a rule with a Target needs a Source, too")
	case rule.Source == nil:
		vocab, err := tokenizer.NewVocab(rule.Alphabet)
		if err != nil {
			return c, fmt.Errorf("the Alphabet: %w", err)
		}
		c.source, c.target = vocab, vocab
	case rule.Alphabet != "" || rule.Spell != nil || rule.Read != nil:
		return c, errors.New("a rule with a Source can't also have an Alphabet, Spell or Read")
	case rule.Target == nil:
		c.target = rule.Source
	}
	if rule.Pairs && rule.Published == (Published{}) {
		if rule.MaxLen < 3 {
			return c, fmt.Errorf("a rule with Pairs needs a MaxLen of at least 3, for two symbols and the separator, got %d", rule.MaxLen)
		}
		c.source = pairTokenizer{symbolTokenizer{c.source, "\t"}}
	}
	if p := rule.Published; p != (Published{}) {
		source, ok := rule.Source.(*tokenizer.Pipeline)
		if !ok || p.Tokens < 1 || max(p.Start, p.Pad, p.Mask) >= max(p.Tokens, p.Targets) || p.Targets < 0 || min(p.Start, p.Pad, p.Mask) < -1 {
			return c, fmt.Errorf("a rule with Published needs a Source of type *tokenizer.Pipeline, at least 1 token and ids below that, got a %T and %+v", rule.Source, p)
		}
		if p.MaxLen > 0 && rule.MaxLen > p.MaxLen {
			return c, fmt.Errorf("the published model reads at most %d tokens, got a MaxLen of %d", p.MaxLen, rule.MaxLen)
		}
		c.published = source.WithLimit(0)
	}
	if n := max(c.source.Len(), c.target.Len()); n < 1 || n > longest {
		return c, fmt.Errorf("a tokenizer must have 1 to %d ids, got %d and %d", longest, c.source.Len(), c.target.Len())
	}
	return c, nil
}

// sequenceLayout returns the layout of a kind with one target per row: ids of symbols, with the separator of pairs,
// then padding.
func (c *coder) sequenceLayout(classes int) Layout {
	n := c.source.Len()
	l := Layout{Tokens: n + 1, Classes: classes, Len: c.rule.MaxLen, Start: -1, End: -1, Pad: n}
	if c.published != nil {
		l.Tokens, l.Pad = c.rule.Published.Tokens, max(0, c.rule.Published.Pad)
		l.Segments, l.Separator = c.segments()
	} else if c.rule.Pairs {
		l.Segments, l.Separator = 2, n-1
	}
	return l
}

func (c *coder) Layout() Layout { return c.layout }

func (c *coder) Tokenizers() (source, target tokenizer.Tokenizer) { return c.source, c.target }

// segments returns the number of segments that a published model and its tokenizer tell apart, 2 or 0, and the id
// before the second.
func (c *coder) segments() (n, separator int) {
	input, err := c.published.Input("a", "a")
	if i := slices.Index(input.Types, 1); err == nil && i > 0 && c.rule.Published.Segments > 1 {
		return 2, input.Tokens[i-1].ID
	}
	return 0, 0
}

// ids returns the ids of a source. For a published model, they include special tokens. It returns an error if the model
// doesn't have one of them.
func (c *coder) ids(source string) (ids []int, err error) {
	if c.published == nil {
		return c.source.Encode(source)
	}
	ids, err = publishedTokenizer{c.published, &c.rule}.Encode(source)
	return ids, cmp.Or(err, c.rule.Published.known(ids))
}

// targets returns the ids of an answer. With Published, seq2seq has special tokens among them.
func (c *coder) targets(answer string) ([]int, error) {
	t := c.rule.AnswerTokenizer()
	if c.rule.Source == nil {
		t = c.target
	}
	ids, err := t.Encode(answer)
	if c.published != nil && c.rule.Kind == KindSeq2Seq {
		err = cmp.Or(err, Published{Tokens: c.layout.TargetTokens}.known(ids))
	}
	return ids, err
}

// known returns an error if the model doesn't have one of the ids.
func (p Published) known(ids []int) error {
	for _, id := range ids {
		if id >= p.Tokens {
			return fmt.Errorf("the tokenizer's id %d is beyond the model's %d ids: the tokenizer belongs to another model", id, p.Tokens)
		}
	}
	return nil
}

// batch makes a batch of padding, and calls fill for each example to write its row.
func (c *coder) batch(examples []Example, fill func(b *Batch, row int, e Example) error) (Batch, error) {
	b, err := newBatch(len(examples), c.layout)
	if err != nil {
		return Batch{}, err
	}
	for row, e := range examples {
		if err := fill(&b, row, e); err != nil {
			return Batch{}, err
		}
	}
	return b, nil
}

// answers makes a batch whose rows are as long as the longest source: some published models have a Len of 2²⁴. Of an
// answer that isn't empty, put writes the targets.
func (c *coder) answers(examples []Example, put func(b *Batch, row int, source, answer string) error) (Batch, error) {
	sources, answers, length := make([][]int, len(examples)), make([]string, len(examples)), 1
	for i, e := range examples {
		var err error
		if sources[i], answers[i], err = c.spell(&e); err != nil {
			return Batch{}, err
		}
		length = max(length, len(sources[i]))
	}
	short := *c
	short.layout.Len = length
	return short.batch(examples, func(b *Batch, row int, e Example) error {
		if b.Lengths[row] = copy(b.Inputs[row*b.Len:], sources[row]); answers[row] == "" {
			return nil
		}
		return put(b, row, e.Source, answers[row])
	})
}

// errorf returns an error that names the task.
func (c *coder) errorf(format string, args ...any) error {
	return fmt.Errorf("task "+strings.ReplaceAll(c.rule.Name, "%", "%%")+": "+format, args...)
}

// encode returns the ids of an example's source and answer, as the rule spells them.
func (c *coder) encode(e Example) (source, answer []int, err error) {
	source, spelled, err := c.spell(&e)
	if err != nil {
		return nil, nil, err
	}
	if answer, err = c.targets(spelled); err != nil {
		return nil, nil, c.errorf("answer %q: %w", e.Answer, err)
	}
	return source, answer, nil
}

// spell returns the ids of an example's source, and the spelling of its answer. If the example has no answer, spell
// asks the rule for one.
func (c *coder) spell(e *Example) (ids []int, answer string, err error) {
	if e.Source == "" && c.published == nil {
		return nil, "", c.errorf("the source is empty, want 1 to %d symbols", c.rule.MaxLen)
	}
	if n := utf8.RuneCountInString(e.Source); c.rule.Source == nil && n > c.rule.MaxLen {
		return nil, "", c.errorf("a source must have at most %d symbols, got %d", c.rule.MaxLen, n)
	}
	source := e.Source
	if c.rule.Spell == nil { // with a Spell, only the spelling must have known symbols
		if ids, err = c.ids(source); err != nil {
			return nil, "", c.errorf("source %q: %w", e.Source, err)
		}
	}
	var refused error // why the source has no answer
	if e.Answer == "" && c.rule.Answer != nil {
		if e.Answer, refused = c.rule.Answer(e.Source); refused != nil {
			e.Answer = ""
		}
	}
	answer = e.Answer
	if c.rule.Spell != nil {
		source, answer = c.rule.Spell(e.Source, e.Answer)
		if ids, err = c.source.Encode(source); err != nil {
			return nil, "", c.errorf("source %q: %w", e.Source, err)
		}
	}
	if c.rule.Source != nil && c.cuts {
		if p, ok := c.source.(pairTokenizer); ok {
			ids = p.cutPair(ids, c.rule.MaxLen)
		}
		ids = ids[:min(len(ids), c.rule.MaxLen)]
	}
	if source == e.Source && (len(ids) < 1 || len(ids) > c.rule.MaxLen) {
		return nil, "", c.errorf("a source must have 1 to %d symbols, got %d", c.rule.MaxLen, len(ids))
	}
	if len(ids) < 1 || len(ids) > c.rule.MaxLen {
		return nil, "", c.errorf("source %.100q: its spelling %.100q must have 1 to %d symbols, got %d", e.Source, source, c.rule.MaxLen, len(ids))
	}
	if refused != nil {
		return nil, "", c.errorf("%w", refused)
	}
	return ids, answer, nil
}

// read decodes the ids of an answer to UTF-8.
func (c *coder) read(ids []int) (string, error) {
	text, err := c.target.Decode(ids)
	if err != nil {
		return "", err
	}
	if c.rule.Read != nil {
		text = c.rule.Read(text)
	}
	return strings.ToValidUTF8(text, string(utf8.RuneError)), nil
}
