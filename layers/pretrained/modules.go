package pretrained

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/heed-go/heed/layers"
)

// A module is an entry of modules.json, which sentence-transformers writes.
type module struct{ path, kind string }

// kinds lists the modules that open, in their order.
var kinds = []string{"Transformer", "Pooling", "Dense", "Normalize"}

// readModules reads modules.json, if there is one, and returns the folder of the transformer, "." by default.
func readModules(fsys fs.FS) (list []module, folder string, err error) {
	var entries []map[string]any
	err = readJSON(fsys, modulesFile, maxJSON, &entries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ".", nil
	}
	k := &keys{file: modulesFile, err: err}
	for _, entry := range entries {
		var m module
		k.values = entry
		k.copy("path", &m.path, "type", &m.kind)
		k.refuse(modulesFile)
		m.path, m.kind = path.Join(".", m.path), m.kind[strings.LastIndexByte(m.kind, '.')+1:]
		if !fs.ValidPath(m.path) {
			k.invalid("path", "a folder in this folder")
		}
		i, place := len(list), slices.Index(kinds, m.kind)
		if place < 0 || i < 2 && place != i || i > 0 && place <= slices.Index(kinds, list[i-1].kind) {
			k.fail(unsupported("type", m.kind, "Transformer, Pooling, and perhaps Dense and Normalize, each once, in this order"))
		}
		list = append(list, m)
	}
	if k.err != nil || len(list) == 0 {
		k.fail(errors.New("expected modules, got none"))
		return nil, "", k.done()
	}
	return list, list[0].path, nil
}

// crossEncoder is the model_type in sentenceFile of a model that scores a text or two. Its logits are the scores, or
// become scores by a function.
const crossEncoder = "CrossEncoder"

// readSentence reads how texts become the model's input, and how the states become an embedding or the logits a score.
// The keys k are those of sentenceFile.
func (c *Config) readSentence(fsys fs.FS, modules []module, k *keys) error {
	if c.writes() { // texts aren't cut
		return nil
	}
	if err := c.readLength(fsys, len(modules) > 0); err != nil || len(modules) == 0 {
		return err
	}
	kind := "SentenceTransformer"
	k.copy("model_type", &kind)
	switch {
	case kind == crossEncoder && c.Head == "classes" && len(modules) == 1:
		k.only("default_prompt_name", nil)
		c.readActivation(k, "activation_fn")
	case kind == "SentenceTransformer":
		for _, m := range modules[1:] {
			own := readKeys(fsys, path.Join(m.path, configFile), m.kind == "Normalize")
			switch m.kind {
			case "Pooling":
				c.readPooling(own)
			case "Dense":
				c.dense = m.path
				c.readDense(own)
			default:
				c.Normalize = true
			}
			if own.refuse(m.kind); own.err != nil {
				return own.done()
			}
		}
	default:
		k.fail(unsupported("model_type", kind, "SentenceTransformer, or "+crossEncoder+" with a classifier of sequences as its only module"))
	}
	prompts := k.object("prompts")
	c.Prompts = map[string]string{}
	for name := range prompts.values {
		var prompt string
		prompts.copy(name, &prompt)
		c.Prompts[name] = prompt
	}
	k.fail(prompts.err)
	k.copy("default_prompt_name", &c.Prompt, "similarity_fn_name", &c.Similarity)
	if _, ok := c.Prompts[c.Prompt]; c.Prompt != "" && !ok {
		k.invalid("default_prompt_name", "the name of one of the prompts")
	}
	k.refuse(sentenceFile)
	return k.done()
}

