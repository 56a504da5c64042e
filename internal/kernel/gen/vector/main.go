// Command vector writes package kernel's functions on slices in assembly, one family per file, and the tables that hold
// all of them. Each function has a description here. Its Go version is in package portable, and its name begins with a
// capital there.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

var (
	family         = flag.String("family", "", "`name` of the family of functions to write to the file -out (default: write only the tables)")
	table          = flag.String("table", "", "`file` for the type of the tables and the table of Go functions")
	assemblyTables = flag.String("tables", "", "`file` for the tables of assembly functions")
)

// families lists the functions by the file that they are written to.
var families = []struct {
	name  string
	write func(v *isa)
}{
	{"elementwise", func(v *isa) {
		v.elementwise()
		v.sums()
		v.rows()
		if v.bits == 32 {
			v.hasNaN()
			v.sumSquares()
			v.copyRows()
			v.adamW()
			v.rotate()
			v.rotatePairs()
			v.dropout()
		}
	}},
	{"softmax", func(v *isa) {
		v.expShift(true)
		if v.bits == 32 {
			v.expShift(false)
			v.softmax()
			v.softmaxGrad()
			v.scoreGrad()
			v.masks()
		}
	}},
	{"norm", func(v *isa) {
		v.layerNorm()
		v.layerNormGrad()
		v.rmsNorm()
		v.rmsNormGrad()
	}},
	{"activation", func(v *isa) {
		if v.bits == 32 {
			v.activations()
			v.softcap()
		}
	}},
}

func main() {
	flag.Parse()
	ConstraintExpr("!noasm")
	declareTailMasks()
	known := *family == ""
	for _, v := range []*isa{ // float64 is mostly for gradient checks, for which AVX2 and Go are fast enough
		{name: "AVX512", bits: 32, bytes: 64, lanes: 16},
		{name: "AVX2", bits: 32, bytes: 32, lanes: 8},
		{name: "AVX2", bits: 64, bytes: 32, lanes: 4},
	} {
		for _, f := range families {
			if *family == "" || *family == f.name {
				f.write(v)
				known = true
			}
		}
	}
	switch {
	case !known:
		log.Fatalf("there is no family %q", *family)
	case *family != "":
		Generate()
	default:
		writeTable(*table)
		writeAssemblyTables(*assemblyTables)
	}
}
