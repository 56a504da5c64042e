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

const modulesFile = "modules.json"

// A module is an entry of modules.json, which sentence-transformers writes.
type module struct{ path, kind string }

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
		m.path, m.kind = path.Join(".", m.path), m.kind[strings.LastIndexByte(m.kind, '.')+1:]
		if !fs.ValidPath(m.path) {
			k.invalid("path", "a folder in this folder")
		}
		if i := len(list); i > 2 || m.kind != []string{"Transformer", "Pooling", "Normalize"}[i] {
			k.fail(unsupported("type", m.kind, "Transformer, Pooling and Normalize, in this order"))
		}
		list = append(list, m)
	}
	if k.err != nil || len(list) == 0 {
		k.fail(errors.New("expected modules, got none"))
		return nil, "", k.done()
	}
	return list, list[0].path, nil
}

// readEmbedding reads how the states become an embedding.
func (c *Config) readEmbedding(fsys fs.FS, modules []module) error {
	if len(modules) == 0 {
		return nil
	}
	for _, kind := range []string{"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"} { // one of them exists
		limit := c.MaxLen
		k := readKeys(fsys, path.Join(c.Folder, "sentence_"+kind+"_config.json"), true)
		k.copy("max_seq_length", &limit, "do_lower_case", &c.Lowercase)
		if limit < 1 {
			k.invalid("max_seq_length", "at least 1")
		}
		if c.MaxLen = min(c.MaxLen, limit); k.err != nil {
			return k.done()
		}
	}
	if len(modules) > 1 {
		if err := c.readPooling(readKeys(fsys, path.Join(modules[1].path, configFile), false)); err != nil {
			return err
		}
	}
	c.Normalize = len(modules) > 2
	k := readKeys(fsys, "config_sentence_transformers.json", true)
	prompts := k.object("prompts")
	c.Prompts = map[string]string{}
	for name := range prompts.values {
		var prompt string
		prompts.copy(name, &prompt)
		c.Prompts[name] = prompt
	}
	k.fail(prompts.err)
	k.copy("default_prompt_name", &c.Prompt)
	if _, ok := c.Prompts[c.Prompt]; c.Prompt != "" && !ok {
		k.invalid("default_prompt_name", "the name of one of the prompts")
	}
	return k.done()
}

// poolings lists the ways of pooling. Each has two spellings: a pooling_mode, and the name of a member that is true.
var poolings = map[string]layers.Pooling{
	"cls": layers.FirstPooling, "pooling_mode_cls_token": layers.FirstPooling,
	"mean": layers.MeanPooling, "pooling_mode_mean_tokens": layers.MeanPooling,
	"lasttoken": layers.LastPooling, "pooling_mode_lasttoken": layers.LastPooling,
}

// readPooling reads the config.json of a Pooling module.
func (c *Config) readPooling(k *keys) error {
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
	return k.done()
}
