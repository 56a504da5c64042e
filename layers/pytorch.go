package layers

import (
	"slices"
	"strconv"
	"strings"
)

// PyTorch returns the table with PyTorch's names and layouts: a file with these tensors is the state dict of the
// corresponding module. Call it when the model has all its parameters. Python saves a state dict with
// safetensors.torch.save_file, and reads one with module.load_state_dict(safetensors.torch.load_file(path)). If a
// module has other names, change the Names of the table. These names differ from the model's own, in every scope:
//
//	MultiHeadAttention                 nn.MultiheadAttention
//	  query, key, value .weight          in_proj_weight, joined along the first axis; if their shapes differ,
//	                                     q_proj_weight, k_proj_weight and v_proj_weight
//	  query, key, value .bias            in_proj_bias, joined
//	  output                             out_proj
//	blocks                             nn.TransformerEncoderLayer and nn.TransformerDecoderLayer
//	  attention, cross                   self_attn, multihead_attn
//	  feedforward.up, feedforward.down   linear1, linear2
//	  norm1, normcross, norm2            norm1, norm2, norm3; without cross-attention norm1, norm2
//	stacks                             nn.TransformerEncoder, nn.TransformerDecoder and nn.Transformer
//	  blocks.N                           layers.N
//
// Linear, Embedding and LayerNorm have the same names and layouts as nn.Linear, nn.Embedding and nn.LayerNorm; NoBias
// is bias=False.
//
// nn.Transformer always ends each stack with a norm. An Encoder or a Decoder without PostNorm always has this norm;
// with PostNorm, only if FinalNorm is set. An nn.TransformerEncoder with norm_first=True therefore needs the argument
// norm.
//
// A state dict has the values of a module, but not all of its settings. Load can't know the activation, the number of
// heads, the place of the norms (PostNorm), Eps, and positions without parameters. If one of them differs from the
// module's, Load returns no error, and the answers are wrong: compare an output with the module's.
func PyTorch(p *Params) (table []Tensor) {
	for _, q := range p.All() {
		if name, parts := p.set.pyTorchTensor(q); len(parts) > 0 {
			t := Tensor{Names: []string{name}}
			for _, part := range parts {
				t.Params = append(t.Params, part.Name)
			}
			table = append(table, t)
		}
	}
	return table
}

// pyTorchOnly lists the last parts of names that nn.MultiheadAttention gives and no layer here does.
var pyTorchOnly = []string{"in_proj_weight", "in_proj_bias", "q_proj_weight", "k_proj_weight", "v_proj_weight"}

// pyTorchTensor returns the name and the parts of the PyTorch tensor that begins with parameter q. If q isn't the first
// part of its tensor, the result has no parts.
func (s *paramSet) pyTorchTensor(q *Param) (name string, parts []*Param) {
	path := strings.Split(q.Name, ".")
	if len(path) < 2 || !s.isAttention(path[:len(path)-2]) {
		return s.pyTorchName(path), []*Param{q}
	}
	scope, part, last := path[:len(path)-2], path[len(path)-2], path[len(path)-1]
	scoped := func(name string) string { return join(s.pyTorchName(scope), name) }
	var inputs []*Param
	for _, part := range []string{"query", "key", "value"} {
		if input := s.byName[join(join(scope...), part, last)]; input != nil {
			inputs = append(inputs, input)
		}
	}
	switch {
	case part == "output":
		return scoped("out_proj." + last), []*Param{q}
	case !slices.Contains(inputs, q):
		return s.pyTorchName(path), []*Param{q}
	case last == "weight" && !sameShapes(inputs):
		return scoped(part[:1] + "_proj_weight"), []*Param{q}
	case q == inputs[0]:
		return scoped("in_proj_" + last), inputs
	}
	return "", nil
}

// isAttention reports whether a scope belongs to a MultiHeadAttention.
func (s *paramSet) isAttention(scope []string) bool {
	return !slices.ContainsFunc([]string{"query", "key", "value"}, func(part string) bool {
		return s.byName[join(join(scope...), part, "weight")] == nil
	})
}

// pyTorchName returns PyTorch's name for a parameter or a scope.
func (s *paramSet) pyTorchName(path []string) string {
	var theirs []string
	for i := 0; i < len(path); i++ {
		next := ""
		if i+1 < len(path) {
			next = path[i+1]
		}
		name := path[i]
		switch _, notNumber := strconv.Atoi(next); {
		case name == "blocks" && notNumber == nil:
			name = "layers"
		case name == "attention" && s.isAttention(path[:i+1]):
			name = "self_attn"
		case name == "cross" && s.isAttention(path[:i+1]):
			name = "multihead_attn"
		case name == "feedforward" && next == "up":
			name = "linear1"
			i++
		case name == "feedforward" && next == "down":
			name = "linear2"
			i++
		case name == "normcross":
			name = "norm2"
		case name == "norm2" && s.byName[join(join(path[:i]...), "normcross.weight")] != nil:
			name = "norm3"
		}
		theirs = append(theirs, name)
	}
	return join(theirs...)
}

// join joins the non-empty parts with dots.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), ".")
}

func sameShapes(params []*Param) bool {
	return !slices.ContainsFunc(params, func(q *Param) bool { return !slices.Equal(q.Value.Shape(), params[0].Value.Shape()) })
}
