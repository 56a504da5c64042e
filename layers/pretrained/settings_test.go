package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// referenceKeys returns the keys that testdata/keys.py has listed, by file or model_type.
func referenceKeys(t *testing.T) map[string][]string {
	var lists map[string]string
	must.Do(t, readJSON(os.DirFS("testdata"), "keys.json", maxJSON, &lists))
	split := map[string][]string{}
	for name, list := range lists {
		split[name] = strings.Fields(list)
	}
	delete(split, "versions")
	return split
}

// with adds a member to an object in JSON. It replaces one of the same name.
func with(object, key string, value any) string {
	var all map[string]any
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		panic(err)
	}
	all[key] = value
	content, _ := json.Marshal(all)
	return string(content)
}

// junk has values of which each kind of member refuses at least one.
var junk = []any{"?", map[string]any{"?": 1}, 3, true, false}

// openAdapter returns a function that opens the adapter for llama with another adapter_config.json.
func openAdapter(t *testing.T) func(string) (any, error) {
	m := must.Get(Open("testdata/llama", tensor.Float32))(t)
	tensors := must.Get(os.ReadFile("testdata/llama/adapter/" + adapterWeights))(t)
	return func(config string) (any, error) {
		a, err := m.OpenAdapter(fstest.MapFS{adapter: {Data: []byte(config)}, adapterWeights: {Data: tensors}}, m.Params)
		if err != nil {
			return nil, err
		}
		return a.Config, nil
	}
}

// A base is a file to which effects adds keys, and what the file is read as.
type base struct {
	file   string
	config any
}

// basesOf reads files. It leaves out the files that give an error.
func basesOf(files []string, read func(string) (any, error)) (bases []base) {
	for _, file := range files {
		if config, err := read(file); err == nil {
			bases = append(bases, base{file, config})
		}
	}
	return bases
}

// effects says what values other than a key's own do: whether a Config or an error differs, and whether an error names
// the key.
func effects(key string, bases []base, read func(string) (any, error)) (changes, refused bool) {
	for _, b := range bases {
		for _, v := range junk {
			if changes && refused {
				return
			}
			after, err := read(with(b.file, key, v))
			var u *UnsupportedError
			refused = refused || errors.As(err, &u) && u.Key == key
			changes = changes || err != nil || !reflect.DeepEqual(b.config, after)
		}
	}
	return changes, refused
}

// TestEveryKey checks that each key of the reference libraries is read, has a reason for being without effect, or is
// refused except with its default. With -v, it prints how many keys are of each kind.
func TestEveryKey(t *testing.T) {
	testseed.Proof(t)
	lists, seen := referenceKeys(t), map[string]bool{}
	check := func(title string, list []string, files []string, read func(string) (any, error), tables ...string) {
		t.Helper()
		bases, counts := basesOf(files, read), map[string]int{}
		for _, key := range list {
			s := settingOf(key, tables...)
			changes, refused := effects(key, bases, read)
			switch {
			case s == nil && !changes:
				t.Errorf("%s: nothing reads %s, and settings lack it", title, key)
			case changes && (s == nil || s.only == "" || !refused):
				counts["read"]++ // a table for several architectures may have what others don't read
			case changes:
				counts["refused"]++
			case s.only != "":
				t.Errorf("%s: %s isn't refused, although only %s is supported", title, key, s.only)
			default:
				counts["without effect"]++
			}
		}
		t.Logf("%-34s read %3d, without effect %3d, refused %3d", title, counts["read"], counts["without effect"], counts["refused"])
	}
	config := func(c string) (any, error) { return ReadConfig(folder(c)) }
	common := lists[configFile]
	for _, a := range architectures {
		var bases []string
		for _, head := range append(slices.Collect(maps.Keys(a.Value.heads)), "states") {
			bases = append(bases, fmt.Sprintf(`{"model_type": %q, "architectures": [%q], "id2label": {"0": "a"}, "use_sliding_window": true}`, a.Name, a.Value.classFor(head)))
		}
		check(a.Name, slices.Concat(common, lists[a.Name]), bases, config, a.Name, configFile)
		delete(lists, a.Name)
	}
	delete(lists, configFile)

	llama := func(file string, others ...string) func(string) (any, error) {
		return func(c string) (any, error) {
			return ReadConfig(folder(`{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}`, append(others, file, c)...))
		}
	}
	bert := func(c string) (any, error) { return ReadConfig(folder(`{"model_type": "bert"}`, tokenizerFile, c)) }
	rope := func(member string) func(string) (any, error) {
		return func(r string) (any, error) { return config(fmt.Sprintf(`{"model_type": "llama", %q: %s}`, member, r)) }
	}
	var ropes []string
	for _, kind := range []string{"default", "linear", "llama3", "yarn"} {
		ropes = append(ropes, fmt.Sprintf(`{"rope_type": %q, "factor": 2, "low_freq_factor": 1, "high_freq_factor": 2, "mscale": 1, "mscale_all_dim": 2}`, kind),
			fmt.Sprintf(`{"type": %q, "factor": 2, "low_freq_factor": 1, "high_freq_factor": 2, "beta_fast": 4}`, kind))
	}
	module := func(extra ...string) func(string) (any, error) {
		return func(m string) (any, error) {
			return llama("modules.json", extra...)(`[{"path": "", "type": "a.Transformer"}, ` + m + `]`)
		}
	}
	const pooling, all = `[{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.Pooling"}]`,
		`[{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.Pooling"}, {"path": "2", "type": "a.Normalize"}]`
	one := []string{"{}"}
	lora := must.Get(os.ReadFile("testdata/llama/adapter/" + adapter))(t)
	for _, p := range []struct {
		list  string
		bases []string
		read  func(string) (any, error)
	}{
		{"rope_parameters", ropes, rope("rope_parameters")},
		{"rope_parameters", ropes, rope("rope_scaling")},
		{generationFile, []string{"{}", `{"do_sample": true}`}, llama(generationFile)},
		{modulesFile, []string{`{"path": "1", "type": "a.Pooling"}`}, module("1/config.json", "{}")},
		{lengthFile, one, llama("sentence_bert_config.json", modulesFile, pooling, "1/config.json", "{}")},
		{sentenceFile, one, llama(sentenceFile, modulesFile, pooling, "1/config.json", "{}")},
		{"Pooling", []string{"{}", `{"pooling_mode_cls_token": true}`}, llama("1/config.json", modulesFile, pooling)},
		{"Normalize", one, llama("2/config.json", modulesFile, all, "1/config.json", "{}")},
		{"Dense", []string{`{"out_features": 3}`}, llama("2/config.json", modulesFile, strings.Replace(all, "a.Normalize", "a.Dense", 1), "1/config.json", "{}")},
		{tokenizerFile, one, bert},
		{adapter, []string{string(lora)}, openAdapter(t)},
	} {
		check(p.list, lists[p.list], p.bases, p.read, p.list)
		seen[p.list] = true
	}
	for name := range lists {
		if !seen[name] {
			t.Errorf("nothing checks the keys of %s", name)
		}
	}
}
