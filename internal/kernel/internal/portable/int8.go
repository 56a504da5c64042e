package portable

// Int8Columns is the number of columns that Int8Dots takes at once.
const Int8Columns = 32

// Int8Dots computes y[i,j] = x[i]·w[j]·wScales[j]·xScales[i]. The rows of x and w have stride numbers, a multiple of
// Int8Columns, and the rows of y begin ldy numbers apart. The last two arguments are for assembly.
//
// The products are added in 16 sums: sum s has those of columns 2s and 2s+1 of every 32. The sums become float32, and
// are added in a tree: sum s and s+8, then s and s+4, then neighbours, then both. The scales come last, wScales first.
func Int8Dots(y []float32, ldy int, w []int8, x []int16, stride int, wScales, xScales []float32, _, _ int) {
	for j, wScale := range wScales {
		row := w[j*stride:][:stride]
		for i, xScale := range xScales {
			y[i*ldy+j] = float32(int8Dot(row, x[i*stride:][:stride])*wScale) * xScale
		}
	}
}

// int8Dot returns the product of two rows. It computes four sums at a time, which stay in registers.
func int8Dot(w []int8, x []int16) float32 {
	var sums [16]int32
	for s := 0; s < len(sums); s += 4 {
		var s0, s1, s2, s3 int32
		for p := 2 * s; p+8 <= len(w) && p+8 <= len(x); p += Int8Columns {
			a, b := (*[8]int8)(w[p:]), (*[8]int16)(x[p:])
			s0 += int32(a[0])*int32(b[0]) + int32(a[1])*int32(b[1])
			s1 += int32(a[2])*int32(b[2]) + int32(a[3])*int32(b[3])
			s2 += int32(a[4])*int32(b[4]) + int32(a[5])*int32(b[5])
			s3 += int32(a[6])*int32(b[6]) + int32(a[7])*int32(b[7])
		}
		sums[s], sums[s+1], sums[s+2], sums[s+3] = s0, s1, s2, s3
	}
	var u [4]float32
	for s := range u {
		u[s] = float32(sums[s]) + float32(sums[s+8]) + (float32(sums[s+4]) + float32(sums[s+12]))
	}
	return u[0] + u[1] + (u[2] + u[3])
}
