package kernel

import (
	"reflect"
	"testing"
)

// use makes everything be computed with an instruction set until the test ends.
func use(t testing.TB, s *instructionSet) {
	old := inUse
	t.Cleanup(func() { inUse = old })
	inUse = s
}

// eachSet runs a test with every instruction set that this processor has, and says which ones it lacks.
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

// eachBody runs a test with every instruction set that this processor has, for both types.
func eachBody(t *testing.T, test32, test64 func(t *testing.T)) {
	eachSet(t, func(t *testing.T) {
		t.Run("float32", test32)
		t.Run("float64", test64)
	})
}

// TestTables looks at the tables of every instruction set, whether this processor can run it or not: no row is empty,
// and the assembly has a row of its own wherever it is meant to.
func TestTables(t *testing.T) {
	inGo := map[string]bool{ // in float64, which training doesn't need
		"gelu": true, "geluGrad": true, "geluTanh": true, "geluTanhGrad": true, "rotatePairs": true, "dropout": true,
	}
	for _, s := range instructionSets {
		t.Run(s.name, func(t *testing.T) {
			own := s.name != "portable"
			checkTable(t, s.f32.vectorTable, vectorPortable[float32](), func(string) bool { return own })
			checkTable(t, s.f64.vectorTable, vectorPortable[float64](), func(row string) bool { return own && !inGo[row] })
			checkTiles(t, s.f32.tiles, own)
			checkTiles(t, s.f64.tiles, own)
		})
	}
}

// checkTable fails where a row is empty, and where it isn't the assembly's own just because it should be.
func checkTable(t *testing.T, table, portable any, own func(row string) bool) {
	t.Helper()
	rows, inGo := reflect.ValueOf(table), reflect.ValueOf(portable)
	for i := range rows.NumField() {
		name := rows.Type().Field(i).Name
		if rows.Field(i).IsNil() {
			t.Errorf("%v has no %s", rows.Type(), name)
		} else if is := rows.Field(i).Pointer() != inGo.Field(i).Pointer(); is != own(name) {
			t.Errorf("%v: %s is of the instruction set's own: %t, want %t", rows.Type(), name, is, own(name))
		}
	}
}

// checkTiles fails where a size is missing, or a function is.
func checkTiles[F Float](t *testing.T, g gemmTiles[F], own bool) {
	t.Helper()
	for name, size := range map[string]int{"rows": g.rows, "cols": g.cols, "lanes": g.lanes, "depth": g.depth, "band": g.band, "slab": g.slab} {
		if size < 1 {
			t.Errorf("%T: %s is %d", g, name, size)
		}
	}
	if g.tile == nil || (g.packRows != nil) != own || (g.packTransposed != nil) != own {
		t.Errorf("%T lacks a function", g)
	}
}
