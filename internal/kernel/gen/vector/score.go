package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// scoreGrad writes the function for the gradient of attention's scores.
func (v *isa) scoreGrad() {
	v.function("scoreGrad", "g, p []F, less, tiny F)", "sets g to p·(g − less). It sets g and p to 0 where p is 0, or where p is below tiny and\ng − less is finite.")
	g, n, p := ptr("g"), size("g"), ptr("p")
	less, tiny, zero := v.arg("less"), v.arg("tiny"), v.zero()
	v.setMask(n)
	v.inBytes(n)
	v.each(n, 1, func(s span) {
		for u := range s.vecs {
			w, d, odd := s.get(p, u), s.get(g, u), v.r()
			v.sub(less, d, d)
			v.sub(d, d, odd) // NaN if d isn't finite
			v.mul(w, d, d)
			if v.wide() {
				VCMPPS(notLess, tiny, w, reg.K2)
				VCMPPS(unordered, odd, odd, reg.K3)
				KORW(reg.K2, reg.K3, reg.K2)
				VCMPPS(notEqual, zero, w, reg.K2, reg.K2)
				v.keep(reg.K2, w)
				v.keep(reg.K2, d)
			} else {
				keep, some := v.r(), v.r() // all ones where true
				v.do(VCMPPS, VCMPPD, notLess, tiny, w, keep)
				v.do(VCMPPS, VCMPPD, unordered, odd, odd, odd)
				v.do(VCMPPS, VCMPPD, notEqual, zero, w, some)
				v.or(odd, keep, keep)
				v.and(some, keep, keep)
				v.and(keep, w, w)
				v.and(keep, d, d)
			}
			s.put(w, p, u)
			s.put(d, g, u)
		}
	})
	end()
}
