package rows

import (
	"cmp"
	"iter"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
)

// tokenize chooses the units and makes the tokenizers of sources and answers, unless the settings and the rule have
// them.
func (s *Set) tokenize(rule *data.Rule) error {
	d, f := s.settings, s.format
	d.SourceUnits, d.TargetUnits = cmp.Or(d.SourceUnits, f.Usual), cmp.Or(d.TargetUnits, f.Usual)
	if d.SourceUnits == "" {
		source := &s.Description.Source
		d.SourceUnits = s.unitsOf(source, 0, 2) // tokens that occur once become the unknown token
		if !f.AnswerUnits && d.SourceUnits != tokenizer.Tokens && s.knowsWords() {
			d.SourceUnits, source.Unseen = tokenizer.Words, 0
		}
	}
	if f.Windows && d.SourceUnits == tokenizer.Tokens { // an answer has no punctuation at its ends
		d.SourceUnits = tokenizer.Words
	}
	if f.AnswerUnits && d.TargetUnits == "" {
		d.TargetUnits = s.unitsOf(&s.Description.Answer, 1, 1)
	}
	var err error
	shared := d.SourceUnits == tokenizer.BPE && d.TargetUnits == tokenizer.BPE // one vocabulary for both sides
	if (d.SourceUnits == tokenizer.BPE || d.TargetUnits == tokenizer.BPE) && d.VocabSize == 0 {
		bytes := 0
		for text := range s.Train.texts {
			bytes += len(text)
		}
		d.VocabSize = VocabSize(bytes)
	}
	if rule.Source == nil {
		texts, size := s.Train.Sources(), 0
		switch {
		case shared:
			texts, size = s.Train.texts, d.VocabSize
		case d.SourceUnits == tokenizer.BPE:
			size = d.VocabSize
		case d.SourceUnits == tokenizer.Tokens:
			size = frequent(texts, strings.FieldsSeq)
		case d.SourceUnits == tokenizer.Words:
			if !f.AnswerUnits {
				texts = lowered(texts)
			}
			size = frequent(texts, text.Words)
		}
		if rule.Source, err = tokenizer.New(d.SourceUnits, texts, size); err != nil {
			return err
		}
	}
	if rule.Target == nil && f.AnswerUnits && !shared {
		size := 0
		if d.TargetUnits == tokenizer.BPE {
			size = d.VocabSize
		}
		rule.Target, err = tokenizer.New(d.TargetUnits, s.Train.Answers(), size)
	}
	return err
}

// VocabSize returns a good number of ids for byte pairs that are learned from this number of bytes. A short text has
// few frequent byte pairs.
func VocabSize(bytes int) int {
	size := 512
	for size < 8192 && bytes > 400*size {
		size *= 2
	}
	return size
}

// unitsOf returns units for the sources (field 0) or the answers (field 1). They are the units that guess returns for
// the training rows, with one exception: tokens become byte pairs if more than one held-out row in twenty has an
// unknown token, as in prose. Then o.Unseen is the share of these rows. A token is unknown if it occurs fewer than
// least times in the training rows.
func (s *Set) unitsOf(o *Side, field, least int) tokenizer.Units {
	units := guess(s.Train.fields(field))
	if units != tokenizer.Tokens {
		return units
	}
	trains, held := s.divided()
	share := unknowns(held.fields(field), counted(trains.fields(field), strings.FieldsSeq), least)
	if share <= 0.05 {
		return units
	}
	o.Unseen = share
	return tokenizer.BPE
}

// divided returns training rows and held-out rows. Without validation rows, a hash holds out a tenth of the training
// rows.
func (s *Set) divided() (trains, held Part) {
	trains, held = s.Train, s.Validation
	if held.Len() > 0 {
		return trains, held
	}
	trains.numbers, held.table = nil, trains.table
	for _, n := range s.Train.numbers {
		part := &trains
		if data.Place(s.seed, trains.table.Field(int(n), 0)) < 0.1 {
			part = &held
		}
		part.numbers = append(part.numbers, n)
	}
	return trains, held
}

// knowsWords reports whether words are good units for the sources of labels and numbers: sources have several words,
// and two of three words in held-out rows occur more than once in the training rows. Of 20,000 short descriptions of
// packages in 40 classes, a model without a baseline then gets 71 % right, and with byte pairs 68 %. Words also take
// the least time, because they are fewest.
func (s *Set) knowsWords() bool {
	trains, held := s.divided()
	counts := counted(lowered(trains.fields(0)), text.Words)
	words, known := 0, 0
	for source := range lowered(held.fields(0)) {
		for word := range text.Words(source) {
			words++
			if counts[word] > 1 {
				known++
			}
		}
	}
	return words > 0 && words >= 2*held.Len() && 3*known >= 2*words
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
func guess(texts iter.Seq[string]) tokenizer.Units {
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

// lowered returns texts in lower case. A tokenizer for Words that learns from them gives all forms of a word one id,
// which is better for labels and numbers. Tags of names need the case, and answers of seq2seq may copy it.
func lowered(texts iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text := range texts {
			if !yield(strings.ToLower(text)) {
				return
			}
		}
	}
}

// frequent returns the number of ids for a tokenizer of sources: all tokens that occur more than once, and the unknown
// token. The function split returns the tokens of a text. Tokens that occur once become the unknown token, so that a
// model learns to handle it. If all tokens occur once, the result is 0, which means no limit.
func frequent(texts iter.Seq[string], split func(string) iter.Seq[string]) int {
	n := 0
	for _, times := range counted(texts, split) {
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
func counted(texts iter.Seq[string], split func(string) iter.Seq[string]) map[string]int {
	counts := map[string]int{}
	for text := range texts {
		for token := range split(text) {
			counts[token]++
		}
	}
	return counts
}
