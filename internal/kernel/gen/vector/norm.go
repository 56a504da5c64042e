package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// moments returns the mean of a row and 1/√(variance + eps).
func (v *isa) moments(n, x reg.GPVirtual, width, eps reg.VecVirtual) (mean, inv reg.VecVirtual) {
	acc := v.partials(4)
	v.each(n, 4, func(s span) {
		for u := range s.vecs {
			if s.part {
				v.add(s.get(x, u), acc[u], acc[u])
			} else {
				v.add(s.mem(x, u), acc[u], acc[u])
			}
		}
	})
	mean = v.reduce(v.add, acc...)
	v.div(width, mean, mean)
	sq := v.partials(4)
	v.each(n, 4, func(s span) {
		for u := range s.vecs {
			d := s.get(x, u)
			v.sub(mean, d, d)
			s.zeroPast(d)
			v.fma(d, d, sq[u])
		}
	})
	variance := v.reduce(v.add, sq...)
	v.div(width, variance, variance)
	v.add(eps, variance, variance)
	v.sqrt(variance, variance)
	inv = v.load(v.constant(1))
	v.div(variance, inv, inv)
	return mean, inv
}

// invRMS returns 1/√(sum/width + eps), computed in float64.
func (v *isa) invRMS(sum, width, eps reg.VecVirtual) reg.VecVirtual {
	v.div(width, sum, sum)
	x, one, inv := sum.AsX(), XMM(), v.r()
	if v.bits == 32 {
		VCVTSS2SD(x, x, x)
	}
	VADDSD(eps.AsX(), x, x)
	VSQRTSD(x, x, x)
	VMOVSD((&isa{bits: 64}).constant(1), one)
	VDIVSD(x, one, one)
	if v.bits == 32 {
		VCVTSD2SS(one, one, one)
	}
	v.do(VBROADCASTSS, VBROADCASTSD, one, inv)
	return inv
}

func (v *isa) rmsNorm() {
	v.function("rmsNorm", "y, x, gamma []F, width F, eps float64, rows int)", "divides rows of x, of len(gamma) = width elements, by their root mean square, and multiplies\nby gamma.")
	y, x, gamma, n, rows := ptr("y"), ptr("x"), ptr("gamma"), size("gamma"), word("rows")
	width, eps := v.arg("width"), v.wideArg("eps")
	v.setMask(n)
	v.inBytes(n)
	v.repeat(rows, func() {
		sq := v.partials(4)
		v.each(n, 4, func(s span) {
			for u := range s.vecs {
				d := s.get(x, u)
				v.fma(d, d, sq[u])
			}
		})
		inv := v.invRMS(v.reduce(v.add, sq...), width, eps)
		v.each(n, 1, func(s span) {
			for u := range s.vecs {
				d := s.get(x, u)
				v.mul(inv, d, d)
				if s.part {
					v.mul(s.get(gamma, u), d, d)
				} else {
					v.mul(s.mem(gamma, u), d, d)
				}
				s.put(d, y, u)
			}
		})
		ADDQ(n, x)
		ADDQ(n, y)
	})
	end()
}

func (v *isa) rmsNormGrad() {
	v.function("rmsNormGrad", "dx, dgamma, x, gamma, g []F, width F, eps float64, rows int)", "sets dx and adds to dgamma for rows of len(gamma) = width elements.")
	dx, dgamma := ptr("dx"), ptr("dgamma")
	x, gamma, n, g, rows := ptr("x"), ptr("gamma"), size("gamma"), ptr("g"), word("rows")
	width, eps := v.arg("width"), v.wideArg("eps")
	v.setMask(n)
	v.inBytes(n)
	v.repeat(rows, func() {
		some, next := v.label("some"), v.label("next")
		v.jumpIfAny(n, g, some)
		v.each(n, 1, func(s span) { s.put(v.zero(), dx, 0) })
		JMP(LabelRef(next))
		Label(some)

		sq, dots := v.partials(2), v.partials(2)
		v.each(n, 2, func(s span) {
			for u := range s.vecs {
				d, dy := s.get(x, u), s.get(g, u)
				v.fma(d, d, sq[u])
				v.mul(s.get(gamma, u), dy, dy)
				v.fma(d, dy, dots[u])
			}
		})
		inv := v.invRMS(v.reduce(v.add, sq...), width, eps)
		mean := v.reduce(v.add, dots...)
		v.div(width, mean, mean)
		v.mul(inv, mean, mean)
		v.mul(inv, mean, mean)
		v.each(n, 1, func(s span) {
			for u := range s.vecs {
				d, dy, hat, acc := s.get(x, u), s.get(g, u), v.r(), s.get(dgamma, u)
				v.mul(inv, d, hat)
				v.fma(dy, hat, acc)
				s.put(acc, dgamma, u)
				v.mul(s.get(gamma, u), dy, dy)
				v.fnma(d, mean, dy)
				v.mul(inv, dy, dy)
				s.put(dy, dx, u)
			}
		})
		Label(next)
		ADDQ(n, x)
		ADDQ(n, g)
		ADDQ(n, dx)
	})
	end()
}