// readLength reads the number of tokens at which texts are cut: max_seq_length or, if no file has it, the tokenizer's
// own limit. Only a folder with modules has a file with max_seq_length.
func (c *Config) readLength(fsys fs.FS, modules bool) error {
	limit, task, output, states := 0, "feature-extraction", "token_embeddings", "last_hidden_state"
	if c.Head == "classes" {
		task, output, states = "sequence-classification", "scores", "logits"
	}
	kinds := []string{"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"} // at most one of them exists
	if !modules {
		kinds = nil
	}
	for _, kind := range kinds {
		k := readKeys(fsys, path.Join(c.Folder, "sentence_"+kind+"_config.json"), true)
		k.copy("max_seq_length", &limit)
		forward := k.object("modality_config").object("text")
		forward.only("method", "forward", "method_output_name", states)
		k.fail(forward.err)
		if k.only("transformer_task", task, "module_output_name", output); k.values["max_seq_length"] != nil && limit < 1 {
			k.invalid("max_seq_length", "at least 1")
		}
		if k.refuse(lengthFile); k.err != nil {
			return k.done()
		}
	}
	if limit > 0 {
		c.MaxLen = min(c.MaxLen, limit)
		return nil
	}
	k, tokens := readKeys(fsys, path.Join(c.Folder, tokenizerFile), true), float64(c.MaxLen) // 1e30 stands for no limit
	for _, name := range []string{"max_len", "model_max_length"} {
		if k.copy(name, &tokens); tokens < 1 {
			k.invalid(name, "at least 1")
		}
	}
	c.MaxLen = min(c.MaxLen, int(min(tokens, maxInt)))
	return k.done()
}

// readActivation reads the function that makes a score of a logit. The member of k is its name in PyTorch.
func (c *Config) readActivation(k *keys, member string) {
	var name string
	k.copy(member, &name)
	if name == "" {
		return
	}
	one := len(c.Labels) == 1
	switch function := name[strings.LastIndexByte(name, '.')+1:]; {
	case strings.HasPrefix(name, "torch.") && function == "Identity", strings.HasPrefix(name, "torch.") && function == "Sigmoid" && (one || c.Several):
		c.Sigmoid = function == "Sigmoid" && !c.Several
	case one:
		k.fail(unsupported(member, name, "torch.nn.Sigmoid or torch.nn.Identity"))
	default:
		k.fail(unsupported(member, name, "torch.nn.Identity, because the model has several labels"))
	}
}

// poolings lists the ways of pooling. Each has two spellings: a pooling_mode, and the name of a member that is true.
var poolings = map[string]layers.Pooling{
	"cls": layers.FirstPooling, "pooling_mode_cls_token": layers.FirstPooling,
	"mean": layers.MeanPooling, "pooling_mode_mean_tokens": layers.MeanPooling,
	"lasttoken": layers.LastPooling, "pooling_mode_lasttoken": layers.LastPooling,
}

// readPooling reads the config.json of a Pooling module.
func (c *Config) readPooling(k *keys) {
	k.only("include_prompt", true)
	var modes []string
	for name, value := range k.values {
		if value == true && strings.HasPrefix(name, "pooling_mode_") {
			modes = append(modes, name)
		}
	}
	if mode, ok := k.values["pooling_mode"].(string); ok {
		modes = []string{mode}
	} else {
		k.copy("pooling_mode", &modes)
	}
	if slices.Sort(modes); len(modes) == 0 {
		modes = []string{"mean"}
	}
	pooling, known := poolings[modes[0]]
	if c.Pooling = pooling; !known || len(modes) > 1 {
		k.fail(unsupported("pooling_mode", fmt.Sprint(modes), "one of cls, mean and lasttoken"))
	}
}

// readDense reads the config.json of a Dense module.
func (c *Config) readDense(k *keys) {
	d, in, name := &DenseConfig{}, c.Model.Dim, "torch.nn.Tanh"
	k.copy("in_features", &in, "out_features", &d.Width, "bias", (*not)(&d.NoBias), "activation_function", &name)
	function := name[strings.LastIndexByte(name, '.')+1:]
	activation, ok := activations.Get(strings.ToLower(function))
	if function != "Identity" {
		d.Activation = &activation
	}
	switch c.Dense = d; {
	case in != c.Model.Dim:
		k.invalid("in_features", fmt.Sprintf("%d, the width of the model", c.Model.Dim))
	case d.Width < 1 || d.Width > 1<<16:
		k.invalid("out_features", fmt.Sprint("from 1 to ", 1<<16))
	case !strings.HasPrefix(name, "torch.") || !ok && function != "Identity":
		k.fail(unsupported("activation_function", name, "torch.nn.Identity, or Tanh, ReLU, GELU, SiLU or Sigmoid in its place"))
	}
}
