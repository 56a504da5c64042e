package gradcheck

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	G "gorgonia.org/gorgonia"
)

// A MismatchError reports a gradient that differs from the finite difference of the cost. It describes the worst entry:
// the entry with the largest error relative to its tolerance, or with NaN or infinity. Use errors.As to get the
// MismatchError from an error.
type MismatchError struct {
	Input      string   // the name of the input
	Index      []int    // index of the entry in the input: empty for a scalar, nil for a directional check
	Analytic   float64  // the gradient by gorgonia.Grad
	Numerical  float64  // the gradient by finite differences
	Tolerance  float64  // the largest allowed difference: atol + rtol·|Numerical|
	Off, Total int      // number of wrong values, and number of all compared values, in all inputs
	Also       []string // names of the other inputs with wrong values
}

// Error returns a message with the entry, both values and the number of wrong values.
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gradient of %s", e.Input)
	switch {
	case e.Index == nil:
		b.WriteString(" along a random direction")
	case len(e.Index) > 0:
		fmt.Fprintf(&b, " at %v", e.Index)
	}
	fmt.Fprintf(&b, ": analytic %.9g, numerical %.9g", e.Analytic, e.Numerical)
	switch {
	case !finite(e.Analytic):
		b.WriteString(": the analytic value is not finite")
	case !finite(e.Numerical):
		b.WriteString(": the cost is not finite within Eps of the point")
	default:
		fmt.Fprintf(&b, ": the difference is %.3g, but at most %.3g is allowed", math.Abs(e.Analytic-e.Numerical), e.Tolerance)
	}
	fmt.Fprintf(&b, " (%d of %d values are wrong", e.Off, e.Total)
	if len(e.Also) > 0 {
		fmt.Fprintf(&b, "; also in %s", strings.Join(e.Also, ", "))
	}
	b.WriteString(")")
	return b.String()
}

// check compares the gradients of an expression. Check and Expr use it.
func (c Config) check(cost *G.Node, wrt G.Nodes) (err error) {
	x, err := newExpression(cost, wrt)
	if err != nil {
		return err
	}
	defer func() {
		if e := x.close(); err == nil {
			err = e
		}
	}()
	grads, err := x.gradients()
	if err != nil {
		return err
	}
	if c.Directional {
		return c.directions(x, grads)
	}
	return c.entries(x, grads)
}

// entries compares every entry of every input.
func (c Config) entries(x *expression, grads [][]float64) error {
	var t tally
	for k, input := range x.inputs {
		for i := range input.len() {
			entry := input.at(i)
			x0 := *entry
			lo, hi := x0-c.Eps, x0+c.Eps
			if !(lo < hi) {
				return fmt.Errorf("%s at %v is %g: adding or subtracting Eps = %g doesn't change this number", input.name, input.index(i), x0, c.Eps)
			}
			*entry = hi
			above, err := x.cost()
			if err != nil {
				return err
			}
			*entry = lo
			below, err := x.cost()
			if err != nil {
				return err
			}
			*entry = x0
			t.add(c, MismatchError{
				Input: input.name, Index: input.index(i), Analytic: grads[k][i],
				Numerical: (above - below) / (hi - lo), // hi − lo is the actual step, after rounding
			})
		}
	}
	return t.err()
}

// directions compares one number for each input: the derivative along a random direction.
func (c Config) directions(x *expression, grads [][]float64) error {
	var t tally
	r := rand.New(rand.NewPCG(c.Seed, 0x9e3779b97f4a7c15))
	for k, input := range x.inputs {
		x0, d := make([]float64, input.len()), unit(r, input.len())
		analytic := 0.0
		for i := range x0 {
			x0[i] = *input.at(i)
			if !(x0[i]-c.Eps < x0[i]+c.Eps) {
				return fmt.Errorf("%s at %v is %g: adding or subtracting Eps = %g doesn't change this number", input.name, input.index(i), x0[i], c.Eps)
			}
			// The actual step, after rounding.
			step := (x0[i] + c.Eps*d[i]) - (x0[i] - c.Eps*d[i])
			analytic += grads[k][i] * step / (2 * c.Eps)
		}
		move := func(by float64) (float64, error) {
			for i := range x0 {
				*input.at(i) = x0[i] + by*d[i]
			}
			return x.cost()
		}
		above, err := move(c.Eps)
		if err != nil {
			return err
		}
		below, err := move(-c.Eps)
		if err != nil {
			return err
		}
		for i := range x0 {
			*input.at(i) = x0[i]
		}
		t.add(c, MismatchError{Input: input.name, Analytic: analytic, Numerical: (above - below) / (2 * c.Eps)})
	}
	return t.err()
}

// unit returns a random vector of length 1, uniform over all directions.
func unit(r *rand.Rand, n int) []float64 {
	d := make([]float64, n)
	length := 0.0
	for length == 0 {
		for i := range d {
			d[i] = r.NormFloat64()
			length = math.Hypot(length, d[i])
		}
	}
	for i := range d {
		d[i] /= length
	}
	return d
}

// A tally counts comparisons and keeps the worst mismatch.
type tally struct {
	worst      MismatchError
	badness    float64 // the error of worst, in multiples of its tolerance
	off, total int
	names      []string // the inputs with a wrong entry
}

// add compares the two values of m.
func (t *tally) add(c Config, m MismatchError) {
	t.total++
	m.Tolerance = c.Atol + c.Rtol*math.Abs(m.Numerical)
	badness := math.Abs(m.Analytic-m.Numerical) / m.Tolerance
	if !finite(m.Analytic) || !finite(m.Numerical) {
		badness = math.Inf(1)
	}
	if badness <= 1 {
		return
	}
	t.off++
	if len(t.names) == 0 || t.names[len(t.names)-1] != m.Input {
		t.names = append(t.names, m.Input)
	}
	if badness > t.badness {
		t.worst, t.badness = m, badness
	}
}

// err returns the worst mismatch, or nil if there is none.
func (t *tally) err() error {
	if t.off == 0 {
		return nil
	}
	m := t.worst
	m.Off, m.Total = t.off, t.total
	for _, name := range t.names {
		if name != m.Input {
			m.Also = append(m.Also, name)
		}
	}
	return &m
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
