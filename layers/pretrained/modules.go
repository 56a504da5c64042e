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

const (
	modulesFile    = "modules.json"
	generationFile = "generation_config.json"
)

// readGeneration reads generation_config.json, whose token ids come before those of config.json. As in the reference
// library, the likeliest token is chosen unless do_sample is true, and then temperature is 1 and top_k 50 if missing.
func (c *Config) readGeneration(fsys fs.FS) error {
	k, err := readKeys(fsys, path.Join(c.Folder, generationFile), true)
	if err == nil {
		c.generation(k)
		err = k.err
	}
	if err == nil {
		err = c.Sampler.Check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", generationFile, err)
	}
	return nil
}

// generation copies the members of generation_config.json.
func (c *Config) generation(k *keys) {
	s := &c.Sampler
	k.ids("eos_token_id", &c.End)
	k.id("bos_token_id", &c.Start)
	k.id("pad_token_id", &c.Pad)
	k.only("num_beams", 1)
	k.only("no_repeat_ngram_size", 0)
	k.only("typical_p", 1, 1.0)
	sample := s.Temperature > 0
	k.bool("do_sample", &sample)
	k.float("repetition_penalty", &s.RepetitionPenalty)
	if !sample {
		return
	}
	if !k.writing {
		s.Temperature, s.TopK = 1, 50
	}
	k.float("temperature", &s.Temperature)
	k.int("top_k", &s.TopK)
	k.float("top_p", &s.TopP)
	k.float("min_p", &s.MinP)
}

// A module is an entry of modules.json, which sentence-transformers writes.
type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// readModules reads modules.json, if there is one, and returns the folder of the transformer, "." by default.
func readModules(fsys fs.FS) (list []module, folder string, err error) {
	content, err := readFile(fsys, modulesFile, maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ".", nil
	}
	var raw []map[string]any
	if err == nil {
		err = decodeJSON(content, &raw)
	}
	for _, values := range raw {
		var m module
		k := keys{values: values}
		k.text("path", &m.Path)
		k.text("type", &m.Type)
		m.Path, m.Type = path.Join(".", m.Path), m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		if !fs.ValidPath(m.Path) {
			k.invalid("path", "a folder in this folder")
		}
		err = errors.Join(err, k.err)
		list = append(list, m)
	}
	if err == nil && (len(list) == 0 || list[0].Type != "Transformer") {
		err = errors.New("the first module must be a Transformer")
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", modulesFile, err)
	}
	return list, list[0].Path, nil
}

// readEmbedding reads how the states become an embedding.
func (c *Config) readEmbedding(fsys fs.FS, modules []module) error {
	if len(modules) == 0 {
		return nil
	}
	for i, m := range modules {
		var err error
		switch {
		case i == 0:
			err = c.readTransformer(fsys)
		case i == 1 && m.Type == "Pooling":
			err = c.readPooling(fsys, path.Join(m.Path, configFile))
		case i == 2 && m.Type == "Normalize":
			c.Normalize = true
		default:
			err = fmt.Errorf("%s: %w", modulesFile, unsupported("type", m.Type, "Transformer, Pooling and Normalize, in this order"))
		}
		if err != nil {
			return err
		}
	}
	const file = "config_sentence_transformers.json"
	k, err := readKeys(fsys, file, true)
	if err == nil {
		prompts := k.object("prompts")
		c.Prompts = map[string]string{}
		for name := range prompts.values {
			var prompt string
			prompts.text(name, &prompt)
			c.Prompts[name] = prompt
		}
		k.put("", prompts)
		k.text("default_prompt_name", &c.Prompt)
		if _, ok := c.Prompts[c.Prompt]; c.Prompt != "" && !ok {
			k.invalid("default_prompt_name", "the name of one of the prompts")
		}
		err = k.err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// readTransformer reads sentence_bert_config.json, which has other names for some model types.
func (c *Config) readTransformer(fsys fs.FS) error {
	for _, kind := range []string{"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"} {
		file := path.Join(c.Folder, "sentence_"+kind+"_config.json")
		if !exists(fsys, file) {
			continue
		}
		k, err := readKeys(fsys, file, false)
		if err == nil {
			limit := c.MaxLen
			k.int("max_seq_length", &limit)
			k.bool("do_lower_case", &c.Lowercase)
			if limit < 1 {
				k.invalid("max_seq_length", "at least 1")
			}
			c.MaxLen = min(c.MaxLen, limit)
			err = k.err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	}
	return nil
}

// poolings lists the ways of pooling. Each has two spellings: pooling_mode, and the name of a member that is true.
var poolings = []struct {
	mode, member string
	value        layers.Pooling
}{
	{"cls", "pooling_mode_cls_token", layers.FirstPooling},
	{"mean", "pooling_mode_mean_tokens", layers.MeanPooling},
	{"lasttoken", "pooling_mode_lasttoken", layers.LastPooling},
}

// readPooling reads the config.json of a Pooling module.
func (c *Config) readPooling(fsys fs.FS, file string) error {
	k, err := readKeys(fsys, file, false)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	k.only("include_prompt", true)
	var modes []string
	for name, value := range k.values {
		if value == true && strings.HasPrefix(name, "pooling_mode_") {
			modes = append(modes, name)
		}
	}
	switch mode := k.values["pooling_mode"].(type) {
	case nil:
	case string:
		modes = []string{mode}
	default:
		k.texts("pooling_mode", &modes)
	}
	if slices.Sort(modes); len(modes) == 0 {
		modes = []string{"mean"}
	}
	known := false
	for _, p := range poolings {
		if p.mode == modes[0] || p.member == modes[0] {
			c.Pooling, known = p.value, true
		}
	}
	if len(modes) > 1 || !known {
		k.fail(unsupported("pooling_mode", modes, "one of cls, mean or lasttoken"))
	}
	if k.err != nil {
		return fmt.Errorf("%s: %w", file, k.err)
	}
	return nil
}
