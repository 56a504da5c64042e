package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repeat writes a loop that runs body n times. n may be 0; the loop counts it down.
func (v *isa) repeat(n reg.GPVirtual, body func()) {
	loop, done := v.label("row"), v.label("rows")
	Label(loop)
	SUBQ(U8(1), n)
	JL(LabelRef(done))
	body()
	JMP(LabelRef(loop))
	Label(done)
}

func (v *isa) rows() {
	v.function("addRow", "m, row []F, rows int)", "adds row to each row of m.")
	m, row, n, rows := ptr("m"), ptr("row"), size("row"), word("rows")
	v.setMask(n)
	v.inBytes(n)
	v.repeat(rows, func() {
		v.each(n, 2, func(s span) {
			for u := range s.vecs {
				d := s.get(m, u)
				if s.part {
					v.add(s.get(row, u), d, d)
				} else {
					v.add(s.mem(row, u), d, d)
				}
				s.put(d, m, u)
			}
		})
		ADDQ(n, m)
	})
	end()

	v.function("sumRows", "sum, m []F, rows, stride int)", "sets sum to the sum of the rows of m, which are stride elements apart.")
	sum, n := ptr("sum"), size("sum")
	m, rows, stride := ptr("m"), word("rows"), word("stride")
	v.setMask(n)
	v.inBytes(n)
	v.inBytes(stride)
	addr, left := GP64(), GP64()
	v.each(n, 8, func(s span) {
		acc := several(s.vecs, v.zero)
		MOVQ(m, addr)
		MOVQ(rows, left)
		v.repeat(left, func() {
			for u := range s.vecs {
				if s.part {
					v.add(s.get(addr, u), acc[u], acc[u])
				} else {
					v.add(s.mem(addr, u), acc[u], acc[u])
				}
			}
			ADDQ(stride, addr)
		})
		for u := range s.vecs {
			s.put(acc[u], sum, u)
		}
	})
	end()
}

// copyRows writes a copy of rows at any distances.
func (v *isa) copyRows() {
	v.function("copyRows", "dst, src []F, rows, width, dstStride, srcStride int)", "copies rows of width elements. Strides are distances between rows.")
	dst, src, rows, n := ptr("dst"), ptr("src"), word("rows"), word("width")
	dstStride, stride := word("dstStride"), word("srcStride")
	v.setMask(n)
	v.inBytes(n)
	v.inBytes(dstStride)
	v.inBytes(stride)
	v.repeat(rows, func() {
		v.each(n, 2, func(s span) {
			for u := range s.vecs {
				s.put(s.get(src, u), dst, u)
			}
		})
		ADDQ(dstStride, dst)
		ADDQ(stride, src)
	})
	end()
}

// expShift writes expShift or, if it stores nothing, expSum.
func (v *isa) expShift(stores bool) {
	var dst reg.GPVirtual
	if stores {
		v.function("expShift", "dst, src []F, shift F) F", "sets dst to exp(src − shift) and returns its sum.")
		dst = ptr("dst")
	} else {
		v.function("expSum", "src []F, shift F) F", "returns Σ exp(src − shift).")
	}
	src, n := ptr("src"), size("src")
	shift := v.arg("shift")
	v.setMask(n)
	v.inBytes(n)
	ret(v.expLoop(n, src, shift, dst, stores))
}

// softmax writes the function for the softmax of a row.
func (v *isa) softmax() {
	v.function("softmax", "w, scores []F) F", "sets w to exp(scores − m)/Σ exp(scores − m) and returns m, the largest score. If m\nisn't finite, w is left unchanged.")
	w, scores, n := ptr("w"), ptr("scores"), size("scores")
	v.setMask(n)
	v.inBytes(n)
	general := v.label("general")
	CMPQ(n, U8(v.bytes))
	JGE(LabelRef(general))
	v.softmaxShort(scores, w)
	Label(general)
	m := v.maxLoop(n, scores)
	v.returnUnlessFinite(m)
	sum := v.expLoop(n, scores, m, w, true)
	inv := v.load(v.constant(1))
	v.div(sum, inv, inv)
	v.each(n, 1, func(s span) {
		for u := range s.vecs {
			d := s.get(w, u)
			v.mul(inv, d, d)
			s.put(d, w, u)
		}
	})
	end()
}

