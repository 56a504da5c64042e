package kernel

import "math"

// What isn't finite takes this way. The tiles multiply whatever is there, so that a NaN or an infinity in a masked key, or
// in a query that no gradient asks about, turns zeros into NaN. Where a result has a NaN, all is computed again with 0
// for what isn't finite, and the queries for which it does count are then computed one by one, skipping zeros. So what
// doesn't count leaves no trace, not even another order of summation.

// redoForward is forward for operands that aren't finite.
func (a *Attention[F]) redoForward() {
	q, k, v := a.q, a.k, a.v
	touched := a.touched(false)
	a.q.Data, a.k.Data, a.v.Data = cleaned(q.Data), cleaned(k.Data), cleaned(v.Data)
	a.forward()
	a.q, a.k, a.v = q, k, v
	weights := make([]F, a.Mask.Shape[3])
	a.eachTouched(touched, func(b, h, t int) {
		out := a.out.from(b, h, t)[:a.Value]
		clear(out)
		a.lse[a.row(b, h, t)] = a.weights(weights, b, h, t)
		for j, w := range weights {
			skipAxpy(out, w, a.v.from(b, h, j))
		}
	})
}

// redoBackward is backward for operands that aren't finite.
func (a *Attention[F]) redoBackward() {
	q, k, v, dout := a.q, a.k, a.v, a.dout
	touched := a.touched(true)
	a.q.Data, a.k.Data, a.v.Data, a.dout.Data = cleaned(q.Data), cleaned(k.Data), cleaned(v.Data), cleaned(dout.Data)
	a.dead = touched
	a.backward()
	a.dead = nil
	a.q, a.k, a.v, a.dout = q, k, v, dout
	weights, grads := make([]F, a.Mask.Shape[3]), make([]F, a.Mask.Shape[3])
	a.eachTouched(touched, func(b, h, t int) {
		g := a.dout.from(b, h, t)[:a.Value]
		if allZero(g) {
			return
		}
		a.weights(weights, b, h, t)
		var less F
		for j, w := range weights {
			if w != 0 {
				grads[j] = skipDot(g, a.v.from(b, h, j))
				skipAxpy(a.dv.from(b, h, j)[:a.Value], w, g)
				if grads[j] != 0 {
					less += w * grads[j]
				}
			}
		}
		for j, w := range weights {
			d := grads[j] - less
			if w == 0 || d == 0 {
				continue
			}
			d *= w
			if a.dbias != nil {
				a.dbias[broadcastRow(a.Mask.BiasShape, b, h, t)+j] += d
			}
			skipAxpy(a.dq.from(b, h, t)[:a.Width], a.Scale*d, a.k.from(b, h, j))
			skipAxpy(a.dk.from(b, h, j)[:a.Width], a.Scale*d, a.q.from(b, h, t))
		}
	})
}

// touched tells of every query whether something counts for it that isn't finite: itself, or a key, value or bias
// that it sees; going backward, its output's gradient or the sum of its weights too.
func (a *Attention[F]) touched(backward bool) []bool {
	touched := make([]bool, a.heads()*a.Mask.Shape[2])
	bad := make([]bool, a.Mask.Shape[3])
	inf := F(math.Inf(-1))
	for head := range a.heads() {
		b, h := a.split(head)
		for j := range bad {
			bad[j] = !allFinite(a.k.from(b, h, j)[:a.Width]) || !allFinite(a.v.from(b, h, j)[:a.Value])
		}
		for t := range a.Mask.Shape[2] {
			row := a.row(b, h, t)
			is := !allFinite(a.q.from(b, h, t)[:a.Width])
			if backward {
				is = is || !allFinite(a.dout.from(b, h, t)[:a.Value]) || !finite(a.lse[row]) && a.lse[row] != inf
			}
			end, allow, bias := a.Mask.row(b, h, t)
			for j := 0; j < end && !is; j++ {
				if (allow == nil || allow[j]) && (bias == nil || bias[j] != inf) {
					is = bad[j] || bias != nil && !finite(bias[j])
				}
			}
			touched[row] = is
		}
	}
	return touched
}

// eachTouched calls body for the queries that are touched, in order.
func (a *Attention[F]) eachTouched(touched []bool, body func(b, h, t int)) {
	for row, is := range touched {
		if is {
			b, h := a.split(row / a.Mask.Shape[2])
			body(b, h, row%a.Mask.Shape[2])
		}
	}
}

// weights sets w to the weights of one query, and returns their log-sum-exp.
func (a *Attention[F]) weights(w []F, b, h, t int) F {
	inf := F(math.Inf(-1))
	q := a.q.from(b, h, t)[:a.Width]
	clear(w)
	end, _, _ := a.Mask.row(b, h, t)
	for j := range max(0, end) {
		w[j] = a.Scale * dotPortable(q, a.k.from(b, h, j)[:a.Width])
	}
	live := a.live(w, b, h, t, 0)
	most, sum := maxPortable(live), F(0)
	if most == inf {
		clear(live)
		return inf
	}
	for j, s := range live {
		if live[j] = 0; s != inf {
			live[j] = F(math.Exp(float64(s - most)))
			sum += live[j]
		}
	}
	for j := range live {
		if live[j] != 0 {
			live[j] /= sum
		}
	}
	return most + F(math.Log(float64(sum)))
}

// skipDot is Σ x·y, and skipAxpy adds a·x to y, where zero times anything is zero.
func skipDot[F Float](x, y []F) F {
	var sum F
	for i, v := range x {
		if v != 0 && y[i] != 0 {
			sum += v * y[i]
		}
	}
	return sum
}

func skipAxpy[F Float](y []F, a F, x []F) {
	for i := range y {
		if a != 0 && x[i] != 0 {
			y[i] += a * x[i]
		}
	}
}

func allFinite[F Float](x []F) bool {
	for _, v := range x {
		if !finite(v) {
			return false
		}
	}
	return true
}
