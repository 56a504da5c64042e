package data

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
)

// A Coder turns examples into batches of token ids for a model, and what the model makes of them back into answers.
// Each Kind has its own.
type Coder interface {
	// Batch returns the batch of these examples, a row each, of which there must be one at least. It is an error if the
	// rule doesn't allow a source or an answer: an unknown symbol wraps a *tokenizer.UnknownSymbolError. An answer that
	// is left out is the rule's; where the rule has no Answer it isn't known, and what depends on it isn't either.
	Batch(examples []Example) (Batch, error)

	// Answer returns the answer that the targets of one row spell, as a model chose them. It is UTF-8: each run of
	// bytes that are no whole character, as tokens may have them, becomes one U+FFFD (�). An id that is no target's is
	// an error.
	Answer(targets []int) (string, error)

	// Layout returns what the ids stand for, and how many a row has.
	Layout() Layout

	// Tokenizers returns what makes ids of sources and of answers: the rule's, or of its Alphabet.
	Tokenizers() (source, target tokenizer.Tokenizer)
}

// A Layout is what the token ids of a Coder stand for, and how many a row has. A symbol's id is its place in the rule's
// Alphabet, or what a Tokenizer makes of it; special tokens come after the symbols, and are -1 where the kind has no
// such token.
type Layout struct {
	Tokens       int // ids of inputs are below it
	TargetTokens int // ids of what comes before targets are below it; 0 if the kind has no Start
	Classes      int // ids of targets are below it
	Len          int // positions of a row of inputs
	TargetLen    int // positions of a row of targets; 0 if a row has a single target
	Start        int // the first of what comes before an answer's symbols
	End          int // what follows a sequence
	Pad          int // what fills inputs: of text, any symbol
	TargetPad    int // what fills Before
}

// maxName is the most bytes that a rule's Name may have, which messages and folders show.
const maxName = 64

// longest is the most that a rule's MaxLen and MaxAnswer may be.
const longest = 1 << 24

// NewCoder returns the Coder of a rule's kind. A rule that lacks something, or has what its kind can't use, is an
// error.
func NewCoder(rule Rule) (Coder, error) {
	c, err := newCoder(rule)
	if err != nil {
		return nil, fmt.Errorf("task %.100q: %w", rule.Name, err)
	}
	return c, nil
}

func newCoder(rule Rule) (Coder, error) {
	plain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' }
	if rule.Name == "" || len(rule.Name) > maxName || strings.TrimFunc(rule.Name, plain) != "" {
		return nil, fmt.Errorf("a rule's Name must be of letters, digits, - and _, at most %d bytes, got %.100q: Named has Heed's own rules", maxName, rule.Name)
	}
	if rule.MaxLen < 1 || rule.MaxAnswer < 0 {
		return nil, fmt.Errorf("MaxLen must be at least 1 and MaxAnswer at least 0, got %d and %d", rule.MaxLen, rule.MaxAnswer)
	}
	if max(rule.MaxLen, rule.MaxAnswer) > longest {
		return nil, fmt.Errorf("MaxLen and MaxAnswer may be at most %d, got %d and %d", longest, rule.MaxLen, rule.MaxAnswer)
	}
	k, ok := kinds[rule.Kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("the kind must be one of %q, got %q", slices.Sorted(maps.Keys(kinds)), rule.Kind)
	case rule.Classes != nil && !k.classes:
		return nil, fmt.Errorf("a rule of kind %q has no Classes", rule.Kind)
	case rule.MaxAnswer != 0 && !k.maxAnswer:
		return nil, fmt.Errorf("a rule of kind %q has no MaxAnswer", rule.Kind)
	case rule.Target != nil && !k.target:
		return nil, fmt.Errorf("a rule of kind %q has no Target", rule.Kind)
	}
	c, err := tokenized(rule)
	if err != nil {
		return nil, err
	}
	c.cuts = k.cuts
	return k.coder(c)
}

// A kind makes the Coder of a Kind, and says which fields of a Rule the Kind uses.
type kind struct {
	classes, maxAnswer, target bool
	cuts                       bool // a Coder cuts a source that has more ids than MaxLen
	coder                      func(c coder) (Coder, error)
}

