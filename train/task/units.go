package task

import (
	"cmp"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// tokenize chooses the units and makes the tokenizers of sources and answers, unless the configuration has them.
func (s *rowSet) tokenize(c *Config) error {
	k, d := c.Kind(), &c.Data
	if err := kindOf(k.Name).rows(c, s); err != nil {
		return err
	}
	d.SourceUnits, d.TargetUnits = cmp.Or(d.SourceUnits, k.usual), cmp.Or(d.TargetUnits, k.usual)
	if d.SourceUnits == "" {
		d.SourceUnits = guess(s.trains.column(0))
	}
	if k.AnswerUnits && d.TargetUnits == "" {
		d.TargetUnits = guess(s.trains.column(1))
	}
	var err error
	one := d.SourceUnits == tokenizer.BPE && d.TargetUnits == tokenizer.BPE // one vocabulary for both sides
	if (d.SourceUnits == tokenizer.BPE || d.TargetUnits == tokenizer.BPE) && d.VocabSize == 0 {
		d.VocabSize = merged(s.trains.all)
	}
	if c.Task.Source == nil {
		texts, size := s.trains.column(0), 0
		switch {
		case one:
			texts, size = s.trains.all, d.VocabSize
		case d.SourceUnits == tokenizer.BPE:
			size = d.VocabSize
		case d.SourceUnits == tokenizer.Tokens:
			size = frequent(texts)
		}
		if c.Task.Source, err = tokenizer.New(d.SourceUnits, texts, size); err != nil {
			return err
		}
	}
	if c.Task.Target == nil && k.AnswerUnits && !one {
		size := 0
		if d.TargetUnits == tokenizer.BPE {
			size = d.VocabSize
		}
		c.Task.Target, err = tokenizer.New(d.TargetUnits, s.trains.column(1), size)
	}
	return err
}

// merged returns a good number of ids for a vocabulary of byte pairs. In little text, few byte pairs are frequent
// enough.
func merged(texts func(func(string) bool)) int {
	bytes := 0
	for text := range texts {
		bytes += len(text)
	}
	return idsFor(bytes)
}

// idsFor is like merged for a text with this number of bytes.
func idsFor(bytes int) int {
	size := 512
	for size < 8192 && bytes > 400*size {
		size *= 2
	}
	return size
}

// guess returns units for texts. They are tokens if most texts have several tokens and a few different tokens occur
// often, as phonemes do. Otherwise they are characters.
func guess(texts func(func(string) bool)) tokenizer.Units {
	counts, fields, spaced, tokens := map[string]bool{}, 0, 0, 0
	for text := range texts {
		n := 0
		for token := range strings.FieldsSeq(text) {
			if !counts[token] && len(counts) <= maxTokens {
				counts[strings.Clone(token)] = true
			}
			n++
		}
		fields, tokens = fields+1, tokens+n
		if n > 1 {
			spaced++
		}
	}
	if 2*spaced > fields && len(counts) <= maxTokens && tokens >= 10*len(counts) {
		return tokenizer.Tokens
	}
	return tokenizer.Characters
}

// maxTokens is the greatest number of different tokens for which guess returns tokens.
const maxTokens = 20_000

// frequent returns the number of ids for a tokenizer of sources: all tokens that occur more than once, and the unknown
// token. Tokens that occur once become the unknown token, so that a model learns to handle it. If all tokens occur
// once, the result is 0, which means no limit.
func frequent(texts func(func(string) bool)) int {
	counts := map[string]int{}
	for text := range texts {
		for token := range strings.FieldsSeq(text) {
			counts[token]++
		}
	}
	n := 0
	for _, times := range counts {
		if times > 1 {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return n + 1
}
