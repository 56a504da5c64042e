package ops

import (
	"cmp"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// An ExpertsConfig holds the weights and options of experts, which are feed-forward layers of the same shape. The first
// axis of each parameter counts the experts, E.
type ExpertsConfig struct {
	Name     string  // the layer's name in errors
	Gate, Up *G.Node // (E, H, D); Gate is nil without a gate
	Down     *G.Node // (E, D, H)

	GateBias, UpBias, DownBias *G.Node // (E·H), (E·H) and (E·D); nil for none

	Activation Activation
	Limit      float64 // if it isn't 0, kernel.ClampedGate takes the place of the gate and the activation
	Dropout    float64 // probability of dropping a hidden unit
}

// Experts returns the output of experts for x of shape (…, D). The matrix ids, of shape (N, K), has the numbers of the
// experts of each of the N tokens, and shares their factors:
//
//	y = Σ shares·(Down·h + DownBias),  h = act(Gate·x + GateBias)∘(Up·x + UpBias)  or  act(Up·x + UpBias)
//
// Tokens are sorted by expert, so that each expert computes one product per matrix. An expert without tokens computes
// nothing, and its gradients are 0.
func Experts(e *Env, x, ids, shares *G.Node, c ExpertsConfig) (*G.Node, error) {
	if err := c.check(e, x, ids, shares); err != nil {
		return nil, err
	}
	return ByDtype(x, experts[float32], experts[float64])(e, x, ids, shares, c)
}

// params returns the parameters, in the order of the op's inputs.
func (c ExpertsConfig) params() G.Nodes {
	return G.Nodes{c.Gate, c.Up, c.Down, c.GateBias, c.UpBias, c.DownBias}
}

// check checks the operands.
func (c ExpertsConfig) check(e *Env, x, ids, shares *G.Node) error {
	if err := cmp.Or(CheckFloat(c.Name, "the input", x), e.checkPrecision(c.Name, x), CheckRate(c.Name, c.Dropout), sameDtype(c.Name, "the weight", c.Up, "the input", x)); err != nil {
		return err
	}
	if x.Dims() < 1 || c.Up.Dims() != 3 || ids.Dims() != 2 || ids.Dtype() != tensor.Int {
		return fmt.Errorf("%s: the input must have shape (…, D), the weights (E, H, D) and the experts' numbers (N, K), got %v, %v and %v", c.Name, x.Shape(), c.Up.Shape(), ids.Shape())
	}
	tokens, dim := rows(x.Shape())
	count, hidden, top := c.Up.Shape()[0], c.Up.Shape()[1], ids.Shape()[1]
	for _, p := range []struct {
		what  string
		n     *G.Node
		shape []int
	}{
		{"Up", c.Up, []int{count, hidden, dim}}, {"Gate", c.Gate, []int{count, hidden, dim}}, {"Down", c.Down, []int{count, dim, hidden}},
		{"UpBias", c.UpBias, []int{count * hidden}}, {"GateBias", c.GateBias, []int{count * hidden}}, {"DownBias", c.DownBias, []int{count * dim}},
		{"shares", shares, []int{tokens, top}},
	} {
		if p.n == nil {
			continue
		}
		if err := cmp.Or(sameDtype(c.Name, p.what, p.n, "the input", x), hasShape(c.Name, p.what, p.n, p.shape...)); err != nil {
			return err
		}
	}
	switch {
	case !c.Activation.Known():
		return fmt.Errorf("%s: there is no activation %d", c.Name, int(c.Activation))
	case c.Limit != 0 && (c.Gate == nil || c.Activation != SiLU || !(c.Limit > 0 && c.Limit <= Largest)):
		return fmt.Errorf("%s: Limit is for gated experts with the activation silu, and must be above 0 and at most %v, got %v and %v", c.Name, Largest, c.Limit, c.Activation)
	}
	return hasShape(c.Name, "the experts' numbers", ids, tokens, top)
}

// The inputs of the op: x, shares, the parameters that there are, and ids.
const expertInputs = 2

func experts[F kernel.Float](e *Env, x, ids, shares *G.Node, c ExpertsConfig) (*G.Node, error) {
	tokens, dim := rows(x.Shape())
	top := ids.Shape()[1]
	dropped := e.drop(c.Dropout)
	s := &expertState[F]{
		e: e, c: c, act: unaryOf[F](c.Activation), tokens: tokens, dim: dim, hidden: c.Up.Shape()[1], top: top, dropped: dropped,
		order: make([]int, tokens*top), places: make([]int, tokens*top), starts: make([]int, c.Up.Shape()[0]+1),
	}
	parts, n := 2, tokens*top // hidden units before and after the activation
	if c.Gate != nil {
		parts++
	}
	if dropped.p > 0 {
		parts++
	}
	s.units, s.rows = newBuffer[F](tensor.Shape{parts, n, s.hidden}), newBuffer[F](tensor.Shape{2, n, dim})
	inputs := G.Nodes{x, shares}
	attrs := fmt.Sprintf("%v%v%v(%v,%v)", x.Shape(), c.Up.Shape(), ids.Shape(), c.Activation, c.Limit)
	for _, p := range c.params() {
		if attrs += fmt.Sprint(p != nil); p != nil {
			inputs = append(inputs, p)
		}
	}
	if dropped.p > 0 {
		attrs += fmt.Sprintf(" dropout%v", dropped)
	}
	o := newOp("experts"+attrs, x.Shape(), func(y []F, values []G.Value) { s.forward(y, values) })
	o.fills, o.shared, o.layer = append(o.fills, &s.units.lease, &s.rows.lease), s, c.Name
	o.wrt, o.grad = len(inputs), func(nodes G.Nodes, out, g *G.Node) (G.Nodes, error) {
		s := out.Op().(*op).shared.(*expertState[F]) // apply may have returned an earlier, equal node
		want, shapes := o.DiffWRT(len(nodes)), make([]tensor.Shape, len(inputs))
		for i, n := range inputs {
			if want[i] {
				shapes[i] = n.Shape()
			}
		}
		work := newBuffer[F](tensor.Shape{n * (2*dim + 3*s.hidden)})
		return joint(e, "experts.grad"+attrs, want[:len(inputs)], shapes, append(slices.Clone(nodes), g, out), work, s.units, func(grads [][]F, values []G.Value) {
			s.backward(grads, values, work.slice())
		})
	}
	return e.apply(o, append(inputs, ids)...)
}

// An expertState computes Experts and their gradients.
type expertState[F kernel.Float] struct {
	e                        *Env
	c                        ExpertsConfig
	act                      unary[F]
	tokens, dim, hidden, top int
	dropped                  drop
	runs                     runs

	order  []int // the tokens, sorted by expert, and then by their numbers
	places []int // (N, K): the place in order of each choice
	starts []int // expert i has the places starts[i] to starts[i+1]

	units *buffer[F] // hidden units at each place: h, Up·x, Gate·x and dropout's factors, if there are such
	rows  *buffer[F] // the inputs and outputs at each place
}

// An expertPart holds the rows of one expert in each of the state's arrays, and its parameters.
type expertPart[F kernel.Float] struct {
	rows, lo, hi                                     int // number of rows, and their places
	expert                                           int
	gate, up, down, gateBias, upBias, downBias       []F
	dgate, dup, ddown, dgateBias, dupBias, ddownBias []F
}

// sort sets order, places and starts.
func (s *expertState[F]) sort(ids []int) {
	clear(s.starts)
	experts := len(s.starts) - 1
	for _, id := range ids {
		if id < 0 || id >= experts {
			fail("there is no expert %d among %d", id, experts)
		}
		s.starts[id+1]++
	}
	for i := range experts {
		s.starts[i+1] += s.starts[i]
	}
	next := slices.Clone(s.starts)
	for choice, id := range ids {
		s.order[next[id]], s.places[choice] = choice/s.top, next[id]
		next[id]++
	}
}

// each calls do for every expert. The arguments values and grads are the op's inputs and their gradients; the latter
// may be nil.
func (s *expertState[F]) each(values []G.Value, grads [][]F, do func(p *expertPart[F])) {
	for i := range len(s.starts) - 1 {
		p := &expertPart[F]{lo: s.starts[i], hi: s.starts[i+1], expert: i}
		p.rows = p.hi - p.lo
		input := expertInputs
		for j, n := range s.c.params() {
			if n == nil {
				continue
			}
			size := volume(n.Shape()) / (len(s.starts) - 1)
			*[]*[]F{&p.gate, &p.up, &p.down, &p.gateBias, &p.upBias, &p.downBias}[j] = elements[F](values[input], volume(n.Shape()))[i*size:][:size]
			if grads != nil && grads[input] != nil {
				*[]*[]F{&p.dgate, &p.dup, &p.ddown, &p.dgateBias, &p.dupBias, &p.ddownBias}[j] = grads[input][i*size:][:size]
			}
			input++
		}
		do(p)
	}
}

// unit returns array i of the hidden units.
func (s *expertState[F]) unit(i int) []F {
	n := len(s.order) * s.hidden
	return s.units.slice()[i*n:][:n]
}

// keep returns the factors of dropout.
func (s *expertState[F]) keep() []F { return s.unit(s.units.shape[0] - 1) }

// forward computes the output y.
func (s *expertState[F]) forward(y []F, values []G.Value) {
	x, shares := read2[F](values, s.tokens*s.dim, len(s.order))
	s.sort(elements[int](values[len(values)-1], len(s.order)))
	if s.dropped.p > 0 {
		kernel.DropoutMask(s.e.Cores, s.keep(), s.dropped.p, s.dropped.seed, s.dropped.stream, s.runs.next(s.e))
	}
	n, d, h := len(s.order)*s.dim, s.dim, s.hidden
	in, out := s.rows.slice()[:n], s.rows.slice()[n:]
	kernel.GatherRows(s.e.Cores, in, x, s.order, d)
	s.each(values, nil, func(p *expertPart[F]) {
		if p.rows == 0 {
			return
		}
		product := func(out, in, w, bias []F, wide, inner int) { // (m, I) x (O, I)ᵀ -> (m, O)
			gemm(s.e, false, true, p.rows, wide, inner, 1, in[p.lo*inner:p.hi*inner], inner, w, inner, 0, out[p.lo*wide:p.hi*wide], &kernel.Finish[F]{Bias: bias}, nil)
		}
		product(s.unit(1), in, p.up, p.upBias, h, d)
		if s.c.Gate != nil {
			product(s.unit(2), in, p.gate, p.gateBias, h, d)
		}
		s.activate(p)
		product(out, s.unit(0), p.down, p.downBias, d, h)
	})
	kernel.Combine(s.e.Cores, y, out, shares, s.places, s.top, d)
}

// activate computes the hidden units of one expert after the activation and dropout.
func (s *expertState[F]) activate(p *expertPart[F]) {
	lo, hi := p.lo*s.hidden, p.hi*s.hidden
	hidden, up := s.unit(0)[lo:hi], s.unit(1)[lo:hi]
	switch {
	case s.c.Gate == nil:
		s.act.forward(s.e.Cores, hidden, up)
	case s.c.Limit != 0:
		kernel.ClampedGate(s.e.Cores, hidden, s.unit(2)[lo:hi], up, F(s.c.Limit))
	default:
		kernel.Gate(s.e.Cores, hidden, s.unit(2)[lo:hi], up, s.act.forward)
	}
	if s.dropped.p > 0 {
		kernel.SkipMul(s.e.Cores, hidden, hidden, s.keep()[lo:hi])
	}
}

// backward computes the gradients of x, shares and the parameters. A gradient that isn't wanted is nil. The inputs are
// the forward op's and the gradient of its output.
func (s *expertState[F]) backward(grads [][]F, values []G.Value, work []F) {
	x, shares := read2[F](values, s.tokens*s.dim, len(s.order))
	g := elements[F](values[len(values)-2], s.tokens*s.dim)
	n, d, h := len(s.order), s.dim, s.hidden
	in, out, units := work[:n*d], work[n*d:][:n*d], work[2*n*d:]
	dhidden, dup, dgate := units[:n*h], units[n*h:][:n*h], units[2*n*h:][:n*h]
	kernel.GatherRows(s.e.Cores, in, x, s.order, d)
	kernel.GatherRows(s.e.Cores, out, g, s.order, d)
	sorted, dots := make([]F, n), make([]F, n) // the shares and their gradients, by places
	for choice, place := range s.places {
		sorted[place] = shares[choice]
	}
	s.each(values, grads, func(p *expertPart[F]) {
		if p.rows == 0 {
			for _, d := range [][]F{p.dgate, p.dup, p.ddown, p.dgateBias, p.dupBias, p.ddownBias} {
				clear(d)
			}
			return
		}
		row := func(x []F, width int) []F { return x[p.lo*width : p.hi*width] }
		in, out, hidden, factors := row(in, d), row(out, d), row(s.unit(0), h), sorted[p.lo:p.hi]
		gate, dhidden, dup, dgate := []F(nil), row(dhidden, h), row(dup, h), row(dgate, h)
		gemm(s.e, false, false, p.rows, h, d, 1, out, d, p.down, h, 0, dhidden, nil, nil) // (m, D) x (D, H) -> (m, H)
		kernel.RowDots(s.e.Cores, dots[p.lo:p.hi], dhidden, hidden, h)
		if p.downBias != nil {
			kernel.RowDots(s.e.Cores, dots[p.lo:p.hi], out, p.downBias, d)
		}
		kernel.ScaleRows(s.e.Cores, out, factors, d)
		kernel.ScaleRows(s.e.Cores, dhidden, factors, h)
		s.weightGrad(p.ddown, p.ddownBias, out, hidden, p.rows, d, h)
		if s.dropped.p > 0 {
			kernel.SkipMul(s.e.Cores, dhidden, dhidden, row(s.keep(), h))
		}
		if s.c.Gate != nil {
			gate = row(s.unit(2), h)
		}
		s.activationGrad(dgate, dup, gate, row(s.unit(1), h), dhidden)
		s.weightGrad(p.dup, p.dupBias, dup, in, p.rows, h, d)
		s.weightGrad(p.dgate, p.dgateBias, dgate, in, p.rows, h, d)
		if grads[0] == nil {
			return
		}
		gemm(s.e, false, false, p.rows, d, h, 1, dup, h, p.up, d, 0, out, nil, nil) // (m, H) x (H, D) -> (m, D)
		if gate != nil {
			gemm(s.e, false, false, p.rows, d, h, 1, dgate, h, p.gate, d, 1, out, nil, nil)
		}
	})
	if grads[0] != nil {
		kernel.Combine(s.e.Cores, grads[0], out, nil, s.places, s.top, d)
	}
	if grads[1] != nil {
		for choice, place := range s.places {
			grads[1][choice] = dots[place]
		}
	}
}

// weightGrad sets the gradients of a weight and its bias, for outputs with the gradient g of shape (m, O), and inputs
// of shape (m, I).
func (s *expertState[F]) weightGrad(dw, dbias, g, x []F, rows, out, in int) {
	if dw != nil {
		skipGemm(s.e, true, false, out, in, rows, 1, g, out, x, in, dw, in) // (m, O)ᵀ x (m, I) -> (O, I)
	}
	if dbias != nil {
		kernel.SumRows(s.e.Cores, dbias, g)
	}
}

// activationGrad sets the gradients of the hidden units before the activation, for the gradient g of those after it.
func (s *expertState[F]) activationGrad(dgate, dup, gate, up, g []F) {
	grad := ofInput(s.c.Activation, s.act)
	switch {
	case gate == nil:
		grad(s.e.Cores, dup, up, g)
	case s.c.Limit != 0:
		kernel.ClampedGateGrad(s.e.Cores, dgate, dup, gate, up, g, F(s.c.Limit))
	default:
		kernel.GateGrad(s.e.Cores, dgate, dup, gate, up, g, s.act.forward, grad)
	}
}
