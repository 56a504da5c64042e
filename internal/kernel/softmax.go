package kernel

import (
	"math"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// MaskedSoftmax sets w to the softmax of the scores over the keys that the mask allows, for every query. A masked key
// has weight 0, even if its score is NaN. If all keys are masked for a query, all its weights are 0.
func MaskedSoftmax[F Float](cores int, w, scores []F, m Mask[F]) {
	runMasked(cores, softmaxLoop[F]{}, 2, w, scores, m)
}

type softmaxLoop[F Float] struct{}

func (softmaxLoop[F]) run(w *loopWork[F], lo, hi int) {
	keys := w.mask.Shape[3]
	for r := lo; r < hi; r++ {
		b, h, t := w.mask.query(r)
		w.mask.softmax(w.out[r*keys:][:keys], w.x[r*keys:][:keys], b, h, t)
	}
}

// softmax sets w to the softmax of one query's scores over the keys that it may attend to, and to 0 elsewhere.
func (m *Mask[F]) softmax(w, scores []F, b, h, t int) {
	start, end := m.span(b, t, t+1)
	clear(w[:start])
	clear(w[end:])
	w, scores = w[start:end], scores[start:end]
	if m.scored() {
		copy(w, scores)
		m.apply(w, b, h, t, start)
		scores = w
	}
	if largest := bodyOf[F]().softmax(w, scores); !portable.Finite(largest) {
		softmaxSpecial(w, scores, largest)
	}
}

// softmaxSpecial sets w to the softmax of scores whose largest isn't finite. The weight of −Inf is 0, even if all
// scores are −Inf. With NaN among the scores, the other weights are NaN. With +Inf as the largest score, its weight is
// NaN, and the others are 0.
func softmaxSpecial[F Float](w, scores []F, largest F) {
	for j, s := range scores {
		if w[j] = 0; s != F(math.Inf(-1)) && (largest != largest || s == largest) {
			w[j] = F(math.NaN())
		}
	}
}

// SoftmaxGrad sets ds, the gradient of the scores, to w·(g − Σ w·g) for each row of width elements. w holds the weights
// and g their gradient. Where w is 0, ds is 0, even if g is NaN.
func SoftmaxGrad[F Float](cores int, ds, w, g []F, width int) {
	runLoop[F](cores, softmaxGradLoop[F]{}, 2*len(ds), &loopWork[F]{n: len(ds) / width, step: rowsPerTask(width, 2), out: ds, x: w, y: g, width: width})
}

type softmaxGradLoop[F Float] struct{}

func (softmaxGradLoop[F]) run(w *loopWork[F], lo, hi int) {
	lo, hi = lo*w.width, hi*w.width
	w.body.softmaxGrad(w.out[lo:hi], w.x[lo:hi], w.y[lo:hi], w.width)
}

// MaskScores sets out to the scores plus the mask's bias and slopes, and to −Inf for masked keys.
func MaskScores[F Float](cores int, out, scores []F, m Mask[F]) {
	runMasked(cores, maskLoop[F]{}, 1, out, scores, m)
}

// runMasked runs a loop over the rows of scores of all queries. The argument cost is half the cost per score.
func runMasked[F Float](cores int, l loop[F], cost int, out, scores []F, m Mask[F]) {
	keys, rows := m.Shape[3], m.Shape[0]*m.Shape[1]*m.Shape[2]
	runLoop(cores, l, 2*cost*rows*keys, &loopWork[F]{n: rows, step: rowsPerTask(keys, cost), out: out, x: scores, mask: m})
}

type maskLoop[F Float] struct{}

func (maskLoop[F]) run(w *loopWork[F], lo, hi int) {
	keys := w.mask.Shape[3]
	inf := F(math.Inf(-1))
	for r := lo; r < hi; r++ {
		b, h, t := w.mask.query(r)
		start, end := w.mask.span(b, t, t+1)
		row := w.out[r*keys:][:keys]
		for j := range row {
			row[j] = inf
		}
		copy(row[start:end], w.x[r*keys+start:])
		w.mask.apply(row[start:end], b, h, t, start)
	}
}
