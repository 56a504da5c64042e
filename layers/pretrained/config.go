package pretrained

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	configFile = "config.json"
	adapter    = "adapter_config.json"
)

// ReadConfig reads the configuration of a published folder: config.json, generation_config.json, and modules.json with
// the files that it names. A missing key has the default of the reference library, transformers. A key that changes
// what the model computes must be known; other keys are ignored. ReadConfig returns an *UnsupportedError if a setting
// can't be honoured, and other errors if a file is missing or malformed.
func ReadConfig(fsys fs.FS) (Config, error) {
	c := Config{Start: -1, Pad: -1}
	modules, folder, err := readModules(fsys)
	if err != nil {
		return Config{}, err
	}
	c.Folder = folder
	k, err := readKeys(fsys, path.Join(folder, configFile), false)
	if errors.Is(err, fs.ErrNotExist) && exists(fsys, adapter) {
		return Config{}, unsupported(adapter, "", "a folder with a whole model: merge the adapter into its model first")
	}
	if err == nil {
		err = c.read(k, len(modules) > 0)
	}
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", configFile, err)
	}
	if err := c.readGeneration(fsys); err != nil {
		return Config{}, err
	}
	return c, c.readEmbedding(fsys, modules)
}

// read reads config.json. With embedding, the model is used for embeddings.
func (c *Config) read(k *keys, embedding bool) error {
	if k.text("model_type", &c.Type); k.err == nil && c.Type == "" {
		return errors.New("model_type is missing: it names the architecture, such as llama")
	}
	a, err := architectureOf(c.Type)
	if err := errors.Join(k.err, err); err != nil {
		return err
	}
	if q := k.values["quantization_config"]; q != nil {
		return unsupported("quantization_config", q, "weights that aren't quantised, as F32, F16 or BF16")
	}
	k.defaults(a.defaults)
	c.Causal, c.Model = a.causal, a.model
	c.tokens(k)
	a.config(k, c)
	class := a.class
	var classes []string
	if k.texts("architectures", &classes); len(classes) > 0 {
		class = classes[0]
	}
	head := a.headOf(class)
	if embedding {
		head = "states"
	}
	switch c.Head = head; head {
	case "":
		return unsupported("architectures", class, "a model for text, for masked tokens, for classes of sequences, or without a head")
	case "states":
		*c = c.States()
	case "classes":
		*c = c.States()
		c.classes(k)
		c.Head, c.Model.NoBias = head, a.classifier.Model.NoBias
		c.Model.Outputs = len(c.Labels)
		classifier := a.classifier
		classifier.Model = c.Model
		c.Classifier = &classifier
	}
	return k.err
}

// suffixes lists the ends of the names of classes, each with its Head.
var suffixes = []struct{ suffix, head string }{
	{"ForCausalLM", "text"}, {"LMHeadModel", "text"}, {"ForMaskedLM", "mask"}, {"ForPreTraining", "mask"},
	{"ForSequenceClassification", "classes"}, {"Model", "states"},
}

// headOf returns the Head of the models of a class, or "" if it isn't supported.
func (a architecture) headOf(class string) string {
	for _, s := range suffixes {
		if _, ok := a.heads[s.head]; strings.HasSuffix(class, s.suffix) && (ok || s.head == "states") {
			return s.head
		}
	}
	return ""
}

// classFor returns the class of models with a Head.
func (a architecture) classFor(head string) string {
	if head == a.headOf(a.class) {
		return a.class
	}
	stem := a.class
	for _, s := range suffixes {
		stem = strings.TrimSuffix(stem, s.suffix)
	}
	for _, s := range suffixes {
		if s.head == head {
			return stem + s.suffix
		}
	}
	return head
}

// tokens copies the ids of special tokens.
func (c *Config) tokens(k *keys) {
	k.ids("eos_token_id", &c.End)
	k.id("bos_token_id", &c.Start)
	k.id("pad_token_id", &c.Pad)
}

// classes copies the names of the classes.
func (c *Config) classes(k *keys) {
	count, names := len(c.Labels), k.object("id2label")
	if !k.writing {
		count = 2
		k.int("num_labels", &count)
		if n := len(names.values); n > 0 {
			count = n
		}
		if count > maxLayers {
			k.fail(fmt.Errorf("there can be at most %d classes, got %d", maxLayers, count))
			return
		}
		c.Labels = make([]string, count)
	}
	for i := range count {
		c.Labels[i] = cmp.Or(c.Labels[i], fmt.Sprintf("LABEL_%d", i))
		names.text(strconv.Itoa(i), &c.Labels[i])
	}
	k.put("id2label", names)
}
