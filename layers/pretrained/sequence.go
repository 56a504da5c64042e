package pretrained

import (
	"cmp"
	"fmt"

	"github.com/heed-go/heed/layers"
)

// A Search says how generation_config.json searches for an answer.
type Search struct {
	Start int   // id of the token in front of an answer; −1 if no file says it
	First int   // id of the first token of every answer; −1 for any
	Last  []int // ids of the tokens that may end an answer of the greatest length; nil for any

	Beams         int     // number of answers that a search follows; 1 takes the likeliest token each time
	LengthPenalty float64 // power of an answer's length by which the sum of its log probabilities is divided
	Stop          string  // "early": when Beams answers have ended; "never": when no better one is possible; empty: when none is likely

	NoRepeat int     // no answer has the same tokens twice in a row of this length; 0 for no limit
	BadWords [][]int // sequences of tokens that no answer has

	Renormalize bool // the probabilities of tokens that may come next add up to 1, also if other tokens may not come

	MaxTokens int // greatest number of new tokens; 0 if the file doesn't say
	MaxLen    int // the same, counting Start too; 0 if the file doesn't say, or says MaxTokens
}

// sequence copies the keys that all encoders with a decoder have, and returns their settings.
func (k *keys) sequence(c *Config) *layers.EncoderDecoderConfig {
	if c.Sequence == nil {
		c.Sequence = &layers.EncoderDecoderConfig{}
	}
	if !k.writing {
		k.only("is_causal", true)
		c.Sequence.Shared, c.Search = true, Search{Start: -1, First: -1}
	}
	k.copy("decoder_start_token_id", (*id)(&c.Search.Start))
	return c.Sequence
}

// prefixes copies the texts that config.json puts in front of sources. In Prompts, a text of task_specific_params
// has its task's name, such as translation_en_to_de, and the text for other sources has the name prefix.
func (k *keys) prefixes(c *Config) {
	c.Prompts = map[string]string{}
	tasks := k.object("task_specific_params")
	copied := func(from *keys, name string) {
		var text string
		from.copy("prefix", &text)
		if k.fail(from.err); text != "" || from != k {
			c.Prompts[name] = text
		}
	}
	c.tasks = map[string]*keys{}
	for name := range tasks.values {
		c.tasks[name] = tasks.object(name)
		copied(c.tasks[name], name)
	}
	if copied(k, "prefix"); c.Prompts["prefix"] != "" {
		c.Prompt = "prefix"
	}
}

// For returns the configuration for one of the tasks that config.json lists in task_specific_params, such as
// summarization: with the task's settings of generation. For other names, it returns c.
func (c Config) For(task string) (Config, error) {
	k := c.tasks[task]
	if k == nil {
		return c, nil
	}
	c.Search.copy(k)
	if k.copy("min_length", &c.MinLen, "min_new_tokens", &c.MinTokens); k.get("min_new_tokens") != nil {
		c.MinLen = 0
	}
	if k.refuse(generationFile); k.err != nil {
		return c, fmt.Errorf("task_specific_params, %.100q: %w", task, k.done())
	}
	return c, nil
}

// pair returns the configuration of an encoder with a decoder.
func (c Config) pair() layers.EncoderDecoderConfig {
	pair := *c.Sequence
	pair.Model = c.Model
	return pair
}

// decoderLayers returns the number of blocks of a decoder after an encoder, or 0 if there is none.
func (c Config) decoderLayers() int {
	switch {
	case c.Sequence != nil:
		return cmp.Or(c.Sequence.DecoderLayers, c.Model.Layers)
	case c.Classifier != nil && c.Classifier.Decoder != nil:
		return cmp.Or(c.Classifier.Decoder.Layers, c.Model.Layers)
	}
	return 0
}

// search copies the members of generation_config.json that only models for sequences have.
func (c *Config) search(k *keys) {
	s := &c.Search
	if !k.writing {
		s.Beams, s.LengthPenalty = 1, 1
	}
	s.copy(k)
	if !k.writing && s.Start < 0 {
		s.Start = c.Start
	}
}

// copy copies the settings of a search.
func (s *Search) copy(k *keys) {
	k.copy("decoder_start_token_id", (*id)(&s.Start), "forced_bos_token_id", (*id)(&s.First), "forced_eos_token_id", (*ids)(&s.Last),
		"num_beams", &s.Beams, "length_penalty", &s.LengthPenalty, "early_stopping", (*stop)(&s.Stop), "no_repeat_ngram_size", &s.NoRepeat,
		"bad_words_ids", (*lists)(&s.BadWords), "renormalize_logits", &s.Renormalize, "max_new_tokens", (*zero)(&s.MaxTokens), "max_length", (*zero)(&s.MaxLen))
	if s.Beams < 1 {
		k.invalid("num_beams", "at least 1")
	}
}
