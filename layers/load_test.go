package layers_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// TestLoadOptions checks that parameters missing from the file keep their values. The LoadReport lists these
// parameters, and the unused tensors.
func TestLoadOptions(t *testing.T) {
	named := func(name string, values ...float32) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{len(values)}, Data: values}
	}
	table := func(names ...string) layers.LoadOptions {
		var o layers.LoadOptions
		for i, name := range names {
			o.Tensors = append(o.Tensors, layers.Tensor{Names: strings.Split(name, "|"), Params: []string{[]string{"a", "b.c", "head"}[i]}})
		}
		return o
	}
	partial := table("a", "b.c")
	partial.Partial, partial.Ignore = true, true
	isHead := func(name string) bool { return strings.HasPrefix(name, "head") }
	tensors := []safetensors.Tensor{named("a", 1, 2), named("b.c", 3, 4), named("head", 5, 6)}
	for _, test := range []struct {
		name    string
		file    []safetensors.Tensor
		options layers.LoadOptions
		want    map[string]float64 // the first value of each loaded parameter
		kept    []string
		unused  []string
		err     string
	}{
		{"none", tensors, layers.LoadOptions{}, map[string]float64{"a": 1, "b.c": 3, "head": 5}, nil, nil, ""},
		{"missing", tensors[:2], layers.LoadOptions{Ignore: true}, nil, nil, nil, `missing: "head" of shape (2)`},
		{"partial", tensors[:2], layers.LoadOptions{Partial: true}, map[string]float64{"a": 1, "b.c": 3}, []string{"head"}, nil, ""},
		{"unexpected", append(tensors, named("x", 1), named("y", 1)), layers.LoadOptions{Partial: true}, nil, nil, nil, `unexpected: "x" of shape (1), "y" of shape (1)`},
		{"ignored", append(tensors, named("x", 1), named("b", 1)), layers.LoadOptions{Ignore: true}, map[string]float64{"a": 1, "b.c": 3, "head": 5}, nil, []string{"b", "x"}, ""},
		{"integers ignored", append(tensors, safetensors.Tensor{Name: "x", Shape: []int{1}, Data: []int64{1}}), layers.LoadOptions{Ignore: true}, map[string]float64{"a": 1, "b.c": 3, "head": 5}, nil, []string{"x"}, ""},
		{"renamed", []safetensors.Tensor{named("a", 1, 2), named("body.c", 3, 4), named("head", 5, 6)}, table("a", "body.c", "head"), map[string]float64{"a": 1, "b.c": 3, "head": 5}, nil, nil, ""},
		{"renamed, but missing", tensors, table("a", "body.c", "head"), nil, nil, nil, `missing: "body.c" of shape (2); unexpected: "b.c" of shape (2)`},
		{"two with one name", tensors, table("a", "a", "head"), nil, nil, nil, `two Tensors have the name "a"`},
		{"other names", tensors, table("x|a", "b.c|b", "head|tail"), map[string]float64{"a": 1, "b.c": 3, "head": 5}, nil, nil, ""},
		{"other names, none in the file", tensors, table("x|y", "b.c", "head"), nil, nil, nil, `missing: "x" of shape (2); unexpected: "a" of shape (2)`},
		{"two of the names", tensors, table("b.c|a"), nil, nil, nil, `missing: a Tensor with the parameter "b.c", a Tensor with the parameter "head"; unexpected: "a" of shape (2), "head" of shape (2)`},
		{"some parameters", tensors, partial, map[string]float64{"a": 1, "b.c": 3}, []string{"head"}, []string{"head"}, ""},
		{"no name", tensors, layers.LoadOptions{Tensors: []layers.Tensor{{Params: []string{"a"}}}}, nil, nil, nil, "must have Names and Params"},
		{"no such parameter", tensors, layers.LoadOptions{Tensors: []layers.Tensor{{Names: []string{"a"}, Params: []string{"b"}}}}, nil, nil, nil, `tensor "a": there is no parameter "b"`},
		{"a parameter twice", tensors, layers.LoadOptions{Tensors: []layers.Tensor{{Names: []string{"a"}, Params: []string{"a", "a"}}}}, nil, nil, nil, `both hold the parameter "a"`},
		{"another shape, partial", []safetensors.Tensor{tensors[0], tensors[1], named("head", 1, 2, 3)}, layers.LoadOptions{Partial: true, Ignore: true}, nil, nil, nil, `different: "head" must have shape (2), got (3)`},
		{"another shape, dropped", []safetensors.Tensor{tensors[0], tensors[1], named("head", 1, 2, 3)}, layers.LoadOptions{Partial: true, Drop: isHead}, map[string]float64{"a": 1, "b.c": 3}, []string{"head"}, []string{"head"}, ""},
		{"dropped, but needed", tensors, layers.LoadOptions{Ignore: true, Drop: isHead}, nil, nil, nil, `missing: "head" of shape (2)`},
		{"dropped, one not in the model", append(tensors, named("head.bias", 7)), layers.LoadOptions{Partial: true, Drop: isHead}, map[string]float64{"a": 1, "b.c": 3}, []string{"head"}, []string{"head", "head.bias"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
			for _, name := range []string{"a", "b.c", "head"} {
				must.Get(p.New(name, layers.Normal(1), 2))(t)
			}
			before := weightBits(p)
			file := weightFileOf(t, test.file...)
			l, err := p.LoadFrom(bytes.NewReader(file), int64(len(file)), test.options)
			if test.err != "" {
				must.Fail(t, err, test.err)
			} else {
				must.Do(t, err)
			}
			if !slices.Equal(l.Kept, test.kept) || !slices.Equal(l.Unused, test.unused) {
				t.Errorf("kept %q and unused %q, want %q and %q", l.Kept, l.Unused, test.kept, test.unused)
			}
			after := weightBits(p)
			for _, q := range p.All() {
				want, loaded := test.want[q.Name]
				if loaded && q.Value.Float64s()[0] != want {
					t.Errorf("%s is %v, want %v as its first value", q.Name, q.Value.Float64s(), want)
				}
				if !loaded && !slices.Equal(after[q.Name], before[q.Name]) {
					t.Errorf("%s has changed", q.Name)
				}
			}
		})
	}
}

