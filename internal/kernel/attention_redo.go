package kernel

import (
	"math"
	"slices"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// This file handles NaN and infinite operands. The tiles multiply everything that they read, so a NaN or an infinity in
// a masked key, or in a query whose output no loss uses, turns zeros into NaN. If a result holds NaN, everything is
// computed again with 0 in place of NaN and infinities. Then the queries that depend on NaN or infinities are computed
// one by one, without products with zero. So masked and unused values change no bit of the other results.

// redoForward does the work of forward for operands that hold NaN or infinities.
func (a *Attention[F]) redoForward() {
	q, k, v, distances := a.q, a.k, a.v, a.Distances
	touched := a.touched(false)
	a.Distances = distances.cleaned()
	a.q.Data, a.k.Data, a.v.Data = portable.Cleaned(q.Data), portable.Cleaned(k.Data), portable.Cleaned(v.Data)
	a.forward()
	a.q, a.k, a.v, a.Distances = q, k, v, distances
	weights, keep := make([]F, a.Mask.Shape[3]), a.keepAll()
	a.eachTouched(touched, func(b, h, t int) {
		out := a.out.from(b, h, t)[:a.Value]
		clear(out)
		a.lse[a.row(b, h, t)] = a.weights(weights, nil, b, h, t)
		a.keepRow(keep, b, h, t)
		for j, w := range weights {
			portable.SkipAxpy(out, portable.SkipProduct(w, keep[j]), a.v.from(b, h/a.perGroup(), j))
		}
	})
}

// redoBackward does the work of backward for operands that hold NaN or infinities.
func (a *Attention[F]) redoBackward() {
	q, k, v, dout, distances := a.q, a.k, a.v, a.dout, a.Distances
	touched := a.touched(true)
	a.Distances = distances.cleaned()
	a.q.Data, a.k.Data, a.v.Data, a.dout.Data = portable.Cleaned(q.Data), portable.Cleaned(k.Data), portable.Cleaned(v.Data), portable.Cleaned(dout.Data)
	a.dead = touched
	a.backward()
	a.dead = nil
	a.q, a.k, a.v, a.dout, a.Distances = q, k, v, dout, distances
	keys := a.Mask.Shape[3]
	weights, capped, grads, keep := make([]F, keys), make([]F, keys), make([]F, keys), a.keepAll()
	a.eachTouched(touched, func(b, h, t int) {
		g, group := a.dout.from(b, h, t)[:a.Value], h/a.perGroup()
		if portable.AllZero(g) {
			return
		}
		lse := a.weights(weights, capped, b, h, t)
		a.keepRow(keep, b, h, t)
		var less F
		for j, w := range weights {
			if w != 0 {
				grads[j] = portable.SkipProduct(portable.SkipDot(g, a.v.from(b, group, j)), keep[j])
				portable.SkipAxpy(a.dv.from(b, group, j)[:a.Value], portable.SkipProduct(w, keep[j]), g)
				less += portable.SkipProduct(w, grads[j])
			}
		}
		a.addSink(h, lse, less)
		for j, w := range weights {
			d := portable.SkipProduct(w, grads[j]-less)
			if d == 0 {
				continue
			}
			if a.dbias != nil {
				a.dbias[broadcastRow(a.Mask.BiasShape, b, h, t)+j] += d
			}
			if a.Score != nil {
				_, slope := a.Score(float64(capped[j]), h, a.Mask.position(b, t), j)
				d *= F(slope)
			}
			if a.Softcap > 0 {
				r := capped[j] / a.Softcap
				d *= (1 - r) * (1 + r)
			}
			portable.SkipAxpy(a.dq.from(b, h, t)[:a.Width], a.Scale*d, a.k.from(b, group, j))
			portable.SkipAxpy(a.dk.from(b, group, j)[:a.Width], a.Scale*d, a.q.from(b, h, t))
			if a.Distances != nil {
				a.distanceGrad(b, h, t, j, d)
			}
		}
	})
}

// keepAll returns the dropout factors of a query if nothing is dropped: all are 1.
func (a *Attention[F]) keepAll() []F { return slices.Repeat([]F{1}, a.Mask.Shape[3]) }

// keepRow sets keep to the dropout factors of one query's weights. Without dropout it does nothing.
func (a *Attention[F]) keepRow(keep []F, b, h, t int) {
	if a.drops() {
		a.fillDropout(bodyOf[F](), keep, b, h, t, 0)
	}
}

// touched reports for every query whether its result depends on NaN or an infinity. It checks the query, the slope and
// the sink of its head, and the visible keys, values, biases and vectors of distances, except values that dropout
// drops. If backward is true, it also checks the gradient of the output and the log-sum-exp.
func (a *Attention[F]) touched(backward bool) []bool {
	touched := make([]bool, a.heads()*a.Mask.Shape[2])
	badKey, badValue := make([]bool, a.Mask.Shape[3]), make([]bool, a.Mask.Shape[3])
	keep := a.keepAll()
	inf := F(math.Inf(-1))
	for head := range a.heads() {
		b, h := a.split(head)
		group := h / a.perGroup()
		for j := range badKey {
			badKey[j] = !portable.AllFinite(a.k.from(b, group, j)[:a.Width])
			badValue[j] = !portable.AllFinite(a.v.from(b, group, j)[:a.Value])
		}
		for t := range a.Mask.Shape[2] {
			row := a.row(b, h, t)
			bad := !portable.AllFinite(a.q.from(b, h, t)[:a.Width]) || a.Mask.Slopes != nil && !portable.Finite(a.Mask.Slopes[h])
			bad = bad || a.badSink(h)
			if backward {
				bad = bad || !portable.AllFinite(a.dout.from(b, h, t)[:a.Value]) || !portable.Finite(a.lse[row]) && a.lse[row] != inf
			}
			a.keepRow(keep, b, h, t)
			allow, bias := a.Mask.Allow, a.Mask.Bias
			if allow != nil {
				allow = allow[broadcastRow(a.Mask.AllowShape, b, h, t):]
			}
			if bias != nil {
				bias = bias[broadcastRow(a.Mask.BiasShape, b, h, t):]
			}
			start, end := a.Mask.span(b, t, t+1)
			d, blocks, p := a.Mask.Documents, a.Mask.Blocks, a.Mask.position(b, t)
			for j := start; j < end && !bad; j++ {
				if (allow == nil || allow[j]) && (d == nil || d.same(b, p, j)) && (blocks == nil || blocks.sees(p, j)) && (bias == nil || bias[j] != inf) {
					bad = badKey[j] || badValue[j] && keep[j] != 0 || bias != nil && !portable.Finite(bias[j]) || a.badDistance(b, h, t, j)
				}
			}
			touched[row] = bad
		}
	}
	return touched
}

// eachTouched calls do for the touched queries, in order.
func (a *Attention[F]) eachTouched(touched []bool, do func(b, h, t int)) {
	for row, bad := range touched {
		if bad {
			b, h := a.split(row / a.Mask.Shape[2])
			do(b, h, row%a.Mask.Shape[2])
		}
	}
}

// weights sets w to the weights of one query, before dropout, and returns the log-sum-exp of its scores. For capped,
// see maskRow.
func (a *Attention[F]) weights(w, capped []F, b, h, t int) F {
	inf := F(math.Inf(-1))
	q := a.q.from(b, h, t)[:a.Width]
	clear(w)
	start, end := a.Mask.span(b, t, t+1)
	for j := start; j < end; j++ {
		w[j] = a.Scale * portable.Dot(q, a.k.from(b, h/a.perGroup(), j)[:a.Width])
		if a.Distances != nil {
			w[j] += a.distanceScore(b, h, t, j)
		}
	}
	from, stop := a.maskRow(w, capped, b, h, t, 0)
	live := w[from:stop]
	largest, sum := portable.MaxOf(live), F(0)
	if largest == inf {
		clear(live)
		return inf
	}
	if a.Sinks != nil {
		largest = max(largest, a.Sinks[h])
		sum = F(math.Exp(float64(a.Sinks[h] - largest)))
	}
	for j, s := range live {
		if live[j] = 0; s != inf {
			live[j] = F(math.Exp(float64(s - largest)))
			sum += live[j]
		}
	}
	for j := range live {
		if live[j] != 0 {
			live[j] /= sum
		}
	}
	return largest + F(math.Log(float64(sum)))
}
