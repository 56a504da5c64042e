//go:build !noasm && !cuda

package ops

import (
	"bytes"
	"errors"
	"hash"
	"runtime/debug"
	"testing"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// probe is the identity of a vector that calls do.
type probe struct{ do func() error }

func (p probe) Arity() int                                        { return 1 }
func (p probe) Type() hm.Type                                     { return hm.NewFnType(vector64, vector64) }
func (p probe) InferShape(in ...G.DimSizer) (tensor.Shape, error) { return in[0].(tensor.Shape), nil }
func (p probe) Do(values ...G.Value) (G.Value, error)             { return values[0], p.do() }
func (p probe) ReturnsPtr() bool                                  { return true }
func (p probe) CallsExtern() bool                                 { return false }
func (p probe) OverwritesInput() int                              { return -1 }
func (p probe) WriteHash(h hash.Hash)                             { h.Write([]byte("probe")) }
func (p probe) Hashcode() uint32                                  { return 1 }
func (p probe) String() string                                    { return "probe" }

var vector64 = G.TensorType{Dims: 1, Of: tensor.Float64}

// wrapped is a machine of another type.
type wrapped struct{ G.VM }

// TestRunAll checks that a machine runs on the caller's goroutine, runs again after Reset, and returns an op's error,
// as RunAll does.
func TestRunAll(t *testing.T) {
	own := errors.New("own")
	var fails error
	separate := false // whether the op has run on a goroutine that RunAll made
	g := G.NewGraph()
	x := G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("x"), G.WithValue(tensor.New(tensor.WithBacking([]float64{1, 2}))))
	y := G.Must(G.ApplyOp(probe{func() error {
		separate = bytes.Contains(debug.Stack(), []byte("tapeMachine).RunAll"))
		return fails
	}}, x))
	z := G.Must(G.Square(y))
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	for _, machine := range []G.VM{vm, wrapped{vm}} {
		for _, fails = range []error{nil, own, nil} {
			err := runAll(machine)
			if contextual, ok := err.(interface{ Err() error }); ok {
				err = contextual.Err()
			}
			if !errors.Is(err, fails) || (err == nil) != (fails == nil) {
				t.Errorf("%T: got %v, want %v", machine, err, fails)
			}
			if err == nil && z.Value().Data().([]float64)[1] != 4 {
				t.Errorf("%T: got %v, want 1 and 4", machine, z.Value())
			}
			if _, other := machine.(wrapped); separate != other {
				t.Errorf("%T has run on a goroutine of its own: %t, want %t", machine, separate, other)
			}
			machine.Reset()
		}
	}
}
