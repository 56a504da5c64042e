package pretrained

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/heed-go/heed/layers"
)

// ReadConfig reads the configuration of a published folder: config.json, generation_config.json, modules.json with the
// files that it names and, for models that cut texts, the limit in tokenizer_config.json. A missing key has the default
// of the reference library, transformers. A key that changes what the model computes must be known; others are ignored.
// Ids of special tokens that the vocabulary lacks count as missing.
// ReadConfig returns an *UnsupportedError if a setting can't be honoured, and other errors if a file is missing or
// malformed.
func ReadConfig(fsys fs.FS) (Config, error) { return readConfig(fsys, false) }

// ReadStates is like ReadConfig for the model without its head, whatever the head computes: see Config.States.
func ReadStates(fsys fs.FS) (Config, error) { return readConfig(fsys, true) }

func readConfig(fsys fs.FS, states bool) (Config, error) {
	modules, folder, err := readModules(fsys)
	if err != nil {
		return Config{}, err
	}
	c := Config{Start: -1, Pad: -1, Folder: folder}
	k := readKeys(fsys, path.Join(folder, configFile), false)
	if errors.Is(k.err, fs.ErrNotExist) && exists(fsys, adapter) {
		return Config{}, unsupported(adapter, "", "a folder with a whole model: merge the adapter into its model first")
	}
	sentence := &keys{}
	if len(modules) > 0 {
		sentence = readKeys(fsys, sentenceFile, true)
	}
	if c.read(k, states || len(modules) > 0 && sentence.values["model_type"] != crossEncoder); k.err != nil {
		return Config{}, k.done()
	}
	if c.writes() {
		if exists(fsys, path.Join(folder, generationFile)) { // otherwise, its members may be in config.json
			k = readKeys(fsys, path.Join(folder, generationFile), false)
		}
		if c.generation(k); k.err != nil {
			return Config{}, k.done()
		}
	}
	for _, id := range []*int{&c.Start, &c.Pad} { // small models often have the default ids of large ones
		if *id >= c.Model.Vocab {
			*id = -1
		}
	}
	c.End = slices.DeleteFunc(c.End, func(id int) bool { return id >= c.answerVocab() }) // no text has such a token
	if err := c.readTokenizer(readKeys(fsys, path.Join(folder, tokenizerFile), true)); err != nil {
		return Config{}, err
	}
	return c, c.readSentence(fsys, modules, sentence)
}

// readTokenizer checks the keys of tokenizer_config.json. Package data/tokenizer reads most of them.
func (c *Config) readTokenizer(k *keys) error {
	var inputs []string
	h, _ := heads.Get(c.Head)
	if k.copy("model_input_names", &inputs); inputs != nil && h.pairs && c.Model.Segments > 1 && !slices.Contains(inputs, "token_type_ids") {
		k.fail(unsupported("model_input_names", inputs, "token_type_ids among them, which the second of two texts needs"))
	}
	k.refuse(tokenizerFile)
	return k.done()
}

// read reads config.json. With states, the model is used without its head.
func (c *Config) read(k *keys, states bool) {
	if k.copy("model_type", &c.Type); c.Type == "" {
		k.fail(errors.New("model_type is missing: it names the architecture, such as llama"))
	}
	a, err := architectureOf(c.Type)
	k.fail(err)
	if q := k.get("quantization_config"); q != nil {
		k.fail(unsupported("quantization_config", q, "weights that aren't quantised, as F32, F16 or BF16"))
	}
	if k.err != nil {
		return
	}
	for alias, name := range a.aliases {
		if v := k.get(alias); v != nil {
			k.values[name] = v
		}
	}
	k.defaults(a.defaults)
	c.Causal, c.Model = a.causal, a.model
	c.tokens(k)
	if a.config(k, c); a.causal {
		c.isCausal(k)
	}
	for _, name := range []string{"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon", "rope_theta", "head_dim", "num_key_value_heads",
		"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling", "logit_scale",
		"d_kv"} {
		if number, ok := k.values[name].(json.Number); ok && !k.writing {
			if x, err := number.Float64(); err == nil && x == 0 { // in a layers.ModelConfig, 0 means a default
				k.invalid(name, "above 0")
			}
		}
	}
	if c.Model.Vocab < 1 { // without a table, an encoder would read vectors
		k.invalid("vocab_size", "at least 1")
	}
	if c.Sequence != nil {
		c.checkSearch(k)
	}
	classes := []string{a.class}
	if k.copy("architectures", &classes); len(classes) == 0 {
		classes = []string{a.class}
	}
	name := a.headOf(classes[0])
	if states && name != "states" {
		if name = "states"; !a.headless() {
			name = ""
		}
	}
	if name == "" {
		k.fail(unsupported("architectures", classes[0], "a model for text, for masked tokens, for classes of sequences, for tags of tokens, for answers in texts, for sequences, or without a head"))
	}
	c.setHead(k, name, a)
	k.refuse(c.Type, configFile)
}

