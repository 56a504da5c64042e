package pretrained

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heed-go/heed/layers"
)

// tensors returns how the folder's tensors hold the parameters p of the model, for LoadFS and SaveTensors. It leaves
// out parameters without a published name.
func (c Config) tensors(p *layers.Params) ([]layers.Tensor, error) {
	a, err := architectureOf(c.Type)
	if err != nil {
		return nil, err
	}
	h, _ := heads.Get(c.Head)
	prefixes := a.prefixes(c.Head)
	blocks := max(c.Model.Layers, c.decoderLayers())
	var tensors []layers.Tensor
	named := map[string]bool{}
	add := func(line, scope string, prefixes ...string) {
		for i := range blocks {
			tensors = append(tensors, c.layer(p, named, scope+strings.ReplaceAll(line, "{i}", strconv.Itoa(i)), prefixes)...)
			if !strings.Contains(line, "{i}") {
				break
			}
		}
	}
	for _, line := range a.names {
		if l := c.Model.Block.Attention.Latent; l != nil && l.QueryRank == 0 {
			line = strings.Replace(line, "q_b_proj|layers.{i}.self_attn.q_proj", "q_proj", 1)
		}
		if a.encoder && c.Head == "states" {
			line = strings.TrimPrefix(line, "encoder.")
		}
		if !c.Model.Block.FeedForward.Gated {
			line = strings.Replace(line, "DenseReluDense.wi_1", "DenseReluDense.wi", 1)
		}
		scope := h.scope
		if strings.HasPrefix(line, "encoder.") || strings.HasPrefix(line, "decoder.") {
			scope = ""
		}
		add(line, scope, prefixes...)
	}
	for _, line := range a.heads[c.Head] {
		if strings.HasPrefix(line, "prefix ") {
			continue
		}
		i := slices.IndexFunc(tensors, func(t layers.Tensor) bool { return isTied(t.Params[0]) })
		if strings.HasPrefix(strings.TrimPrefix(line, "decoder."), "head ") && c.Model.Tied && i >= 0 { // files may have the weights under these names
			tensors[i].Names = append(tensors[i].Names, a.headNames(c.Head)...)
		}
		add(line, "", "")
	}
	add("dense linear", "", "") // from a file of its own
	return tensors, nil
}

// prefixes returns the prefixes that the names of tensors outside the head may have. Save writes the first.
func (a architecture) prefixes(head string) []string {
	for _, line := range a.heads[head] {
		if own, ok := strings.CutPrefix(line, "prefix "); ok {
			return []string{own, a.prefix, ""}
		}
	}
	if head == "states" { // the reference library saves such models without the prefix
		return []string{"", a.prefix}
	}
	return []string{a.prefix, ""}
}

// headNames returns the names that the weight of a head may have in files.
func (a architecture) headNames(head string) (names []string) {
	for _, line := range a.heads[head] {
		if theirs, ok := strings.CutPrefix(strings.TrimPrefix(line, "decoder."), "head "); ok {
			for _, name := range strings.Split(theirs, "|") {
				names = append(names, name+".weight")
			}
		}
	}
	return names
}

// checkUnused returns an error if names, the tensors that aren't loaded, has one that models of this type can have in
// front of their head, such as a block after the last one or a bias that config.json leaves out: the folder's
// config.json is then of another model, and the answers would be wrong.
func (c Config) checkUnused(names []string) error {
	a, err := architectureOf(c.Type)
	known := map[string]bool{}
	for _, line := range a.names {
		sequence := a.heads["sequence"] != nil
		if ours := strings.Fields(line)[0]; sequence && strings.HasSuffix(ours, "embedding") || sequence && c.Head == "states" && strings.HasPrefix(ours, "decoder.") {
			continue // a copy of the shared table, or a part that isn't used
		}
		for _, theirs := range strings.Split(strings.Fields(line)[1], "|") {
			theirs = anyBlock(strings.ReplaceAll(theirs, "{e}", "{i}"))
			known[theirs], known[theirs+".weight"], known[theirs+".bias"] = true, true, true
		}
	}
	for _, name := range names {
		bare := name
		for _, prefix := range a.prefixes(c.Head) {
			bare = strings.TrimPrefix(bare, prefix)
		}
		if n, err := strconv.Atoi(strings.Split(bare+".", ".")[1]); a.further && err == nil && n >= c.Model.Layers {
			continue // of a block that isn't used
		}
		if known[anyBlock(bare)] {
			return fmt.Errorf("config.json describes a model of %d layers without the tensor %.100q, but the weights have it: download config.json and the weights of one model",
				c.Model.Layers, name)
		}
	}
	return err
}

// anyBlock puts {i} in place of the numbers in the name of a tensor.
func anyBlock(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if strings.Trim(part, "0123456789") == "" {
			parts[i] = "{i}"
		}
	}
	return strings.Join(parts, ".")
}

// layer returns the tensors of one line of names: for the weight and the bias of a layer, if it has them and they
// aren't named yet.
func (c Config) layer(p *layers.Params, named map[string]bool, line string, prefixes []string) (tensors []layers.Tensor) {
	fields := append(strings.Fields(line), "")
	parts := strings.Split(fields[0], "+")
	scope := parts[0][:strings.LastIndexByte(parts[0], '.')+1]
	var experts, hidden int
	if f := settled(c.Model, c.Head).Block.FeedForward; f.Experts != nil {
		experts, hidden = f.Experts.Count, f.Hidden
	}
	single := strings.Contains(fields[1], "{e}")
	for _, last := range []string{"", ".weight", ".bias"} {
		var t layers.Tensor
		for i, part := range parts {
			if i > 0 {
				part = scope + part
			}
			q := p.Get(part + last)
			if single && q != nil && q.Value.Dims() == 2 {
				continue // this block has no experts
			}
			if part += last; q != nil && !named[part] {
				t.Params, named[part] = append(t.Params, part), true
			}
		}
		if t.Params == nil {
			continue
		}
		weight, ends := last != ".bias", map[string]string{}
		old := map[string]string{".weight": ".gamma", ".bias": ".beta"}[last] // the first names of norms
		switch fields[2] {
		case "transposed":
			t.Transposed = weight
		case "skip2":
			t.SkipRows = 2
		case "row":
			t.Stacked, t.Optional = 1, true
			last = ""
		case "heads":
			t.Groups = c.Model.Block.Attention.Heads
		case "stacked":
			ends, t.Stacked, t.Transposed = map[string]string{".weight": "", ".bias": "_bias"}, experts, weight
			if len(t.Params) > 1 {
				t.Groups = hidden
			}
		case "plus1":
			if weight {
				t.Plus = 1
			}
		}
		if end, ok := ends[last]; ok {
			last = end
		}
		for _, end := range []string{last, old} {
			for _, theirs := range strings.Split(fields[1], "|") {
				for _, prefix := range prefixes {
					if name := prefix + theirs + end; !slices.Contains(t.Names, name) {
						t.Names = append(t.Names, name)
					}
				}
			}
		}
		if !single {
			tensors = append(tensors, t)
			continue
		}
		for e := range experts {
			single := t
			single.Stacked, single.Single, single.Names = experts, e+1, nil
			for _, name := range t.Names {
				single.Names = append(single.Names, strings.ReplaceAll(name, "{e}", strconv.Itoa(e)))
			}
			tensors = append(tensors, single)
		}
	}
	return tensors
}

// isTied reports whether a parameter is also the weight of a tied head.
func isTied(name string) bool {
	return name == "embedding.weight" || name == "decoder.embedding.weight"
}
