package portable

// Rotate turns vectors, stride elements apart, by the same angles. rows is their number. Each pair (u, v) becomes
// (u·cos − v·sin, v·cos + u·sin), with sin multiplied by sign. u is in the first half of the vector, v in the second.
func Rotate[F Float](y, x, cos, sin []F, sign F, rows, stride int) {
	n := len(cos)
	sin = sin[:n]
	for r := range rows {
		x1, y1 := x[r*stride:][:n], y[r*stride:][:n]
		x2, y2 := x[r*stride+n:][:n], y[r*stride+n:][:n]
		for i, c := range cos {
			u, v, s := x1[i], x2[i], sign*sin[i]
			y1[i], y2[i] = u*c-v*s, v*c+u*s
		}
	}
}

// RotatePairs is like Rotate, for pairs of adjacent elements.
func RotatePairs[F Float](y, x, cos, sin []F, sign F, rows, stride int) {
	sin = sin[:len(cos)]
	for r := range rows {
		x, y := x[r*stride:][:2*len(cos)], y[r*stride:][:2*len(cos)]
		for i, c := range cos {
			u, v, s := x[2*i], x[2*i+1], sign*sin[i]
			y[2*i], y[2*i+1] = u*c-v*s, v*c+u*s
		}
	}
}
