package kernel

import (
	"reflect"
	"testing"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// use selects an instruction set until the test ends.
func use(t testing.TB, s *instructionSet) {
	old := inUse
	t.Cleanup(func() { inUse = old })
	inUse = s
}

// eachSet runs a test with every instruction set that this processor can run, and skips the others with a message.
func eachSet(t *testing.T, test func(t *testing.T)) {
	for _, s := range instructionSets {
		t.Run(s.name, func(t *testing.T) {
			if !s.runs {
				t.Skipf("this processor can't run %s", s.name)
			}
			use(t, s)
			test(t)
		})
	}
}

// eachBody runs tests with every instruction set that this processor can run, for both element types.
func eachBody(t *testing.T, test32, test64 func(t *testing.T)) {
	eachSet(t, func(t *testing.T) {
		t.Run("float32", test32)
		t.Run("float64", test64)
	})
}

// TestTables checks the tables of all instruction sets, even if this processor can't run them. No row may be empty, and
// every row must be in assembly unless it is known to be in Go.
func TestTables(t *testing.T) {
	inGo := map[string]bool{ // rows without assembly for float64; README.md says why
		"hasNaN": true, "sumSquares": true, "copyRows": true, "adamW": true, "rotate": true,
		"rotatePairs": true, "dropout": true, "softmaxGrad": true, "scoreGrad": true, "addSlope": true, "addBias": true,
		"forbid": true, "gelu": true, "geluGrad": true, "geluTanh": true,
		"geluTanhGrad": true, "softcap": true, "softcapGrad": true,
	}
	inNEON := map[string]bool{
		"add": true, "mul": true, "relu": true, "scale": true, "axpy": true, "maxOf": true, "dot": true, "dots": true,
		"expShift": true, "expSum": true, "softmax": true, "adamW": true,
	}
	for _, s := range instructionSets {
		t.Run(s.name, func(t *testing.T) {
			own32 := func(string) bool { return true }
			own64 := func(row string) bool { return !inGo[row] }
			none := func(string) bool { return false }
			packs := true
			switch s.name {
			case "neon":
				own32, own64, packs = func(row string) bool { return inNEON[row] }, none, false
			case "portable":
				own32, own64, packs = none, none, false
			}
			checkTable(t, s.f32.vectorTable, vectorPortable[float32](), own32)
			checkTable(t, s.f64.vectorTable, vectorPortable[float64](), own64)
			checkTiles(t, s.f32.tiles, packs)
			checkTiles(t, s.f64.tiles, packs)
			if b := s.bfloat16; b.tile == nil || b.round == nil || b.slab < 1 || b.band < 1 || b.depth < 1 || b.depth%portable.BFloat16Terms != 0 || bfloat16Band%b.rows != 0 {
				t.Errorf("products of bfloat16 lack a function or a size, or a size doesn't fit: %+v", b)
			}
		})
	}
}

// checkTable fails if a row is empty, or if a row is in assembly although own(row) is false, or the reverse.
func checkTable(t *testing.T, table, goTable any, own func(row string) bool) {
	t.Helper()
	rows, inGo := reflect.ValueOf(table), reflect.ValueOf(goTable)
	for i := range rows.NumField() {
		name := rows.Type().Field(i).Name
		if rows.Field(i).IsNil() {
			t.Errorf("%v has no %s", rows.Type(), name)
		} else if assembly := rows.Field(i).Pointer() != inGo.Field(i).Pointer(); assembly != own(name) {
			t.Errorf("%v: %s is in assembly: %t, want %t", rows.Type(), name, assembly, own(name))
		}
	}
}

// checkTiles fails if a size or a function is missing. If packs is false, the functions for packing must be nil.
func checkTiles[F Float](t *testing.T, g gemmTiles[F], packs bool) {
	t.Helper()
	for name, size := range map[string]int{"rows": g.rows, "cols": g.cols, "lanes": g.lanes, "depth": g.depth, "band": g.band, "slab": g.slab} {
		if size < 1 {
			t.Errorf("%T: %s is %d, want at least 1", g, name, size)
		}
	}
	if g.tile == nil || (g.packRows != nil) != packs || (g.packTransposed != nil) != packs {
		t.Errorf("%T lacks a function, or has functions for packing without assembly", g)
	}
}
