package ops

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// HeadCrossEntropy returns the CrossEntropy of a head's logits, and the predicted ids. The logits are x·wᵀ + b or, if
// softcap isn't 0, the Softcap of that. x has shape (…, D), w (V, D), b (V), and targets and predicted ids (…). If b is
// nil, there is no bias. A predicted id is the class with the largest logit, the first one if there are several. It is
// −1 if a logit is NaN, or if the weight of the position is 0. The count is the same as in CrossEntropy.
//
// Only rows with a weight above 0 are read. Their logits are computed in chunks, and only one chunk is kept. If the
// graph has gradients, the gradients of the loss are computed in the same pass, and later only multiplied.
func HeadCrossEntropy(e *Env, x, w, b *G.Node, softcap float64, targets *G.Node, c CrossEntropyOptions) (loss, count, predicted *G.Node, err error) {
	const name = "head cross-entropy"
	if err := checkLinear(e, name, x, w, b); err != nil {
		return nil, nil, nil, err
	}
	vocab := w.Shape()[0]
	if err := cmp.Or(checkTargets(name, "states", "D", x, targets), c.check(name, vocab, x, targets)); err != nil {
		return nil, nil, nil, err
	}
	if softcap != 0 {
		if err := checkCap(name, softcap); err != nil {
			return nil, nil, nil, err
		}
	}
	chunk := max(headRows, headChunk/vocab/headRows*headRows)
	if loss, predicted, err = ByDtype(x, headCrossEntropy[float32], headCrossEntropy[float64])(e, x, w, b, softcap, targets, c, chunk); err != nil {
		return nil, nil, nil, err
	}
	count, err = ByDtype(x, countTargets[float32], countTargets[float64])(e, name, vocab, targets, c)
	return loss, count, predicted, err
}

// A chunk has at least headRows rows, and otherwise at most headChunk logits.
const (
	headChunk = 1 << 24
	headRows  = 64
)

func headCrossEntropy[F kernel.Float](e *Env, x, w, b *G.Node, softcap float64, targets *G.Node, c CrossEntropyOptions, chunk int) (loss, predicted *G.Node, err error) {
	const name = "head cross-entropy"
	n, width := rows(x.Shape())
	vocab := w.Shape()[0]
	chunk = min(chunk, n)
	h := &headLoss[F]{
		e: e, width: width, vocab: vocab, softcap: F(softcap), smoothing: F(c.LabelSmoothing), classes: make([]int, n),
		targets: make([]int, chunk), best: make([]int, chunk), losses: make([]F, chunk), scales: make([]F, chunk), ones: slices.Repeat([]F{1}, chunk),
		logSums: make([]float64, chunk), states: newBuffer[F](tensor.Shape{chunk, width}), logits: newBuffer[F](tensor.Shape{chunk, vocab}),
	}
	inputs := G.Nodes{x, w}
	if b != nil {
		inputs = append(inputs, b)
	}
	wrt := len(inputs)
	weights := newWeighting[F](n)
	classWeights := c.ClassWeights
	attrs := fmt.Sprintf("%v%v(%t, %v)%s", x.Shape(), w.Shape(), b != nil, softcap, c.attrs())
	o := newScalar(name+attrs, func(values []G.Value) F {
		targets := elements[int](values[wrt], n)
		weights.read(values, wrt+1)
		weighClasses(weights, h.classes, targets, classWeights, vocab)
		weights.total(1)
		var bias []F
		if b != nil {
			bias = elements[F](values[2], vocab)
		}
		x, w := read2[F](values, n*width, vocab*width)
		return F(weights.mean(h.run(x, w, bias, weights), 1))
	})
	o.layer, o.fills, o.shared, o.wrt, o.tied = name, []*lease{&h.states.lease, &h.logits.lease}, h, wrt, true
	o.grad = func(nodes G.Nodes, loss, g *G.Node) (grads G.Nodes, err error) {
		if h.grads != [3]*buffer[F]{} {
			return nil, errors.New(name + ": the graph already has gradients of this loss: make a second Build and graph")
		}
		if softcap != 0 {
			h.derivs = newBuffer[F](h.logits.shape)
			o.fills = append(o.fills, &h.derivs.lease)
		}
		grads = make(G.Nodes, wrt)
		for i, n := range nodes[:wrt] {
			if !e.wants(n) {
				continue
			}
			buf := newBuffer[F](n.Shape())
			h.grads[i] = buf
			o.fills = append(o.fills, &buf.lease)
			d := &op{
				name: fmt.Sprintf("%s.d%d%s", name, i, attrs), shape: buf.shape, out: typeOf(dtypeOf[F](), buf.shape), output: &buf.lease, after: 1, shared: buf,
				run: func(values []G.Value) G.Value {
					h.multiply(i, elements[F](values[0], 1)[0])
					return buf.dense
				},
			}
			// The loss is among the inputs, so that it runs first: it fills buf.
			if grads[i], err = e.apply(d, g, loss); err != nil {
				return nil, err
			}
		}
		if t := e.ties[w]; t != nil && t.head == o {
			t.grad = grads[1]
		}
		return grads, nil
	}
	if loss, err = e.apply(o, append(inputs, targets, c.Weights)...); err != nil {
		return nil, nil, err
	}
	predicted, err = predictions(e, loss, loss.Op().(*op).shared.(*headLoss[F]).classes, targets.Shape())
	return loss, predicted, err
}

