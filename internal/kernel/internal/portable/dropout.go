package portable

// Dropout sets element i of keep to 0 where DropoutBits(i, key0, key1) < threshold, and to scale elsewhere.
func Dropout[F Float](keep []F, key0, key1, threshold uint32, scale F) {
	for i := range keep {
		if DropoutBits(uint32(i), key0, key1) < threshold {
			keep[i] = 0
		} else {
			keep[i] = scale
		}
	}
}

// DropoutStep is the difference between the counters of adjacent elements.
const DropoutStep = 0x9e3779b9

// DropoutBits returns the random bits of element i. It mixes a counter by multiplications and shifts (Ettinger,
// "hash-prospector", the mixer with the lowest known bias), and combines it with key1 in between.
func DropoutBits(i, key0, key1 uint32) uint32 {
	x := i*DropoutStep + key0
	x = (x ^ x>>16) * 0x21f0aaad
	x ^= key1
	x = (x ^ x>>15) * 0xd35a2d97
	return x ^ x>>15
}
