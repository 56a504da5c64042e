package ops

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/kernel"
)

// An Activation is the index in Activations of a function that is applied to every element.
type Activation int

const (
	ReLU     Activation = iota // max(0, x); its derivative at 0 is 0
	GELU                       // x·Φ(x), with the error function (Hendrycks and Gimpel, 2016)
	GELUTanh                   // the same paper's approximation by tanh
	SiLU                       // x·σ(x) (Hendrycks and Gimpel, 2016; Elfwing et al., 2017)
	Tanh                       // tanh(x)
	Sigmoid                    // σ(x) = 1/(1 + exp(−x))

	Identity Activation = -1 // x, for a Linear without activation
)

// Activations are the activations, in the order of their numbers.
var Activations = choices.Table[activation]{
	{Name: "relu", About: "max(0, x)", Value: computed(kernel.ReLU, kernel.ReLUGrad, kernel.ReLU, kernel.ReLUGrad, true)},
	{Name: "gelu", About: "x·Φ(x), with the exact error function", Value: computed(kernel.GELU, kernel.GELUGrad, kernel.GELU, kernel.GELUGrad, false)},
	{Name: "gelu tanh", About: "GELU by its tanh approximation", Value: computed(kernel.GELUTanh, kernel.GELUTanhGrad, kernel.GELUTanh, kernel.GELUTanhGrad, false)},
	{Name: "silu", About: "x·σ(x), also called Swish", Value: computed(kernel.SiLU, kernel.SiLUGrad, kernel.SiLU, kernel.SiLUGrad, false)},
	{Name: "tanh", About: "the hyperbolic tangent", Value: computed(kernel.Tanh, kernel.TanhGrad, kernel.Tanh, kernel.TanhGrad, true)},
	{Name: "sigmoid", About: "1/(1 + exp(−x))", Value: computed(kernel.Sigmoid, kernel.SigmoidGrad, kernel.Sigmoid, kernel.SigmoidGrad, true)},
}

// An activation has the functions that ops compute for one Activation.
type activation struct {
	f32      unary[float32]
	f64      unary[float64]
	byOutput bool // the derivative follows from the output: see needsInput
}

// unary are the functions y = f(x) and dx = g·f'(x) on slices. If the derivative follows from the output, backward gets
// y instead of x, and dx may be y.
type unary[F kernel.Float] struct {
	forward  func(cores int, y, x []F)
	backward func(cores int, dx, x, g []F)
}

// computed returns an activation's functions, in float32 and in float64.
func computed(f32 func(cores int, y, x []float32), df32 func(cores int, dx, x, g []float32), f64 func(cores int, y, x []float64), df64 func(cores int, dx, x, g []float64), byOutput bool) activation {
	return activation{unary[float32]{f32, df32}, unary[float64]{f64, df64}, byOutput}
}

// unaryOf returns the functions of an activation.
func unaryOf[F kernel.Float](a Activation) unary[F] {
	if u, ok := any(Activations[a].Value.f32).(unary[F]); ok {
		return u
	}
	return any(Activations[a].Value.f64).(unary[F])
}

func (a Activation) String() string {
	if a.Known() {
		return Activations[a].Name
	}
	return "identity"
}

// Known reports whether there is such an activation. They are numbered from 0.
func (a Activation) Known() bool { return a >= 0 && int(a) < len(Activations) }

// needsInput reports whether the derivative needs the activation's input. Otherwise its output suffices.
func (a Activation) needsInput() bool { return a.Known() && !Activations[a].Value.byOutput }

// Activate applies an activation to every element of x.
func Activate(e *Env, x *G.Node, a Activation) (*G.Node, error) {
	if !a.Known() {
		return nil, fmt.Errorf("activation: there is no activation %d", int(a))
	}
	if err := CheckFloat(a.String(), "the input", x); err != nil {
		return nil, err
	}
	return ByDtype(x, activate[float32], activate[float64])(e, x, a)
}

func activate[F kernel.Float](e *Env, x *G.Node, a Activation) (*G.Node, error) {
	return elementwise(e, a.String(), fmt.Sprint(x.Shape()), x, unaryOf[F](a), !a.needsInput())
}

// elementwise adds an op that applies u to x, whose output has the shape of x. If byOutput is true, u.backward gets the
// op's output instead of x.
func elementwise[F kernel.Float](e *Env, name, attrs string, x *G.Node, u unary[F], byOutput bool) (*G.Node, error) {
	shape := x.Shape()
	o := newOp(name+attrs, shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		u.forward(e.Cores, y, x)
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, y, g *G.Node) (G.Nodes, error) {
		x := inputs[0]
		if byOutput {
			x = y
		}
		return one(e.apply(newOp(name+".dx"+attrs, shape, func(dx []F, values []G.Value) {
			x, g := read2[F](values, len(dx), len(dx))
			u.backward(e.Cores, dx, x, g)
		}), x, g))
	}
	return e.apply(o, x)
}
