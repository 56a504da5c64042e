//go:build amxmodel

package kernel

// With the build tag amxmodel, large products of float32 use the matrix unit in Go. It is for tests of the packages
// above, on machines without a matrix unit.
func init() { inUse = amxModelSet() }