var kinds = map[Kind]kind{KindTagging: tagging, KindClassification: classification, KindSeq2Seq: seq2seq, KindText: languageModel}

// coder is what the Coders have in common.
type coder struct {
	rule           Rule
	cuts           bool
	source, target tokenizer.Tokenizer
	layout         Layout
}

// tokenized returns a coder with what makes ids of sources and of answers.
func tokenized(rule Rule) (coder, error) {
	c := coder{rule: rule, source: rule.Source, target: rule.Target}
	switch {
	case rule.Source == nil && rule.Target != nil:
		return c, errors.New("a Target needs a Source beside it")
	case rule.Source == nil:
		vocab, err := tokenizer.NewVocab(rule.Alphabet)
		if err != nil {
			return c, fmt.Errorf("its Alphabet: %w", err)
		}
		c.source, c.target = vocab, vocab
	case rule.Alphabet != "" || rule.Spell != nil || rule.Read != nil:
		return c, errors.New("a rule with a Source has no Alphabet, Spell or Read")
	case rule.Target == nil:
		c.target = rule.Source
	}
	if n := max(c.source.Len(), c.target.Len()); n < 1 || n > longest {
		return c, fmt.Errorf("a tokenizer must have 1 to %d ids, got %d and %d", longest, c.source.Len(), c.target.Len())
	}
	return c, nil
}

func (c *coder) Layout() Layout { return c.layout }

func (c *coder) Tokenizers() (source, target tokenizer.Tokenizer) { return c.source, c.target }

// batch makes a batch of padding and has fill write a row of it for each example.
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

// errorf returns an error that names the task.
func (c *coder) errorf(format string, args ...any) error {
	return fmt.Errorf("task "+strings.ReplaceAll(c.rule.Name, "%", "%%")+": "+format, args...)
}

// encode returns the ids of an example's source and of its answer, as the rule spells them.
func (c *coder) encode(e Example) (source, answer []int, err error) {
	source, spelled, err := c.spell(&e)
	if err != nil {
		return nil, nil, err
	}
	if answer, err = c.target.Encode(spelled); err != nil {
		return nil, nil, c.errorf("answer %q: %w", e.Answer, err)
	}
	return source, answer, nil
}

// spell returns the ids of an example's source and how its answer is spelled. An answer that is left out becomes the
// rule's.
func (c *coder) spell(e *Example) (ids []int, answer string, err error) {
	if e.Source == "" {
		return nil, "", c.errorf("the source is empty, want 1 to %d symbols", c.rule.MaxLen)
	}
	if n := utf8.RuneCountInString(e.Source); c.rule.Source == nil && n > c.rule.MaxLen {
		return nil, "", c.errorf("a source has at most %d symbols, got %d", c.rule.MaxLen, n)
	}
	source := e.Source
	if c.rule.Spell == nil { // else the symbols of a source are up to the rule
		if ids, err = c.source.Encode(source); err != nil {
			return nil, "", c.errorf("source %q: %w", e.Source, err)
		}
	}
	var none error // why the source has no answer
	if e.Answer == "" && c.rule.Answer != nil {
		if e.Answer, none = c.rule.Answer(e.Source); none != nil {
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
		ids = ids[:min(len(ids), c.rule.MaxLen)]
	}
	if source == e.Source && (len(ids) < 1 || len(ids) > c.rule.MaxLen) {
		return nil, "", c.errorf("a source has 1 to %d symbols, got %d", c.rule.MaxLen, len(ids))
	}
	if len(ids) < 1 || len(ids) > c.rule.MaxLen {
		return nil, "", c.errorf("source %.100q: it is spelled %.100q, of %d symbols, and may have 1 to %d", e.Source, source, len(ids), c.rule.MaxLen)
	}
	if none != nil {
		return nil, "", c.errorf("%w", none)
	}
	return ids, answer, nil
}

// read returns the answer that ids of symbols spell, as UTF-8.
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
