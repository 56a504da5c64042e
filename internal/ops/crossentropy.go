package ops

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// CrossEntropyOptions holds the options of CrossEntropy. The zero value weights all positions equally.
type CrossEntropyOptions struct {
	Weights        *G.Node   // one weight per target, with the logits' dtype; nil means 1 each
	ClassWeights   []float64 // one weight per class; nil means 1 each
	LabelSmoothing float64   // share of every target that is spread evenly over the classes, from 0 to 1
}

// CrossEntropy returns the weighted mean over positions of −log softmax(logits)[target], in nats. Logits have shape (…,
// V); targets have dtype int and the same shape without V. The weight of a position is multiplied by the class weight
// of its target. A target below 0 is ignored: its weight is 0. The logits of a position with weight 0 are not read. If
// all weights are 0, the loss is 0. No weight may be negative, infinite or NaN. CrossEntropy checks the class weights,
// and the graph checks the weights of positions when it runs. The count is the sum of the weights, by which the mean
// divides: a scalar of dtype float64, without a gradient, which depends only on targets and weights.
//
// With label smoothing ε, the loss of a position is −Σ q·log softmax(logits) with q = (1 − ε)·onehot(target) + ε/V
// (Szegedy et al., 2016).
func CrossEntropy(e *Env, logits, targets *G.Node, c CrossEntropyOptions) (mean, count *G.Node, err error) {
	const name = "cross-entropy"
	if err := checkTargets(name, "logits", "V", logits, targets); err != nil {
		return nil, nil, err
	}
	vocab := logits.Shape()[logits.Dims()-1]
	if err := c.check(name, vocab, logits, targets); err != nil {
		return nil, nil, err
	}
	if mean, err = ByDtype(logits, crossEntropy[float32], crossEntropy[float64])(e, logits, targets, c); err != nil {
		return nil, nil, err
	}
	count, err = ByDtype(logits, countTargets[float32], countTargets[float64])(e, name, vocab, targets, c)
	return mean, count, err
}

// countTargets returns the sum of the weights that CrossEntropy gives to the targets.
func countTargets[F kernel.Float](e *Env, name string, vocab int, targets *G.Node, c CrossEntropyOptions) (*G.Node, error) {
	n := volume(targets.Shape())
	w, classes, classWeights := newWeighting[F](n), make([]int, n), slices.Clone(c.ClassWeights)
	o := newScalar(fmt.Sprintf("%s count%v of %v(%d)%s", name, targets.Shape(), dtypeOf[F](), vocab, c.attrs()), func(values []G.Value) float64 {
		w.read(values, 1)
		weighClasses(w, classes, elements[int](values[0], n), classWeights, vocab)
		return w.total(1)
	})
	o.layer = name
	return e.apply(o, targets, c.Weights)
}

// check checks the options for the given number of classes. The weights must have the dtype of x.
func (c CrossEntropyOptions) check(name string, vocab int, x, targets *G.Node) error {
	if !(c.LabelSmoothing >= 0 && c.LabelSmoothing <= 1) {
		return fmt.Errorf("%s: LabelSmoothing must be from 0 to 1, got %v", name, c.LabelSmoothing)
	}
	if c.ClassWeights != nil && len(c.ClassWeights) != vocab {
		return fmt.Errorf("%s: ClassWeights must have one weight for each of the %d classes, got %d", name, vocab, len(c.ClassWeights))
	}
	for i, w := range c.ClassWeights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("%s: the weight of class %d is %v: a weight must be at least 0, and finite as a float32", name, i, w)
		}
	}
	if c.Weights == nil {
		return nil
	}
	return cmp.Or(sameDtype(name, "the weights", c.Weights, "the rows", x), hasShape(name, "the weights", c.Weights, targets.Shape()...))
}

// attrs describes the options for the name of an op.
func (c CrossEntropyOptions) attrs() (attrs string) {
	if c.LabelSmoothing > 0 {
		attrs += fmt.Sprintf(" smoothed by %v", c.LabelSmoothing)
	}
	if c.ClassWeights != nil { // a hash, as the list may be long
		attrs += fmt.Sprintf(" of classes weighted %x", sha256.Sum256(fmt.Append(nil, c.ClassWeights)))
	}
	return attrs
}

