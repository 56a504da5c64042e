//go:build amxmodel

package layers_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
)

const (
	drawsPerGraph = 10  // draws of values for one choice of sizes
	neighbours    = 4   // inputs near each drawn one; the first one is a control
	lostError     = 256 // in units of 2⁻²⁴: a third of the digits of float32
	outlier       = 8   // in usual errors
)

// TestMatrixUnitErrors compares the errors of every layer in float32 on the matrix unit in Go with its errors with
// multiply-adds, for drawn sizes, inputs, parameters and gradients of the output, of all scales. The error of a tensor
// is the norm of its difference from float64 divided by its norm, in units of 2⁻²⁴. Tensors are of three kinds: the
// output, gradients of inputs and gradients of parameters. For each kind, the test checks on the matrix unit that
//
//   - the median error is at most the median with multiply-adds, or half a unit, because rounding may cost that much
//   - in units of the usual error, the worst is at most 1.4 times the worst with multiply-adds, without one tensor in a
//     thousand; 0.2 of it is for luck, because few tensors decide
//   - not more tensors than with multiply-adds have an error of 8 usual errors, up to three standard deviations
//
// The usual error is measured near the drawn input. For inputs that differ from it in their last bits, it is the error
// with multiply-adds together with the change of the result in float64. Without it, a single input for which float32
// is inexact would decide. Where the usual error is above 2⁻¹⁶, a third of the digits, luck decides which error is
// smaller, so such tensors count only for the median. Tensors with a norm below 2⁻¹⁰⁰ don't count. The test draws again
// if float64 or multiply-adds give a value that float32 can't hold.
//
// One tensor in a thousand is left out because layers aren't continuous in float32: ReLU has a kink, and the last bit
// of a saturated tanh changes its gradient by far. Multiply-adds meet such places too. The control shows how much the
// worst varies by luck: it is the error with multiply-adds for an input that differs in its last bits. The test logs
// it.
//
// The errors of few draws vary more, so the first two limits are then twice as large. For 10,000 draws, see
// internal/kernel/README.md.
func TestMatrixUnitErrors(t *testing.T) {
	for _, layer := range unitLayers {
		t.Run(layer.name, func(t *testing.T) {
			seed, n := testseed.Of(t), testseed.Cases(80)
			slack := 2.0
			if n >= 5000 {
				slack = 1
			}
			var errs [3]unitErrors
			for i := uint64(0); n > 0; i++ {
				r := rand.New(rand.NewPCG(seed, i))
				sizes := r.Uint64()
				d := unitDraws{newUnitGraph(t, layer, tensor.Float32, sizes), newUnitGraph(t, layer, tensor.Float64, sizes)}
				for range min(n, drawsPerGraph) {
					d.draw(t, r, &errs)
					n--
				}
				must.Do(t, d.single.vm.Close())
				must.Do(t, d.double.vm.Close())
			}
			for i, kind := range []string{"output", "gradients of inputs", "gradients of parameters"} {
				errs[i].check(t, kind, slack)
			}
		})
	}
}

// unitErrors holds the errors of tensors of one kind: on the matrix unit, with multiply-adds, and of the control.
type unitErrors struct {
	all   [2][]float64
	usual [3][]float64 // in usual errors, of the tensors that aren't lost
}

// check tests and logs the errors.
func (e *unitErrors) check(t *testing.T, kind string, slack float64) {
	n, kept := len(e.all[0]), len(e.usual[0])
	if kept == 0 {
		return
	}
	var medians [2]float64
	for i, errs := range e.all {
		slices.Sort(errs)
		medians[i] = errs[n/2]
	}
	var worst, most [3]float64
	var outliers [3]int
	for i, errs := range e.usual {
		slices.Sort(errs)
		worst[i], most[i] = errs[kept-1], errs[max(0, kept-1-max(3, kept/1000))]
		for _, err := range errs {
			if err > outlier {
				outliers[i]++
			}
		}
	}
	t.Logf("%s: %d tensors, %.1f %% lost; matrix unit (multiply-adds): median %.2f (%.2f), worst %.3g (%.3g)",
		kind, n, 100*float64(n-kept)/float64(n), medians[0], medians[1], e.all[0][n-1], e.all[1][n-1])
	t.Logf("%s, in usual errors: matrix unit (multiply-adds, control): all but one in 1000 %.2f (%.2f, %.2f), worst %.3g (%.3g, %.3g), outliers %d (%d, %d)",
		kind, most[0], most[1], most[2], worst[0], worst[1], worst[2], outliers[0], outliers[1], outliers[2])
	if limit := slack * max(medians[1], 0.5); !(medians[0] <= limit) {
		t.Errorf("%s: the median error on the matrix unit is %.3g, want at most %.3g", kind, medians[0], limit)
	}
	if limit := 1.4 * slack * most[1]; !(most[0] <= limit) {
		t.Errorf("%s: all but one error in 1000 on the matrix unit are up to %.3g usual errors, want at most %.3g", kind, most[0], limit)
	}
	if limit := float64(outliers[1]) + 3*math.Sqrt(float64(outliers[1])) + 3; float64(outliers[0]) > limit {
		t.Errorf("%s: %d errors on the matrix unit are above %d usual errors, want at most %.0f", kind, outliers[0], outlier, limit)
	}
}

// unitDraws holds graphs of one layer with the same sizes, in float32 and in float64.
type unitDraws struct{ single, double *unitGraph }

