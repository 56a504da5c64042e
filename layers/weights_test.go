package layers_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/layers"
)

// newWeights returns parameters of several ranks. Their values depend on the seed.
func newWeights(t testing.TB, dtype tensor.Dtype, seed uint64) *layers.Params {
	t.Helper()
	p := must.Get(layers.NewParams(dtype, seed))(t)
	for name, shape := range map[string][]int{"one": {1}, "vector": {5}, "matrix": {3, 4}, "row": {1, 4}, "cube": {2, 3, 4}} {
		must.Get(p.Scope("part").New(name, layers.Normal(1), shape...))(t)
	}
	return p
}

// weightBits returns the bits of all values in a set, by parameter name.
func weightBits(p *layers.Params) map[string][]uint64 {
	bits := map[string][]uint64{}
	for _, q := range p.All() {
		bits[q.Name] = nil
		if p.Dtype() == tensor.Float32 {
			for _, v := range q.Value.Float32s() {
				bits[q.Name] = append(bits[q.Name], uint64(math.Float32bits(v)))
			}
			continue
		}
		for _, v := range q.Value.Float64s() {
			bits[q.Name] = append(bits[q.Name], math.Float64bits(v))
		}
	}
	return bits
}

func sameWeights(a, b map[string][]uint64) bool { return maps.EqualFunc(a, b, slices.Equal) }

func TestWeightsRoundTrip(t *testing.T) {
	for _, dtype := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		t.Run(dtype.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.safetensors")
			p, q := newWeights(t, dtype, 1), newWeights(t, dtype, 2)
			if dtype == tensor.Float32 {
				copy(p.Get("part.vector").Value.Float32s(), []float32{float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -math.MaxFloat32})
			} else {
				copy(p.Get("part.vector").Value.Float64s(), []float64{math.Copysign(0, -1), math.SmallestNonzeroFloat64, -math.MaxFloat64})
			}
			for _, want := range []map[string]string{{"epoch": "7"}, nil} {
				must.Do(t, p.Save(path, want))
				got := must.Get(q.Scope("part").Load(path, layers.LoadOptions{}))(t).Metadata
				if !maps.Equal(got, want) {
					t.Errorf("got metadata %v, want %v", got, want)
				}
				if !sameWeights(weightBits(p), weightBits(q)) {
					t.Errorf("got %x\nwant %x", weightBits(q), weightBits(p))
				}
			}
		})
	}
}

func TestWeightsAreTheSameBytesEachTime(t *testing.T) {
	var want bytes.Buffer
	must.Do(t, newWeights(t, tensor.Float32, 1).SaveTo(&want, nil))
	for range 5 { // newWeights makes the parameters in random order
		var got bytes.Buffer
		must.Do(t, newWeights(t, tensor.Float32, 1).SaveTo(&got, nil))
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatal("the same weights gave two different files")
		}
	}
}

// TestLoadChangesBoundGraphs checks that a bound parameter keeps its tensor and memory, so its graph computes with the
// loaded values.
func TestLoadChangesBoundGraphs(t *testing.T) {
	build := func() (*layers.Params, *G.Node) {
		p := newParams(t)
		l := must.Get(layers.NewLinear(p, 3, 2, layers.LinearConfig{}))(t)
		randomise(p)
		g := G.NewGraph()
		return p, must.Get(l.Forward(&layers.Build{}, input(g, "x", random(3, 4, 3))))(t)
	}
	p, y := build()
	q, z := build()
	for _, w := range q.All() {
		w.Value.Memset(0.0)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must.Do(t, p.Save(path, nil))
	value := q.Get("weight").Value
	first := unsafe.SliceData(value.Float64s())
	must.Get(q.Load(path, layers.LoadOptions{}))(t)
	if q.Get("weight").Value != value || unsafe.SliceData(value.Float64s()) != first {
		t.Error("the parameter has another tensor or other memory")
	}
	sameBits(t, "the output with loaded weights", read(t, z)[0], read(t, y)[0])
}

func TestLoadConverts(t *testing.T) {
	third := float64(1) / 3
	half := []byte("\x40\x00\x00\x00\x00\x00\x00\x00" + `{"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}          ` + "\x00\x3e\x00\xc0")
	brain := bytes.Replace(bytes.Replace(half, []byte(`"F16"`), []byte(`"BF16"`), 1), []byte("  \x00\x3e"), []byte(" \xc0\x3f"), 1)
	tests := []struct {
		name  string
		file  []byte
		dtype tensor.Dtype
		want  []float64
	}{
		{"F32 to float64", weightFile(t, "w", []float32{1.5, float32(third)}), tensor.Float64, []float64{1.5, float64(float32(third))}},
		{"F64 to float32", weightFile(t, "w", []float64{1.5, third}), tensor.Float32, []float64{1.5, float64(float32(third))}},
		{"tiny F64 to float32", weightFile(t, "w", []float64{1e-60, -1e-60}), tensor.Float32, []float64{0, math.Copysign(0, -1)}},
		{"F16 to float32", half, tensor.Float32, []float64{1.5, -2}},
		{"F16 to float64", half, tensor.Float64, []float64{1.5, -2}},
		{"BF16 to float32", brain, tensor.Float32, []float64{1.5, -2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(layers.NewParams(test.dtype, 1))(t)
			w := must.Get(p.New("w", layers.Ones(), 2))(t)
			must.Get(p.LoadFrom(bytes.NewReader(test.file), int64(len(test.file)), layers.LoadOptions{}))(t)
			sameBits(t, "w", floats(t, w.Value), test.want)
		})
	}
}

// weightFile returns a file with one tensor of two values.
func weightFile(t testing.TB, name string, data any) []byte {
	t.Helper()
	return weightFileOf(t, safetensors.Tensor{Name: name, Shape: []int{2}, Data: data})
}

func weightFileOf(t testing.TB, tensors ...safetensors.Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, safetensors.Write(&b, tensors, nil))
	return b.Bytes()
}