// TestLoadPartOfPyTorch drops a PyTorch tensor that holds several parameters: all of them keep their values.
func TestLoadPartOfPyTorch(t *testing.T) {
	p := newParams(t)
	must.Get(layers.NewMultiHeadAttention(p, 6, layers.AttentionConfig{Heads: 2}))(t)
	before := weightBits(p)
	l := must.Get(p.Load(stateDict("torch_attention_packed"), layers.LoadOptions{
		Tensors: layers.PyTorch(p), Partial: true, Drop: func(name string) bool { return name == "in_proj_weight" },
	}))(t)
	if want := []string{"query.weight", "key.weight", "value.weight"}; !slices.Equal(l.Kept, want) || !slices.Equal(l.Unused, []string{"in_proj_weight"}) {
		t.Errorf("kept %q and unused %q, want kept %q", l.Kept, l.Unused, want)
	}
	for name, bits := range weightBits(p) {
		if kept := slices.Equal(bits, before[name]); kept != slices.Contains(l.Kept, name) {
			t.Errorf("%s has its old values: %t, want %t", name, kept, !kept)
		}
	}
}

// TestLoadJudgesTheHeader checks that Load compares the header with the model before it allocates memory. The tensor in
// this header is too large for any machine.
func TestLoadJudgesTheHeader(t *testing.T) {
	const numbers = math.MaxInt / 8
	header := fmt.Sprintf(`{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, numbers, 4*numbers)
	file := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	p := newWeights(t, tensor.Float32, 1)
	must.Refuse(p.LoadFrom(bytes.NewReader(file), int64(len(file))+4*numbers, layers.LoadOptions{}))(t, "don't fit the model", fmt.Sprintf(`unexpected: "w" of shape (%d)`, numbers))
}
