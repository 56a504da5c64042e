package pretrained

import (
	"cmp"

	"github.com/heed-go/heed/layers"
)

// A Search says how generation_config.json searches for an answer.
type Search struct {
	Start int   // id of the token in front of an answer
	First int   // id of the first token of every answer; −1 if any may be first
	Last  []int // ids of which the first ends an answer that has reached its greatest length; nil for none

	Beams         int     // number of answers that a search follows; 1 takes the likeliest token each time
	LengthPenalty float64 // power of an answer's length by which the sum of its log probabilities is divided
	Stop          string  // "early": when Beams answers have ended; "never": when no better one is possible; empty: when none is likely

	NoRepeat int     // no answer has the same tokens twice in a row of this length; 0 for no limit
	BadWords [][]int // sequences of tokens that no answer has

	MaxTokens int // greatest number of new tokens; 0 if the file doesn't say
	MaxLen    int // the same, counting Start too; 0 if the file doesn't say, or says MaxTokens
}

// sequence copies the keys that all encoders with a decoder have, and returns their settings.
func (k *keys) sequence(c *Config) *layers.EncoderDecoderConfig {
	if c.Sequence == nil {
		c.Sequence = &layers.EncoderDecoderConfig{}
	}
	if !k.writing {
		c.Sequence.Shared, c.Search = true, Search{Start: -1, First: -1}
	}
	k.copy("decoder_start_token_id", (*id)(&c.Search.Start))
	return c.Sequence
}

// pair returns the configuration of an encoder with a decoder.
func (c Config) pair() layers.EncoderDecoderConfig {
	pair := *c.Sequence
	pair.Model = c.Model
	return pair
}

// decoderLayers returns the number of a decoder's blocks after an encoder, or 0 if there is none.
func (c Config) decoderLayers() int {
	if c.Sequence == nil {
		return 0
	}
	return cmp.Or(c.Sequence.DecoderLayers, c.Model.Layers)
}

// search copies the members of generation_config.json that only models for sequences have.
func (c *Config) search(k *keys) {
	s := &c.Search
	if !k.writing {
		s.Beams, s.LengthPenalty = 1, 1
	}
	k.copy("decoder_start_token_id", (*id)(&s.Start), "forced_bos_token_id", (*id)(&s.First), "forced_eos_token_id", (*ids)(&s.Last),
		"num_beams", &s.Beams, "length_penalty", &s.LengthPenalty, "early_stopping", (*stop)(&s.Stop), "no_repeat_ngram_size", &s.NoRepeat,
		"bad_words_ids", (*lists)(&s.BadWords), "max_new_tokens", (*zero)(&s.MaxTokens), "max_length", (*zero)(&s.MaxLen))
	if !k.writing && s.Start < 0 {
		s.Start = c.Start
	}
}
