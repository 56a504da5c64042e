package task

import (
	"cmp"
	"iter"
	"strings"

	"github.com/heed-go/heed/data"
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
		d.SourceUnits = s.unitsOf(&s.description.Source, 0, 2, c.Seed) // tokens that occur once become the unknown token
	}
	if k.AnswerUnits && d.TargetUnits == "" {
		d.TargetUnits = s.unitsOf(&s.description.Answer, 1, 1, c.Seed)
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

// unitsOf returns units for the sources (column 0) or the answers (column 1): the units that guess returns for the
// training rows. But if these are tokens and more than one held-out row in twenty has an unknown token, as in prose,
// unitsOf returns byte pairs and sets o.Unseen to the share of these rows. A token is unknown if it occurs fewer than
// least times in the training rows. Without validation rows, a hash holds out a tenth of the training rows.
func (s *rowSet) unitsOf(o *side, column, least int, seed uint64) tokenizer.Units {
	units, trains, held := guess(s.trains.column(column)), s.trains, s.validates
	if units != tokenizer.Tokens {
		return units
	}
	if len(held.number) == 0 {
		trains.number, held.table = nil, trains.table
		for _, n := range s.trains.number {
			part := &trains
			if data.HeldOut(seed, trains.table.Field(int(n), 0), 0.1) {
				part = &held
			}
			part.number = append(part.number, n)
		}
	}
	share := unknowns(held.column(column), counted(trains.column(column)), least)
	if share <= 0.05 {
		return units
	}
	o.Unseen = share
	return tokenizer.BPE
}

// unknowns returns the share of texts that have a token with a count below least.
func unknowns(texts iter.Seq[string], counts map[string]int, least int) float64 {
	n, unknown := 0, 0
	for text := range texts {
		n++
		for token := range strings.FieldsSeq(text) {
			if counts[token] < least {
				unknown++
				break
			}
		}
	}
	return float64(unknown) / float64(max(1, n))
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
	n := 0
	for _, times := range counted(texts) {
		if times > 1 {
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return n + 1
}

// counted returns the number of occurrences of each token.
func counted(texts iter.Seq[string]) map[string]int {
	counts := map[string]int{}
	for text := range texts {
		for token := range strings.FieldsSeq(text) {
			counts[token]++
		}
	}
	return counts
}
