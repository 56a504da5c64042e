package pretrained

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/layers"
)

// Save writes a model to a folder that the reference library, transformers, opens: config.json, model.safetensors and,
// for text, generation_config.json. The weights of a Dense go to the folder of its module. Save makes the folders if
// there are none. The parameters p belong to the model that Config.Open makes for c. If c.Type is empty, Save chooses
// the first architecture that has the settings of c.Model, or that can compute the same with other weights. With other
// weights, a scale of the embeddings and the bias of a head after a LayerNorm become parts of matrices, so results
// differ by rounding.
//
// Save returns an error if the architecture lacks one of the settings; rates of dropout and initial values don't count.
// If c.Type is empty, the error names the architecture with the fewest differences.
func Save(dir string, c Config, p *layers.Params) error {
	if c.Classifier != nil {
		c.Model = c.Classifier.Model
	}
	var err error
	if c.Type == "" {
		c, p, err = c.choose(p)
	}
	if err != nil {
		return err
	}
	k, err := c.write(p.Dtype())
	if err != nil {
		return err
	}
	tensors, err := c.tensors(p)
	if err != nil {
		return err
	}
	if err := k.writeFile(filepath.Join(dir, configFile)); err != nil {
		return err
	}
	if c.writes() {
		k := newKeys()
		c.generation(k)
		if err := k.writeFile(filepath.Join(dir, generationFile)); err != nil {
			return err
		}
	}
	save := func(folder string, dense bool) error {
		for i, t := range tensors {
			tensors[i].Elsewhere = dense != strings.HasPrefix(t.Params[0], "dense.")
		}
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		return p.SaveTensors(filepath.Join(folder, weights), tensors, map[string]string{"format": "pt"})
	}
	if err = save(dir, false); err == nil && p.Get("dense.weight") != nil {
		var place string
		if place, err = filepath.Rel(c.Folder, c.dense); err == nil {
			err = save(filepath.Join(dir, place), true)
		}
	}
	return err
}

// newKeys returns keys for writing.
func newKeys() *keys { return &keys{values: map[string]any{}, writing: true} }

// writeFile writes the members, and makes the folder if there is none.
func (k *keys) writeFile(path string) error {
	content, err := json.MarshalIndent(k.values, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(content, '\n'))
		return err
	})
}

// choose returns the first form of c that an architecture has, with its Type, and its parameters.
func (c Config) choose(p *layers.Params) (Config, *layers.Params, error) {
	var nearest *differError
	var err error
	for i, form := range forms(c) {
		for _, a := range architectures {
			form.Type = a.Name
			_, err = form.write(p.Dtype())
			var differ *differError
			if errors.As(err, &differ) && (nearest == nil || len(differ.settings) < len(nearest.settings)) {
				nearest = differ
			}
			if err == nil && i > 0 {
				p, err = inForm(p, c.Model, form.Model)
			}
			if err == nil {
				return form, p, nil
			}
		}
	}
	if nearest != nil {
		err = nearest
	}
	return c, p, fmt.Errorf("no published architecture computes the same as this model; the nearest is %w", err)
}

// A differError says in which settings a model differs from its architecture.
type differError struct {
	kind     string
	settings []string
}

func (e *differError) Error() string { return e.kind + ": " + strings.Join(e.settings, "; ") }

// write writes config.json, reads it again and compares the settings.
func (c Config) write(dtype tensor.Dtype) (*keys, error) {
	a, err := architectureOf(c.Type)
	if err != nil {
		return nil, err
	}
	c.Model = settled(c.Model, c.Head)
	w, k := c, newKeys()
	if c.Classifier != nil && c.Classifier.Decoder != nil {
		d := c.Classifier.Decoder
		w.Sequence, w.AnswerStart = &layers.EncoderDecoderConfig{DecoderLayers: d.Layers, Shared: true}, d.Start
	}
	k.values["model_type"], k.values["dtype"], k.values["architectures"] = c.Type, dtype.String(), []string{a.classFor(c.Head)}
	w.windows(func(w **layers.Window) {
		switch {
		case *w == nil || !a.causal || c.Head == "text":
		case !c.Causal: // see isCausal
			*w = &layers.Window{Left: (*w).Left - 1}
		case (*w).Left < 0:
			*w = nil
		}
	})
	if a.causal && !c.Causal {
		k.values["is_causal"] = false
	}
	w.tokens(k)
	if w.Sequence != nil && len(w.End) == 1 {
		k.values["eos_token_id"] = w.End[0] // the reference library's classifier looks for an id, not for a list
	}
	h, _ := heads.Get(c.Head)
	if a.config(k, &w); h.outputs != nil {
		h.outputs(k, &w, a)
	}
	content, err := json.Marshal(k.values)
	again, read := Config{Start: -1, Pad: -1}, &keys{err: errors.Join(k.err, err)}
	if read.fail(decodeJSON(content, &read.values)); read.err == nil {
		again.read(read, false)
	}
	ours, err := members(c)
	theirs, other := members(again)
	if err := errors.Join(read.err, err, other); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Type, err)
	}
	differ := &differError{kind: c.Type}
	names := slices.AppendSeq(slices.Collect(maps.Keys(ours)), maps.Keys(theirs))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, y := ours[name], theirs[name]
		if _, ok := cmp.Or(x, y).(bool); ok { // false is left out
			x, y = x == true, y == true
		}
		if strings.HasPrefix(name, "positions.") && ours["positions.kind"] != theirs["positions.kind"] && name != "positions.kind" {
			continue // the other kind has other settings
		}
		if x, y := shown(x), shown(y); x != y {
			differ.settings = append(differ.settings, fmt.Sprintf("%s is %s, and there it is %s", name, x, y))
		}
	}
	if differ.settings != nil {
		return nil, differ
	}
	return k, nil
}

// shown returns the value of a setting for an error.
func shown(x any) string {
	if x == nil {
		return "not set"
	}
	return show(x)
}

// members returns the settings of a model by their paths in JSON, without rates of dropout and initial values.
func members(c Config) (map[string]any, error) {
	m := settled(c.Model, c.Head)
	m.Dropout, m.Block.Dropout, m.Block.Attention.Dropout, m.Block.FeedForward.Dropout = 0, 0, 0, 0
	if x := m.Block.FeedForward.Experts; x != nil {
		x.Balance = 0 // settled has copied it
	}
	var settings any = m
	if c.Sequence != nil {
		s := *c.Sequence
		s.Model, s.DecoderLayers, s.TargetVocab = m, cmp.Or(s.DecoderLayers, m.Layers), cmp.Or(s.TargetVocab, m.Vocab)
		settings = s
	}
	content, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	err = json.Unmarshal(content, &tree)
	flat := map[string]any{}
	if c.Classifier != nil {
		flat["pooling"] = c.Classifier.Pooling.String()
		if d := c.Classifier.Decoder; d != nil {
			flat["decoder.layers"], flat["decoder.start"] = c.decoderLayers(), d.Start
		}
	}
	var walk func(prefix string, tree map[string]any)
	walk = func(prefix string, tree map[string]any) {
		for name, value := range tree {
			if object, ok := value.(map[string]any); ok {
				walk(prefix+name+".", object)
			} else {
				flat[prefix+name] = value
			}
		}
	}
	walk("", tree)
	return flat, err
}