// draw draws values until float32 can hold the results, and adds the errors of the results.
func (d unitDraws) draw(t *testing.T, r *rand.Rand, errs *[3]unitErrors) {
	var want, fma [][]float64
	for !fits(fma) {
		d.fill(r)
		if want = d.double.run(t, false); fits(want) {
			fma = d.single.run(t, false)
		}
	}
	unit := d.single.run(t, true)
	usual, control := d.usual(t, r, want)
	for i, w := range want {
		if norm(w, nil) < 0x1p-100 {
			continue
		}
		e, three := &errs[d.single.kinds[i]], [3]float64{relativeError(unit[i], w), relativeError(fma[i], w), control[i]}
		for j := range e.all {
			e.all[j] = append(e.all[j], three[j])
		}
		if usual[i] <= lostError {
			for j := range three {
				e.usual[j] = append(e.usual[j], three[j]/max(usual[i], 0.5))
			}
		}
	}
}

// usual returns the usual error of each result, and the control's error. It changes the values.
func (d unitDraws) usual(t *testing.T, r *rand.Rand, drawn [][]float64) (usual, control []float64) {
	usual, control = make([]float64, len(drawn)), make([]float64, len(drawn))
	for n := range neighbours {
		for i, v := range d.single.tensors {
			x, y := v.Float32s(), d.double.tensors[i].Float64s()
			for j := range x {
				x[j] *= 1 + float32(r.IntN(3)-1)*0x1p-23
				y[j] = float64(x[j])
			}
		}
		want := d.double.run(t, false)
		for i, x := range d.single.run(t, false) {
			if n == 0 {
				control[i] = relativeError(x, want[i])
				continue
			}
			err := math.Hypot(relativeError(x, want[i]), relativeError(drawn[i], want[i]))
			usual[i] = math.Hypot(usual[i], err/math.Sqrt(neighbours-1))
		}
	}
	return usual, control
}

// fill draws the values of all tensors. A third of the draws have ordinary numbers. The others scale all tensors a
// little, one of them by far, all by far, or rows and single elements.
func (d unitDraws) fill(r *rand.Rand) {
	between := func(limit int) int { return r.IntN(2*limit+1) - limit }
	style, spread, one := r.IntN(6), r.IntN(40), r.IntN(len(d.single.tensors))
	for i, v := range d.single.tensors {
		s := v.Shape()
		cols := s[len(s)-1]
		size, whole, rows, each := 1.0, 0, 0, 0
		if len(s) == 2 {
			size = 1 / math.Sqrt(float64(cols))
		}
		switch {
		case style == 2:
			whole = between(12)
		case style == 3 && i == one || style == 4:
			whole = between(100) // 2¹⁰⁰ is 10³⁰
		case style == 5 && r.IntN(2) == 0:
			rows = spread
		case style == 5:
			each = spread
		}
		x, y, row := v.Float32s(), d.double.tensors[i].Float64s(), 0
		for j := range x {
			if j%cols == 0 {
				row = whole + between(rows)
			}
			x[j] = float32(math.Ldexp(size*r.NormFloat64(), row+between(each)))
			y[j] = float64(x[j])
		}
	}
}

// unitGraph is a graph of one layer. Its results are the output and the gradients.
type unitGraph struct {
	tensors []*tensor.Dense // whose values are drawn: inputs, parameters and the gradient of the output
	kinds   []int           // of the results: 0 for the output, 1 for gradients of inputs, 2 for gradients of parameters
	values  []G.Value       // of the results
	vm      G.VM
}

func newUnitGraph(t *testing.T, layer unitLayer, dt tensor.Dtype, sizes uint64) *unitGraph {
	c := newBench(t)
	c.p, c.dt, c.b.Cores = must.Get(layers.NewParams(dt, 1))(t), dt, 1
	y := layer.build(c, rand.New(rand.NewPCG(sizes, 1)))
	wrt, cost := append(slices.Clone(c.wrt), c.b.Learnables()...), y
	u := &unitGraph{kinds: make([]int, 1+len(wrt)), values: make([]G.Value, 1+len(wrt))}
	for i := range wrt {
		u.kinds[1+i] = 1
		if i >= len(c.wrt) {
			u.kinds[1+i] = 2
		}
	}
	if !y.IsScalar() {
		cost = weigh(t, y, c.in("w", y.Shape()...))
	}
	for _, n := range c.wrt {
		u.tensors = append(u.tensors, n.Value().(*tensor.Dense))
	}
	params := c.p.All()
	if c.b.Adapter != nil {
		params = append(params, c.b.Adapter.Params.All()...)
	}
	for _, q := range params {
		u.tensors = append(u.tensors, q.Value)
	}
	for i, n := range append(G.Nodes{y}, gradients(t, cost, wrt...)...) {
		G.Read(n, &u.values[i])
	}
	u.vm = G.NewTapeMachine(c.g)
	return u
}

// run returns the results, with all products on the matrix unit or none.
func (u *unitGraph) run(t *testing.T, unit bool) [][]float64 {
	kernel.UseMatrixUnit(unit)
	defer kernel.UseMatrixUnit(true)
	must.Do(t, u.vm.RunAll())
	out := make([][]float64, len(u.values))
	for i, v := range u.values {
		out[i] = floats(t, v)
	}
	u.vm.Reset()
	return out
}

// norm returns the norm of x − y, or of x if y is nil.
func norm(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		if y != nil {
			v -= y[i]
		}
		sum += v * v
	}
	return math.Sqrt(sum)
}

// relativeError returns the norm of x − want divided by the norm of want, in units of 2⁻²⁴.
func relativeError(x, want []float64) float64 {
	if err := 0x1p24 * norm(x, want) / norm(want, nil); !math.IsNaN(err) {
		return err
	}
	return math.Inf(1)
}

// fits reports whether there are results, and float32 can hold them.
func fits(results [][]float64) bool {
	for _, x := range results {
		for _, v := range x {
			if !(math.Abs(v) <= math.MaxFloat32) {
				return false
			}
		}
	}
	return len(results) > 0
}
