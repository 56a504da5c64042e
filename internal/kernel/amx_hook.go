//go:build amxmodel

package kernel

// With the build tag amxmodel, all products of float32 use the matrix unit in Go, whatever their size. It is for tests
// of the packages above, on machines without a matrix unit.
func init() {
	inUse = amxModelSet()
	inUse.amx3.pays = func(m, n, k int) bool { return true }
	inUse.amx1.pays = inUse.amx3.pays
}
