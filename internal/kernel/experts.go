package kernel

import "github.com/heed-go/heed/internal/kernel/internal/portable"

// GatherRows copies row ids[i] of x to row i of out.
func GatherRows[F Float](cores int, out, x []F, ids []int, width int) {
	runRanges(cores, len(ids), rowsPerTask(width, 1), len(ids)*width, func(lo, hi int) {
		Gather(out[lo*width:hi*width], x, ids[lo:hi], width)
	})
}

// Combine sets row n of out to the sum of the rows places[n·top+i] of y, multiplied by shares[n·top+i]. If shares is
// nil, each share is 1.
func Combine[F Float](cores int, out, y, shares []F, places []int, top, width int) {
	runRanges(cores, len(places)/top, rowsPerTask(width*top, 1), len(places)*width, func(lo, hi int) {
		body := bodyOf[F]()
		for n := lo; n < hi; n++ {
			row := out[n*width:][:width]
			clear(row)
			for i, place := range places[n*top:][:top] {
				share := F(1)
				if shares != nil {
					share = shares[n*top+i]
				}
				body.axpy(row, y[place*width:][:width], share)
			}
		}
	})
}

// ScaleRows multiplies row i of x, which has width elements, by factors[i]. Zero times NaN or infinity is zero.
func ScaleRows[F Float](cores int, x []F, factors []F, width int) {
	runRanges(cores, len(factors), rowsPerTask(width, 1), len(x), func(lo, hi int) {
		body := bodyOf[F]()
		for i := lo; i < hi; i++ {
			row, factor := x[i*width:][:width], factors[i]
			if portable.Finite(factor) {
				body.scale(row, factor)
				continue
			}
			for j, v := range row {
				row[j] = portable.SkipProduct(v, factor)
			}
		}
	})
}

// RowDots adds the dot product of row i of x and of row i of y to out[i], where zero times any number is zero. If y has
// only one row, it is the row for all.
func RowDots[F Float](cores int, out, x, y []F, width int) {
	runRanges(cores, len(out), rowsPerTask(width, 1), len(x), func(lo, hi int) {
		body := bodyOf[F]()
		for i := lo; i < hi; i++ {
			x, y := x[i*width:][:width], y[i*width%len(y):][:width]
			dot := body.dot(x, y)
			if dot != dot {
				dot = portable.SkipDot(x, y)
			}
			out[i] += dot
		}
	})
}

// gateSlope is the factor of the gate in ClampedGate.
const gateSlope = 1.702

// ClampedGate sets y to (1 + b)·a·σ(1.702·a), element by element, where a is at most limit, and b from −limit to limit
// (gpt-oss, 2025).
func ClampedGate[F Float](cores int, y, a, b []F, limit F) {
	runElements(cores, len(y), geluCost, func(lo, hi int) {
		y, a, b := y[lo:hi], a[lo:hi], b[lo:hi]
		for i, v := range a {
			y[i] = gateSlope * min(v, limit)
		}
		bodyOf[F]().silu(y, y)
		for i, v := range b {
			y[i] *= (1 + max(-limit, min(v, limit))) / gateSlope
		}
	})
}

// ClampedGateGrad sets da and db to the gradients of ClampedGate, where g is the gradient of y. Where g is 0, both are
// 0, even if a or b is NaN.
func ClampedGateGrad[F Float](cores int, da, db, a, b, g []F, limit F) {
	runRanges(cores, len(g), grain/geluCost, 2*len(g)*geluCost, func(lo, hi int) {
		da, db, a, b, g := da[lo:hi], db[lo:hi], a[lo:hi], b[lo:hi], g[lo:hi]
		body := bodyOf[F]()
		for i, v := range b {
			da[i] = portable.SkipProduct(g[i], 1+max(-limit, min(v, limit)))
			db[i] = gateSlope * min(a[i], limit)
		}
		body.siluGrad(da, db, da)
		body.silu(db, db)
		for i, v := range b {
			if db[i] = portable.SkipProduct(g[i]/gateSlope, db[i]); v < -limit || v > limit {
				db[i] = 0
			}
			if a[i] > limit {
				da[i] = 0
			}
		}
	})
}
