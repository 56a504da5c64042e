//go:build amxmodel

package kernel

var withUnit, withoutUnit = amxModelSet(), inUse

// With the build tag amxmodel, all products of float32 use the matrix unit in Go, whatever their size. It is for tests
// of the packages above, on machines without a matrix unit.
func init() {
	withUnit.amx3.pays = func(m, n, k int) bool { return true }
	withUnit.amx1.pays = withUnit.amx3.pays
	UseMatrixUnit(true)
}

// UseMatrixUnit chooses between the matrix unit in Go and multiply-adds. No product may run at the same time.
func UseMatrixUnit(on bool) {
	if inUse = withoutUnit; on {
		inUse = withUnit
	}
}
