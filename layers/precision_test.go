package layers_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

// A precisionCase is a language model whose gradients PyTorch has computed in float32 and in float64. See
// testdata/precision.py.
type precisionCase struct {
	Batch, Length int
	Model         layers.ModelConfig
	Loss          float64            // in float64
	Errors        map[string]float64 // of PyTorch's gradients in float32, by parameter
}

// TestPrecision compares the rounding errors of all gradients in float32 with PyTorch's. The error of a gradient is its
// largest difference from float64, divided by the largest magnitude. The mean error of each parameter over all models
// must be at most 1.5 times PyTorch's. (The largest error isn't tested, because it varies more by luck: from 1.2 to 1.7
// times PyTorch's, depending on the instruction set.) The Go code without assembly has no fused multiply-add and adds
// more terms in order, so its limit is 2.
func TestPrecision(t *testing.T) {
	testseed.Slow(t)
	var cases []precisionCase
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join("testdata", "precision.json")))(t), &cases))
	ours, theirs := map[string]float64{}, map[string]float64{} // sums of errors
	for i, c := range cases {
		single, _ := c.gradients(t, uint64(i), tensor.Float32, layers.Float32)
		double, loss := c.gradients(t, uint64(i), tensor.Float64, layers.Float32)
		near(t, "loss", []float64{loss}, []float64{c.Loss}, 1e-12)
		if got, want := slices.Sorted(maps.Keys(double)), slices.Sorted(maps.Keys(c.Errors)); !slices.Equal(got, want) {
			t.Fatalf("model %d has the parameters %v, but the fixture has %v", i, got, want)
		}
		for name, want := range double {
			size := largest(double[strings.ReplaceAll(name, "key.bias", "query.bias")], nil)
			ours[name] += largest(single[name], want) / size
			theirs[name] += c.Errors[name]
		}
	}
	limit := 1.5
	if kernel.Instructions() == "portable" {
		limit = 2
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		ratio := ours[name] / theirs[name]
		t.Logf("%s: %.2f", name, ratio)
		if !(ratio <= limit) {
			t.Errorf("the errors of the gradient of %s are %.3g times PyTorch's, want at most %v", name, ratio, limit)
		}
	}
}

// largest returns the largest magnitude of an element of x − y. If y is nil, all its elements are 0.
func largest(x, y []float64) float64 {
	largest := 0.0
	for i, v := range x {
		if y != nil {
			v -= y[i]
		}
		largest = max(largest, math.Abs(v))
	}
	return largest
}

// gradients returns the gradient of every parameter, and the loss.
func (c precisionCase) gradients(t *testing.T, seed uint64, dt tensor.Dtype, precision layers.Precision) (map[string][]float64, float64) {
	p := must.Get(layers.NewParams(dt, 1))(t)
	d := must.Get(layers.NewDecoder(p, c.Model))(t)
	params := slices.SortedFunc(slices.Values(p.All()), func(a, b *layers.Param) int { return strings.Compare(a.Name, b.Name) })
	for i, q := range params {
		s := q.Value.Shape()
		values := drawn(100*seed+uint64(i), s.TotalSize())
		for j, v := range values {
			switch {
			case len(s) > 1:
				values[j] = math.Ldexp(v, -int(math.Log2(float64(s[1]))/2))
			case strings.Contains(q.Name, "norm") && strings.HasSuffix(q.Name, "weight"):
				values[j] = v/2 + 1
			default:
				values[j] = v / 2
			}
		}
		must.Do(t, tensor.Copy(q.Value, as(dt, dense(values, s...))))
	}
	inputs, targets := make([]int, 0, c.Batch*c.Length), make([]int, 0, c.Batch*c.Length)
	for i, v := range drawn(100*seed+99, c.Batch*(c.Length+1)) {
		id, place := int((v+1)*float64(c.Model.Vocab)/2), i%(c.Length+1)
		if place < c.Length {
			inputs = append(inputs, id)
		}
		if place > 0 {
			targets = append(targets, id)
		}
	}
	g, b := G.NewGraph(), &layers.Build{Training: true, Precision: precision}
	logits := must.Get(d.Forward(b, input(g, "ids", dense(inputs, c.Batch, c.Length)), layers.Mask{}))(t)
	cost := must.Get(mean(layers.CrossEntropy(b, logits, input(g, "targets", dense(targets, c.Batch, c.Length)), layers.CrossEntropyOptions{})))(t)
	var learnables G.Nodes
	for _, q := range params {
		learnables = append(learnables, must.Get(b.Bind(g, q))(t))
	}
	values := read(t, append(gradients(t, cost, learnables...), cost)...)
	grads := map[string][]float64{}
	for i, q := range params {
		grads[q.Name] = values[i]
	}
	return grads, values[len(params)][0]
}

// drawn returns n numbers from −1 to 1, exact in float32: see the function values of precision.py.
func drawn(seed uint64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		z := (seed<<32 + uint64(i) + 1) * 0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		values[i] = float64((z^z>>31)>>48)/32768 - 1
	}
	return values
}