// isCausal copies is_causal. If it is false, a token attends to those on both sides, and a window reaches one token
// further to the left, and equally far to the right. GPT-Neo's attention has a causal mask of its own.
func (c *Config) isCausal(k *keys) {
	causal := true
	if k.copy("is_causal", &causal); causal || c.Type == "gpt_neo" {
		return
	}
	c.Causal = false
	c.windows(func(w **layers.Window) {
		if *w != nil {
			*w = &layers.Window{Left: (*w).Left + 1, Right: (*w).Left + 1}
		}
	})
}

// tokens copies the ids of special tokens.
func (c *Config) tokens(k *keys) {
	k.copy("eos_token_id", (*ids)(&c.End), "bos_token_id", (*id)(&c.Start), "pad_token_id", (*id)(&c.Pad))
}

// writes reports whether the model writes token by token.
func (c *Config) writes() bool {
	h, _ := heads.Get(c.Head)
	return h.writes
}

// generation copies the members of generation_config.json. Its token ids come before those of config.json. As in the
// reference library, the likeliest token is chosen unless do_sample is true, and then temperature is 1 and top_k 50 if
// missing.
func (c *Config) generation(k *keys) {
	c.tokens(k)
	s := &c.Sampler
	sample := s.Temperature > 0
	k.copy("do_sample", &sample, "repetition_penalty", (*none)(&s.RepetitionPenalty), "suppress_tokens", (*ids)(&c.Search.Suppress),
		"begin_suppress_tokens", (*ids)(&c.Search.SuppressFirst))
	c.least(k)
	if !k.writing && sample {
		s.Temperature, s.TopK = 1, 50
	}
	drawn := *s
	if k.copy("temperature", &drawn.Temperature, "top_k", &drawn.TopK, "top_p", (*none)(&drawn.TopP), "min_p", (*none)(&drawn.MinP)); sample {
		*s = drawn
	}
	if c.Sequence != nil {
		if c.search(k); c.AnswerStart < 0 {
			c.AnswerStart = c.Start
		}
	}
	k.refuse(generationFile)
	k.fail(s.Check())
}

// least copies the least number of tokens.
func (c *Config) least(k *keys) {
	if k.copy("min_length", &c.MinLen, "min_new_tokens", (*zero)(&c.Search.MinTokens)); k.values["min_new_tokens"] != nil { // also 0
		c.MinLen = 0
	}
}

// labels copies the names of the outputs, and returns their number.
func (k *keys) labels(c *Config) int {
	count, names := len(c.Labels), k.object("id2label")
	if !k.writing {
		count = 2
		if k.copy("num_labels", &count); len(names.values) > 0 {
			count = len(names.values)
		}
		if count > maxCount {
			k.fail(fmt.Errorf("there can be at most %d classes, got %d", maxCount, count))
			return 0
		}
		c.Labels = make([]string, count)
	}
	for i := range c.Labels {
		c.Labels[i] = cmp.Or(c.Labels[i], fmt.Sprintf("LABEL_%d", i))
		if number, ok := names.values[strconv.Itoa(i)].(json.Number); ok {
			c.Labels[i] = number.String()
			continue
		}
		names.copy(strconv.Itoa(i), &c.Labels[i])
	}
	if names.err != nil {
		names.err = fmt.Errorf("id2label: %w", names.err)
	}
	k.put("id2label", names)
	return count
}

// several is the problem_type of models whose texts have several labels.
const several = "multi_label_classification"

// classes copies the names of the classes, and whether a text may have several. For a single class, it copies whether
// its logit is a number or the logit of a score. Without a key that says it, it is a number if problem_type is
// regression.
func (k *keys) classes(c *Config) int {
	count := k.labels(c)
	problem := "single_label_classification"
	function := "torch.nn.modules.linear.Identity"
	if count == 1 {
		problem = "regression"
	}
	if c.Several = c.Several || k.values["problem_type"] == several; c.Several {
		problem = several
		c.thresholds(k)
	}
	if c.Sigmoid { // never while reading
		function = "torch.nn.modules.activation.Sigmoid"
	} else {
		k.only("problem_type", problem)
	}
	sentence := k.object("sentence_transformers")
	if k.writing {
		sentence.only("activation_fn", function)
		k.put("sentence_transformers", sentence)
		return count
	}
	c.Sigmoid = count == 1 && k.values["problem_type"] == nil
	c.readActivation(k, "sbert_ce_default_activation_function")
	c.readActivation(sentence, "activation_fn")
	k.fail(sentence.err)
	return count
}

// thresholds copies the thresholds of labels, by their numbers as in id2label.
func (c *Config) thresholds(k *keys) {
	if k.writing && c.Thresholds == nil {
		return
	}
	thresholds := k.object("thresholds")
	if !k.writing && len(thresholds.values) > 0 {
		c.Thresholds = slices.Repeat([]float64{0.5}, len(c.Labels))
	}
	for i := range c.Thresholds {
		x := &c.Thresholds[i]
		if thresholds.copy(strconv.Itoa(i), x); !(*x >= 0 && *x <= 1) {
			k.fail(fmt.Errorf("thresholds: a score must be from 0 to 1, got %g", *x))
		}
	}
	k.put("thresholds", thresholds)
}
