package pretrained

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// sequence copies the keys that all encoders with a decoder have, and returns their settings.
func (k *keys) sequence(c *Config) *layers.EncoderDecoderConfig {
	if c.Sequence == nil {
		c.Sequence = &layers.EncoderDecoderConfig{}
	}
	if !k.writing {
		k.only("is_causal", true)
		c.Sequence.Shared, c.AnswerStart, c.Search = true, -1, decode.BeamOptions{Width: 1, LengthPenalty: 1, Ends: decode.EndLikely}
	}
	k.copy("decoder_start_token_id", (*id)(&c.AnswerStart))
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
	c.search(k)
	c.least(k)
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
	first := append(slices.Clip(s.ForceFirst), -1)[0]
	k.copy("decoder_start_token_id", (*id)(&c.AnswerStart), "forced_bos_token_id", (*id)(&first), "forced_eos_token_id", (*ids)(&s.ForceLast),
		"num_beams", &s.Width, "length_penalty", &s.LengthPenalty, "early_stopping", (*ends)(&s.Ends), "no_repeat_ngram_size", &s.NoRepeat,
		"bad_words_ids", (*lists)(&s.BadWords), "renormalize_logits", &s.Renormalize, "max_new_tokens", (*zero)(&s.MaxTokens), "max_length", (*zero)(&c.AnswerLen))
	if s.ForceFirst = nil; first >= 0 {
		s.ForceFirst = []int{first}
	}
	c.checkSearch(k)
}

// maxBeams is the largest num_beams, as in package train/model.
const maxBeams = 1 << 10

// checkSearch keeps an error if no search for answers can use one of its settings.
func (c *Config) checkSearch(k *keys) {
	s, vocab := &c.Search, c.answerVocab()
	for _, wanted := range []struct {
		key string
		ids []int
	}{{"decoder_start_token_id", []int{c.AnswerStart}}, {"forced_bos_token_id", s.ForceFirst}, {"forced_eos_token_id", s.ForceLast}, {"bad_words_ids", slices.Concat(s.BadWords...)}} {
		if len(wanted.ids) > 0 && slices.Max(wanted.ids) >= vocab {
			k.invalid(wanted.key, fmt.Sprintf("below %d, the size of the vocabulary", vocab))
		}
	}
	if s.Width < 1 || s.Width > maxBeams {
		k.invalid("num_beams", fmt.Sprint("from 1 to ", maxBeams))
	}
	if math.Abs(s.LengthPenalty) > 10 { // see decode.Beam
		k.invalid("length_penalty", "from -10 to 10")
	}
}

// answerVocab returns the number of tokens that an answer may have.
func (c *Config) answerVocab() int {
	if c.Sequence != nil {
		return cmp.Or(c.Sequence.TargetVocab, c.Model.Vocab)
	}
	return c.Model.Vocab
}