// TestFailedLoadChangesNothing loads invalid files: no parameter may change, even if only one parameter doesn't fit.
func TestFailedLoadChangesNothing(t *testing.T) {
	good := func(name string) safetensors.Tensor {
		return safetensors.Tensor{Name: name, Shape: []int{2, 3}, Data: make([]float32, 6)}
	}
	with := func(name string, shape []int, data any) []byte {
		return weightFileOf(t, good("a"), good("b"), safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	whole := with("c", []int{2, 3}, make([]float32, 6))
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"missing", weightFileOf(t, good("a"), good("b")), `missing: "c" of shape (2, 3)`},
		{"unexpected", weightFileOf(t, good("a"), good("b"), good("c"), good("d")), `unexpected: "d" of shape (2, 3)`},
		{"renamed", with("C", []int{2, 3}, make([]float32, 6)), `missing: "c" of shape (2, 3); unexpected: "C" of shape (2, 3)`},
		{"transposed", with("c", []int{3, 2}, make([]float32, 6)), `different: "c" must have shape (2, 3), got (3, 2)`},
		{"flat", with("c", []int{6}, make([]float32, 6)), `"c" must have shape (2, 3), got (6)`},
		{"integers", with("c", []int{2, 3}, make([]int64, 6)), `"c" must hold floating-point values, got I64`},
		{"NaN", with("c", []int{2, 3}, []float32{0, 0, 0, nan, 0, 0}), `values of tensor "c": element 3 of 6 is NaN`},
		{"infinite", with("c", []int{2, 3}, []float32{0, 0, 0, 0, 0, inf}), `values of tensor "c": element 5 of 6 is -Inf`},
		{"NaN in float64", with("c", []int{2, 3}, []float64{0, 0, math.NaN(), 0, 0, 0}), `"c": element 2 of 6 is NaN`},
		{"too large", with("c", []int{2, 3}, []float64{0, 1e300, 0, 0, 0, 0}), `"c": element 1 of 6 is 1e+300, which is too large for float32`},
		{"cut short", whole[:len(whole)-1], "cut short"},
		{"empty file", nil, "header length"},
		{"no tensors", weightFileOf(t), `missing: "a" of shape (2, 3), "b" of shape (2, 3), "c" of shape (2, 3)`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
			for _, name := range []string{"a", "b", "c"} {
				must.Get(p.New(name, layers.Normal(1), 2, 3))(t)
			}
			before := weightBits(p)
			path := filepath.Join(t.TempDir(), "model.safetensors")
			must.Do(t, os.WriteFile(path, test.file, 0o644))
			must.Refuse(p.Load(path, layers.LoadOptions{}))(t, test.want, path)
			must.Refuse(p.LoadFrom(bytes.NewReader(test.file), int64(len(test.file)), layers.LoadOptions{}))(t, test.want)
			if !sameWeights(weightBits(p), before) {
				t.Error("the error changed parameters")
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		if _, err := newWeights(t, tensor.Float32, 1).Load(filepath.Join(t.TempDir(), "none"), layers.LoadOptions{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
		}
	})
}

func TestLoadNamesAFewOfMany(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	for i := range 10 {
		must.Get(p.New(fmt.Sprint("w", i), layers.Ones(), 2))(t)
	}
	b := weightFile(t, "x", []float32{1, 2})
	_, err := p.LoadFrom(bytes.NewReader(b), int64(len(b)), layers.LoadOptions{})
	want := `the weights don't fit the model: missing: "w0" of shape (2), "w1" of shape (2), "w2" of shape (2), and 7 more; unexpected: "x" of shape (2)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

func TestFailedSaveLeavesTheOldFile(t *testing.T) {
	tests := []struct {
		name     string
		spoil    func(p *layers.Params)
		metadata map[string]string
		want     string
	}{
		{"NaN", func(p *layers.Params) { p.Get("part.matrix").Value.Float32s()[5] = float32(math.NaN()) }, nil,
			`parameter "part.matrix": element 5 of 12 is NaN`},
		{"infinite", func(p *layers.Params) { p.Get("part.one").Value.Float32s()[0] = float32(math.Inf(1)) }, nil,
			`parameter "part.one": element 0 of 1 is +Inf`},
		{"metadata not UTF-8", func(*layers.Params) {}, map[string]string{"k": "\xff"}, "isn't UTF-8"},
		{"transposed", func(p *layers.Params) { p.Get("part.matrix").Value.T() }, nil, `parameter "part.matrix" must be a contiguous row-major tensor of float32`},
		{"other dtype", func(p *layers.Params) { p.Get("part.one").Value = dense([]float64{1}, 1) }, nil, `parameter "part.one" must be`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.safetensors")
			p := newWeights(t, tensor.Float32, 1)
			must.Do(t, p.Save(path, nil))
			test.spoil(p)
			must.Fail(t, p.Save(path, test.metadata), test.want)
			if _, err := p.Load(path, layers.LoadOptions{}); strings.Contains(test.want, "must be") {
				must.Fail(t, err, test.want)
			}
			q := newWeights(t, tensor.Float32, 2)
			must.Get(q.Load(path, layers.LoadOptions{}))(t)
			if !sameWeights(weightBits(q), weightBits(newWeights(t, tensor.Float32, 1))) {
				t.Error("the old file has changed")
			}
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
				t.Errorf("the folder holds %v, want only the weights", entries)
			}
		})
	}
}
