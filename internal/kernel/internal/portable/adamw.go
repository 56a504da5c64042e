package portable

import "math"

// AdamW updates weights and running means by AdamW's rule.
func AdamW[F Float](w, g, first, second []F, f *[9]F) {
	scale, b1, c1, b2, c2, keep, rate, root, eps := f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]
	for i, d := range g {
		d *= scale
		m := b1*first[i] + c1*d
		v := b2*second[i] + c2*(d*d)
		first[i], second[i] = m, v
		w[i] = keep*w[i] - rate*m/(F(math.Sqrt(float64(v)))*root+eps)
	}
}