// softmaxGrad writes the gradient of the softmax of rows.
func (v *isa) softmaxGrad() {
	v.function("softmaxGrad", "ds, w, g []F, width int)", "sets each row of ds, of width elements, to w·(g − Σ w·g), where 0 times NaN or infinity is 0.")
	ds, left, w, g, width := ptr("ds"), size("ds"), ptr("w"), ptr("g"), word("width")
	v.setMask(width)
	v.inBytes(width)
	v.inBytes(left)
	zero := v.zero()
	loop, done := v.label("row"), v.label("rows")
	Label(loop)
	SUBQ(width, left)
	JL(LabelRef(done))
	acc := several(2, v.r)
	for _, a := range acc {
		v.clear(a)
	}
	v.each(width, 2, func(s span) {
		for u := range s.vecs {
			p, d := s.get(w, u), s.get(g, u)
			x := v.r()
			v.mul(p, d, x)
			v.keepWhere(notEqual, zero, p, x)
			v.keepWhere(notEqual, zero, d, x)
			v.add(x, acc[u], acc[u])
		}
	})
	dot := v.reduce(v.add, acc...)
	v.each(width, 1, func(s span) {
		for u := range s.vecs {
			p, d := s.get(w, u), s.get(g, u)
			x := v.r()
			v.sub(dot, d, d)
			v.mul(p, d, x)
			v.keepWhere(notEqual, zero, p, x)
			v.keepWhere(notEqual, zero, d, x)
			s.put(x, ds, u)
		}
	})
	ADDQ(width, ds)
	ADDQ(width, w)
	ADDQ(width, g)
	JMP(LabelRef(loop))
	Label(done)
	end()
}

// expLoop returns the sum of exp(src − shift). If stores is set, it stores the terms in dst.
func (v *isa) expLoop(n, src reg.GPVirtual, shift reg.VecVirtual, dst reg.GPVirtual, stores bool) reg.VecVirtual {
	acc := v.partials(2)
	e := v.newExp()
	v.each(n, 2, func(s span) {
		for u := range s.vecs {
			x := s.get(src, u)
			v.sub(shift, x, x)
			p := e.value(x)
			if stores {
				s.put(p, dst, u)
			}
			s.zeroPast(p)
			v.add(p, acc[u], acc[u])
		}
	})
	return v.reduce(v.add, acc...)
}

// softmaxShort writes code that computes the softmax of a row in registers and returns. The row must fit into one
// vector.
func (v *isa) softmaxShort(scores, w reg.GPVirtual) {
	offset := GP64()
	XORQ(offset, offset)
	s := span{v, 1, true, offset}
	largest, odd := several(1, func() reg.VecVirtual { return v.load(v.lowest()) }), several(1, v.zero)
	v.maxStep(s, scores, largest, odd)
	m := v.maxOf(largest, odd)
	v.returnUnlessFinite(m)
	x := s.get(scores, 0)
	v.sub(m, x, x)
	p := v.newExp().value(x)
	s.zeroPast(p)
	sum := v.r()
	v.move(p, sum)
	v.div(v.reduce(v.add, sum), p, p)
	s.put(p, w, 0)
	end()
}

// returnUnlessFinite writes code that returns m if m isn't finite.
func (v *isa) returnUnlessFinite(m reg.VecVirtual) {
	Store(m.AsX(), ReturnIndex(0))
	finite := v.label("finite")
	difference := v.r()
	v.sub(m, m, difference)
	VUCOMISS(difference.AsX(), difference.AsX())
	JPC(LabelRef(finite))
	end()
	Label(finite)
}