// predictions adds an op that returns ids of the given shape, which the op of the loss has set.
func predictions(e *Env, loss *G.Node, ids []int, shape tensor.Shape) (*G.Node, error) {
	out := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(ids))
	return e.apply(&op{
		name: fmt.Sprint("predictions", shape), shape: shape, out: typeOf(tensor.Int, shape), after: 1,
		run: func([]G.Value) G.Value { return out },
	}, loss)
}

// A headLoss computes a HeadCrossEntropy with its gradients.
type headLoss[F kernel.Float] struct {
	e                  *Env
	width, vocab       int
	softcap, smoothing F
	classes            []int         // before run the targets, or −1 where the weight is 0; then the predicted ids
	counted            []int         // the positions whose weight isn't 0
	grads              [3]*buffer[F] // with respect to x, w and b; nil where not wanted

	// One element or row for each row of a chunk:
	targets, best        []int
	losses, scales, ones []F
	logSums              []float64
	states, logits       *buffer[F]
	derivs               *buffer[F] // gradients of the logits; if nil, they overwrite the logits
}

// run returns the weighted sum of the losses. It sets the gradients of the weighted mean.
func (h *headLoss[F]) run(x, w, bias []F, weights *weighting[F]) (sum float64) {
	h.counted = h.counted[:0]
	for i, class := range h.classes {
		if class >= 0 {
			h.counted = append(h.counted, i)
		}
	}
	for i, d := range h.grads {
		if d != nil && (i == 0 || len(h.counted) == 0) {
			clear(d.slice())
		}
	}
	scales, chunk := weights.gradient(1), len(h.targets)
	chunks := max(1, (len(h.counted)+chunk-1)/chunk)
	chunk = (len(h.counted) + chunks - 1) / chunks // about equal chunks, as a small one takes relatively long
	for lo := 0; lo < len(h.counted); lo += chunk {
		positions := h.counted[lo:min(lo+chunk, len(h.counted))]
		n := len(positions)
		for i, p := range positions {
			h.targets[i], h.best[i], h.scales[i] = h.classes[p], 0, scales[p]
		}
		states, logits := h.states.slice()[:n*h.width], h.logits.slice()[:n*h.vocab]
		kernel.Gather(states, x, positions, h.width)
		gemm(h.e, false, true, n, h.vocab, h.width, 1, states, h.width, w, h.width, 0, logits, &kernel.Finish[F]{Bias: bias}, nil) // (n, D) x (V, D)ᵀ -> (n, V)
		if h.softcap != 0 {
			kernel.Softcap(h.e.Cores, logits, logits, h.softcap)
		}
		kernel.CrossEntropy(h.e.Cores, h.losses, h.logSums, logits, h.targets[:n], h.vocab, h.smoothing)
		kernel.Largest(h.e.Cores, h.best[:n], logits, h.vocab)
		for i, p := range positions {
			sum += float64(weights.values[p]) * float64(h.losses[i])
			h.classes[p] = h.best[i]
		}
		if h.grads != [3]*buffer[F]{} {
			h.differentiate(w, states, logits, positions, min(F(lo), 1))
		}
	}
	return sum
}

// differentiate computes the gradients for one chunk. It multiplies those with respect to w and b by beta before it
// adds to them.
func (h *headLoss[F]) differentiate(w, states, logits []F, positions []int, beta F) {
	n, d := len(positions), logits
	if h.derivs != nil {
		d = h.derivs.slice()[:len(logits)]
	}
	kernel.CrossEntropyGrad(h.e.Cores, d, h.logSums, logits, h.targets[:n], h.vocab, h.smoothing, h.scales)
	if h.softcap != 0 {
		kernel.SoftcapGrad(h.e.Cores, d, logits, d, h.softcap)
	}
	if dw := h.grads[1]; dw != nil {
		gemm(h.e, true, false, h.vocab, h.width, n, 1, d, h.vocab, states, h.width, beta, dw.slice(), nil, nil) // (n, V)ᵀ x (n, D) -> (V, D)
	}
	if db := h.grads[2]; db != nil {
		kernel.Gemm(h.e.Cores, false, false, 1, h.vocab, n, 1, h.ones, n, d, h.vocab, beta, db.slice(), h.vocab) // (1, n) x (n, V) -> (1, V)
	}
	if dx := h.grads[0]; dx != nil {
		gemm(h.e, false, false, n, h.width, h.vocab, 1, d, h.vocab, w, h.width, 0, states, nil, nil) // (n, V) x (V, D) -> (n, D)
		for i, p := range positions {
			copy(dx.slice()[p*h.width:][:h.width], states[i*h.width:])
		}
	}
}

// multiply multiplies a gradient by g. Rows of dx that aren't counted stay 0, even if g is NaN.
func (h *headLoss[F]) multiply(i int, g F) {
	d := h.grads[i].data
	switch {
	case g == 1 || len(h.counted) == 0:
	case i == 0:
		for _, p := range h.counted {
			kernel.Scale(h.e.Cores, d[p*h.width:][:h.width], g)
		}
	default:
		kernel.Scale(h.e.Cores, d, g)
	}
}
