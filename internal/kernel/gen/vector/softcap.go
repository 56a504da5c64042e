package main

import "github.com/mmcloughlin/avo/reg"

// softcap writes the functions for c·tanh(x/c) and its gradient.
func (v *isa) softcap() {
	v.function("softcap", "y, x []F, c F)", "sets y to c·tanh(x/c).")
	y, n, x := ptr("y"), size("y"), ptr("x")
	c := v.arg("c")
	v.setMask(n)
	v.inBytes(n)
	e := v.boundedExp()
	v.each(n, 1, func(s span) {
		z := s.get(x, 0)
		v.div(c, z, z)
		z = v.tanh(e, z)
		v.mul(c, z, z)
		s.put(z, y, 0)
	})
	end()

	v.function("softcapGrad", "dx, y, g []F, c F)", "sets dx to g·(1 − (y/c)²), and to 0 where g is 0.")
	dx, n, y, g := ptr("dx"), size("dx"), ptr("y"), ptr("g")
	c = v.arg("c")
	v.setMask(n)
	v.inBytes(n)
	one, zero := v.load(v.constant(1)), v.zero()
	v.each(n, 1, func(s span) {
		for u := range s.vecs {
			r, d, less := s.get(y, u), s.get(g, u), v.r()
			v.div(c, r, r)
			v.sub(r, one, less)
			v.add(one, r, r)
			v.mul(r, less, r)
			v.mul(d, r, r)
			v.keepWhere(notEqual, zero, d, r)
			s.put(r, dx, u)
		}
	})
	end()
}

// tanh returns tanh(x). It computes tanh |x| = −e/(2 + e) with e = exp(−2·|x|) − 1, then sets the sign of x.
func (v *isa) tanh(e exponential, x reg.VecVirtual) reg.VecVirtual {
	const one = 10 // for larger |x|, the result is 1
	sign := v.sign()
	size := v.r()
	v.and(v.pattern(sign-1), x, size)
	v.min(size, v.load(v.constant(one)), size)
	v.mul(v.constant(-2), size, size)
	less, below := e.lessOne(size), v.r()
	v.add(v.constant(2), less, below)
	v.div(below, less, less)
	v.and(v.pattern(sign-1), less, less)
	v.and(v.pattern(sign), x, x)
	v.or(x, less, less)
	return less
}
