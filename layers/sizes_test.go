package layers_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// TestParamsRefuseWhatDoesNotFit asks for parameters that no machine has memory for.
func TestParamsRefuseWhatDoesNotFit(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		p := must[*layers.Params](t)(layers.NewParams(dt, 1))
		for _, shape := range [][]int{{1 << 62}, {math.MaxInt}, {1 << 40, 1 << 40}, {1 << 32, 1 << 32}, {1 << 31, 1 << 31, 4}, {1 << 40}, {3, math.MaxInt, 5}} {
			_, err := p.New("w", layers.Zeros(), shape...)
			wantError(t, err, `parameter "w"`, fmt.Sprint(tensor.Shape(shape)), "memory")
		}
		if n := len(p.All()); n != 0 {
			t.Errorf("there are %d parameters", n)
		}
	}
}

// TestNilParams uses Params that aren't there, or that NewParams didn't make.
func TestNilParams(t *testing.T) {
	for name, p := range map[string]*layers.Params{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/weights"
			_, made := p.Scope("a").New("w", layers.Zeros(), 2)
			_, loaded := p.Load(path)
			_, decoded := p.Decode(bytes.NewReader(nil), 0)
			_, fromPyTorch := p.LoadPyTorch(path, nil)
			for what, err := range map[string]error{
				"New": made, "Save": p.Save(path, nil), "Load": loaded, "Encode": p.Encode(&bytes.Buffer{}, nil), "Decode": decoded,
				"LoadPyTorch": fromPyTorch, "SavePyTorch": p.SavePyTorch(path, nil, nil),
			} {
				t.Run(what, func(t *testing.T) { wantError(t, err, "nil or empty", "NewParams") })
			}
			if p.Count() != 0 || p.Get("w") != nil || len(p.All()) != 0 {
				t.Error("there are parameters")
			}
		})
	}
}

// TestCacheRefusesWhatDoesNotFit asks for caches that no machine has memory for, and uses ones that NewCache didn't
// make.
func TestCacheRefusesWhatDoesNotFit(t *testing.T) {
	for _, size := range [][2]int{{1, 1 << 62}, {1 << 62, 1}, {1 << 40, 1 << 40}, {1 << 32, 1 << 32}, {1, 1 << 40}, {math.MaxInt, math.MaxInt}} {
		_, err := layers.NewCache(size[0], size[1])
		wantError(t, err, "cache", "sequences", "memory")
	}
	a := newBench(t).multiHead(4, layers.AttentionConfig{})
	for _, c := range []*layers.Cache{nil, {}} {
		for _, err := range []error{c.Extend(), c.Extend(1), c.Truncate(), c.Truncate(1), c.Reorder(), c.Reorder(0)} {
			wantError(t, err, "cache", "NewCache")
		}
		if c.Batch() != 0 {
			t.Error("there are sequences")
		}
		if c == nil {
			continue
		}
		b := newBench(t)
		b.b = &layers.Build{Cache: c}
		_, err := a.ForwardCached(b.b, b.in("x", 1, 2, 4), layers.Mask{})
		wantError(t, err, "attention", "NewCache")
		_, err = a.ForwardMemory(b.b, b.in("q", 1, 2, 4), nil, layers.Mask{})
		wantError(t, err, "attention", "NewCache")
	}
}