func (v *isa) layerNorm() {
	v.function("layerNorm", "y, x, gamma, beta []F, width, eps F, rows int)", "normalises rows of x, of len(gamma) = width elements, multiplies by gamma and\nadds beta, which may be nil.")
	y, x, gamma, n, beta, rows := ptr("y"), ptr("x"), ptr("gamma"), size("gamma"), ptr("beta"), word("rows")
	width, eps := v.arg("width"), v.arg("eps")
	v.setMask(n)
	v.inBytes(n)
	v.repeat(rows, func() {
		mean, inv := v.moments(n, x, width, eps)
		without, done := v.label("without"), v.label("normalised")
		TESTQ(beta, beta)
		JZ(LabelRef(without))
		for _, add := range []bool{true, false} {
			v.each(n, 1, func(s span) {
				for u := range s.vecs {
					d := s.get(x, u)
					v.sub(mean, d, d)
					v.mul(inv, d, d)
					switch {
					case !add && s.part:
						v.mul(s.get(gamma, u), d, d)
					case !add:
						v.mul(s.mem(gamma, u), d, d)
					case s.part:
						v.mad(s.get(beta, u), s.get(gamma, u), d)
					default:
						v.mad(s.mem(beta, u), s.get(gamma, u), d)
					}
					s.put(d, y, u)
				}
			})
			if add {
				JMP(LabelRef(done))
				Label(without)
			}
		}
		Label(done)
		ADDQ(n, x)
		ADDQ(n, y)
	})
	end()
}

func (v *isa) layerNormGrad() {
	v.function("layerNormGrad", "dx, dgamma, dbeta, x, gamma, g []F, width, eps F, rows int)", "sets dx and adds to dgamma and dbeta for rows of len(gamma) = width elements.")
	dx, dgamma, dbeta := ptr("dx"), ptr("dgamma"), ptr("dbeta")
	x, gamma, n, g, rows := ptr("x"), ptr("gamma"), size("gamma"), ptr("g"), word("rows")
	width, eps := v.arg("width"), v.arg("eps")
	v.setMask(n)
	v.inBytes(n)
	v.repeat(rows, func() {
		some, next := v.label("some"), v.label("next")
		v.jumpIfAny(n, g, some)
		v.each(n, 1, func(s span) { s.put(v.zero(), dx, 0) })
		JMP(LabelRef(next))
		Label(some)

		mean, inv := v.moments(n, x, width, eps)
		sums, dots := v.partials(2), v.partials(2)
		v.each(n, 2, func(s span) {
			for u := range s.vecs {
				hat, dy := s.get(x, u), s.get(g, u)
				v.sub(mean, hat, hat)
				v.mul(inv, hat, hat)
				s.zeroPast(hat)
				acc := s.get(dgamma, u)
				v.fma(dy, hat, acc)
				s.put(acc, dgamma, u)
				acc = s.get(dbeta, u)
				v.add(dy, acc, acc)
				s.put(acc, dbeta, u)
				if s.part {
					v.mul(s.get(gamma, u), dy, dy)
				} else {
					v.mul(s.mem(gamma, u), dy, dy)
				}
				v.add(dy, sums[u], sums[u])
				v.fma(dy, hat, dots[u])
			}
		})
		sum, dot := v.reduce(v.add, sums...), v.reduce(v.add, dots...)
		v.div(width, sum, sum)
		v.div(width, dot, dot)
		v.each(n, 1, func(s span) {
			for u := range s.vecs {
				hat, d := s.get(x, u), s.get(g, u)
				v.sub(mean, hat, hat)
				v.mul(inv, hat, hat)
				if s.part {
					v.mul(s.get(gamma, u), d, d)
				} else {
					v.mul(s.mem(gamma, u), d, d)
				}
				v.sub(sum, d, d)
				v.fnma(hat, dot, d)
				v.mul(inv, d, d)
				s.put(d, dx, u)
			}
		})
		Label(next)
		ADDQ(n, x)
		ADDQ(n, g)
		ADDQ(n, dx)
	})
	end()
}

// jumpIfAny jumps to label if any element of x isn't zero.
func (v *isa) jumpIfAny(n, x reg.GPVirtual, label string) {
	bits := v.sign() - 1 // all bits except the sign
	v.each(n, 1, func(s span) {
		acc := s.get(x, 0)
		for u := 1; u < s.vecs; u++ {
			v.or(s.get(x, u), acc, acc)
		}
		if v.wide() {
			v.testAny(v.pattern(bits), acc)
			KORTESTW(reg.K2, reg.K2)
		} else {
			VPTEST(v.pattern(bits), acc)
		}
		JNZ(LabelRef(label))
	})
}
