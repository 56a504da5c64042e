//go:build linux && amd64

package main

import (
	"encoding/binary"
	"math"
)

// multiply computes TDPBF16PS: it adds the products of a's rows, of pairs of bfloat16, with b's columns to the tile
// sums. The products of the first and of the second elements of pairs are added apart.
func (t *thread) multiply(sums, a, b int) {
	for m := range t.rows[sums] {
		var even, odd [16]float32
		for k := range t.width[a] / 4 {
			x, y := pair(t.tiles[a][m][4*k:])
			for n := range t.width[sums] / 4 {
				v, w := pair(t.tiles[b][k][4*n:])
				even[n] = rounded(float64(even[n]) + x*v)
				odd[n] = rounded(float64(odd[n]) + y*w)
			}
		}
		for n := range t.width[sums] / 4 {
			cell := t.tiles[sums][m][4*n:]
			c := zeroed(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
			c = rounded(float64(c) + float64(rounded(float64(even[n])+float64(odd[n]))))
			binary.LittleEndian.PutUint32(cell, math.Float32bits(c))
		}
	}
}

// pair returns two bfloat16. Their product is exact in float64.
func pair(b []byte) (x, y float64) {
	bits := binary.LittleEndian.Uint32(b)
	return float64(zeroed(math.Float32frombits(bits << 16))), float64(zeroed(math.Float32frombits(bits &^ 0xffff)))
}

const smallest = 0x1p-126 // the smallest normal float32

// zeroed returns x, or a zero of the same sign if x is subnormal.
func zeroed(x float32) float32 {
	if x < smallest && x > -smallest {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// rounded returns the float32 nearest to x, or a zero of the same sign if x is subnormal after rounding to 24 bits.
func rounded(x float64) float32 {
	if math.Abs(x) < smallest-smallest/(1<<25) {
		return float32(math.Copysign(0, x))
	}
	return float32(x)
}