// checkTargets checks that logits have shape (…, V), and that targets have dtype int and the same shape without V. The
// arguments what and axis are "logits" and "V", or other names.
func checkTargets(name, what, axis string, logits, targets *G.Node) error {
	if err := CheckFloat(name, "the "+what, logits); err != nil {
		return err
	}
	s := logits.Shape()
	if len(s) < 2 {
		return fmt.Errorf("%s: the %s must have shape (…, %s), with one row per target, got %v", name, what, axis, s)
	}
	if targets.Dtype() != tensor.Int || !slices.Equal(targets.Shape(), s[:len(s)-1]) {
		return fmt.Errorf("%s: the targets must be int of shape %v, got %v of shape %v", name, s[:len(s)-1], targets.Dtype(), targets.Shape())
	}
	return nil
}

func crossEntropy[F kernel.Float](e *Env, logits, targets *G.Node, c CrossEntropyOptions) (*G.Node, error) {
	const name = "cross-entropy"
	shape := logits.Shape()
	n, vocab := rows(shape)
	losses := make([]F, n) // per position
	logSums := make([]float64, n)
	classes := make([]int, n) // the targets, or −1 where the weight is 0
	w := newWeighting[F](n)
	classWeights := slices.Clone(c.ClassWeights)

	attrs := fmt.Sprint(shape) + c.attrs()
	o := newScalar(name+attrs, func(values []G.Value) F {
		logits := elements[F](values[0], n*vocab)
		targets := elements[int](values[1], n)
		w.read(values, 2)
		weighClasses(w, classes, targets, classWeights, vocab)
		kernel.CrossEntropy(e.Cores, losses, logSums, logits, classes, vocab, F(c.LabelSmoothing))
		var sum float64
		for i, l := range losses {
			sum += float64(w.values[i]) * float64(l)
		}
		return F(w.mean(sum, 1))
	})
	o.layer, o.shared = name, classes
	o.wrt, o.grad = 1, func(nodes G.Nodes, out, g *G.Node) (G.Nodes, error) {
		d := newOp(name+".dlogits"+attrs, shape, func(d []F, values []G.Value) {
			logits, g := read2[F](values, n*vocab, 1)
			kernel.CrossEntropyGrad(e.Cores, d, logSums, logits, classes, vocab, F(c.LabelSmoothing), w.gradient(g[0]))
		})
		// The loss is among the inputs, so that it runs first: it fills logSums, classes and w.
		return one(e.apply(d, nodes[0], g, out))
	}
	return e.apply(o, logits, targets, c.Weights)
}

// Predicted returns the class with the largest of the V logits of each position: the first one if there are several. It
// is −1 if a logit is NaN, or if the position has no weight in loss, the CrossEntropy of these logits. The result has
// dtype int and the shape of the loss's targets.
func Predicted(e *Env, logits, loss *G.Node) (*G.Node, error) {
	return ByDtype(logits, predicted[float32], predicted[float64])(e, logits, loss)
}

func predicted[F kernel.Float](e *Env, logits, loss *G.Node) (*G.Node, error) {
	n, vocab := rows(logits.Shape())
	o := newInts(fmt.Sprint("predicted", logits.Shape()), logits.Shape()[:logits.Dims()-1], func(ids []int, values []G.Value) {
		copy(ids, loss.Op().(*op).shared.([]int))
		kernel.Largest(e.Cores, ids, elements[F](values[0], n*vocab), vocab)
	})
	o.after = 1
	return e.apply(o, logits, loss)
}

// weighClasses multiplies each position's weight by the weight of its target's class. If a target is below 0, its
// weight becomes 0. Then weighClasses sets classes to the targets, or to −1 where the weight is 0.
func weighClasses[F kernel.Float](w *weighting[F], classes, targets []int, classWeights []float64, vocab int) {
	for i, t := range targets {
		switch {
		case t < 0 || w.values[i] == 0:
			w.values[i] = 0
		case t >= vocab:
			failClass(t, i, vocab)
		case classWeights != nil:
			w.values[i] *= F(classWeights[t])
		}
		if classes[i] = t; w.values[i] == 0 {
			classes[i] = -1
		}
	}
}

func failClass(target, position, vocab int) {
	fail("target %d at position %d isn't one of %d classes (a target below 0 is ignored)", target, position, vocab)
}
