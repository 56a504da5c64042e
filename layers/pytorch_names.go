package layers

import (
	"slices"
	"strconv"
	"strings"
)

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
