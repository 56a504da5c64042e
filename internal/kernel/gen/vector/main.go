// Command vector writes package kernel's functions on slices in assembly, and the tables that hold them. What each
// computes is said in its comment and, in Go, by the function named so, with "Portable" after it.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
)

var (
	table          = flag.String("table", "", "`file` for the table's type and its portable rows")
	assemblyTables = flag.String("tables", "", "`file` for the tables of the assembly")
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
	writeTable(*table)
	writeAssemblyTables(*assemblyTables)
}
