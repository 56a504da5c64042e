// Command vector writes the assembly of package kernel's elementwise work, sums and rows. What each function computes is
// said in its comment and, in Go, by the function of the same name in the portable body.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("!noasm")
	declareTailMasks()
	for _, bits := range []int{32, 64} {
		for _, v := range []*isa{
			{name: "AVX512", bits: bits, bytes: 64, lanes: 512 / bits},
			{name: "AVX2", bits: bits, bytes: 32, lanes: 256 / bits},
		} {
			v.elementwise()
			v.sums()
			v.rows()
			v.softmax()
			v.layerNorm()
			v.layerNormGrad()
			v.rmsNorm()
			v.rmsNormGrad()
			v.adamW()
			v.activations()
			v.softcap()
			v.scoreGrad()
			v.masks()
			v.rotate()
			if bits == 32 {
				v.rotatePairs()
				v.dropout()
			}
		}
	}
	Generate()
}
