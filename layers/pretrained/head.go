package pretrained

import (
	"iter"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/layers"
)

// A head says what models with a Config.Head compute from their states, and how folders name it.
type head struct {
	suffixes []string // ends of the names of classes; Save writes the first
	task     string   // task_type of adapters; empty for none
	scope    string   // of all parameters except the head's
	vocab    bool     // the outputs are the tokens of the vocabulary
	writes   bool     // the model writes token by token
	pairs    bool     // the input may be two texts

	// outputs copies what the outputs are, and returns their number. It is nil without a head, and with vocab.
	outputs func(k *keys, c *Config, a architecture) int
}

// heads lists the values of Config.Head. A class has the first head with its suffix.
var heads = choices.Table[head]{
	{Name: "text", Value: head{suffixes: []string{"ForCausalLM", "LMHeadModel"}, task: "CAUSAL_LM", vocab: true, writes: true}},
	{Name: "mask", Value: head{suffixes: []string{"ForMaskedLM", "ForPreTraining"}, vocab: true}},
	{Name: "classes", Value: head{
		suffixes: []string{"ForSequenceClassification"}, task: "SEQ_CLS", scope: "encoder.", pairs: true,
		outputs: func(k *keys, c *Config, a architecture) int { return k.classes(c) },
	}},
	{Name: "tags", Value: head{
		suffixes: []string{"ForTokenClassification"}, task: "TOKEN_CLS", outputs: (*keys).tags,
	}},
	{Name: "spans", Value: head{
		suffixes: []string{"ForQuestionAnswering"}, task: "QUESTION_ANS", pairs: true,
		outputs: func(*keys, *Config, architecture) int { return 2 },
	}},
	{Name: "sequence", Value: head{suffixes: []string{"ForConditionalGeneration", "MTModel"}, task: "SEQ_2_SEQ_LM", vocab: true, writes: true}},
	{Name: "states", Value: head{suffixes: []string{"Model"}, task: "FEATURE_EXTRACTION"}},
}

// Heads returns the values of Config.Head, each with the ends of the names of its classes in config.json.
func Heads() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, h := range heads {
			if !yield(h.Name, h.Value.suffixes) {
				return
			}
		}
	}
}

// headOf returns the Head of the models of a class, or "" if it isn't supported.
func (a architecture) headOf(class string) string {
	for _, h := range heads {
		for _, suffix := range h.Value.suffixes {
			if _, ok := a.heads[h.Name]; strings.HasSuffix(class, suffix) && (ok || h.Name == "states" && a.headless()) {
				if suffix == "ForPreTraining" && a.ownPretraining {
					return "states"
				}
				return h.Name
			}
		}
	}
	return ""
}

// headless reports whether the models open without a head. An encoder with a decoder then opens without the decoder.
func (a architecture) headless() bool { return a.encoder || a.heads["sequence"] == nil }

// classFor returns the class of models with a Head.
func (a architecture) classFor(name string) string {
	if name == a.headOf(a.class) {
		return a.class
	}
	stem := a.class
	for _, h := range heads {
		for _, suffix := range h.Value.suffixes {
			stem = strings.TrimSuffix(stem, suffix)
		}
	}
	if a.encoder && name == "states" {
		return stem + "EncoderModel"
	}
	if h, ok := heads.Get(name); ok {
		return stem + h.suffixes[0]
	}
	return name
}

// setHead gives c, which has the architecture's own head, the named one.
func (c *Config) setHead(k *keys, name string, a architecture) {
	h, _ := heads.Get(name)
	if h.vocab {
		if c.Head, c.Classifier = name, nil; a.causal && !c.Causal {
			key := "is_causal"
			if k.values[key] != false {
				key = "use_bidirectional_attention"
			}
			k.fail(unsupported(key, k.values[key], "a model without a head, or with one for classes, tags or answers, because a text is written token by token"))
		}
		if c.Sequence != nil {
			k.prefixes(c)
		}
		return
	}
	classifier, transform := a.classifier, c.Model.Transform
	if c.Classifier != nil { // config has set it
		classifier = *c.Classifier
	}
	if s := c.Sequence; s != nil {
		classifier.Decoder = &layers.RereadConfig{Layers: s.DecoderLayers, Start: c.AnswerStart}
		if name == "classes" && c.AnswerStart < 0 {
			k.invalid("decoder_start_token_id", "the id of a token")
		}
	}
	if *c = c.States(); h.outputs == nil {
		return
	}
	c.Head = name
	c.Model.Outputs = h.outputs(k, c, a)
	if h.scope == "" {
		if slices.ContainsFunc(a.heads[name], func(line string) bool { return strings.HasPrefix(line, "transform") }) {
			c.Model.Transform = transform
		}
		return
	}
	c.Model.NoBias, c.Model.Transform = classifier.Model.NoBias, classifier.Model.Transform
	classifier.Model, c.Classifier = c.Model, &classifier
	if pad := c.Pad; pad >= 0 && classifier.Pooling == layers.LastPooling { // it may also be the token that ends a text
		classifier.Pad = &pad
	}
}

// tags copies the names of the tags and, for architectures whose head the reference library makes by one rule for all,
// whether it has a bias.
func (k *keys) tags(c *Config, a architecture) int {
	if slices.Equal(a.heads["tags"], scoreTags["tags"]) {
		k.copy("token_classification_bias", (*not)(&c.Model.NoBias))
	}
	return k.labels(c)
}
