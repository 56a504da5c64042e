//go:build !linux

package testseed

// KeepInMemory does nothing: only Linux has a folder that is kept in memory.
func KeepInMemory() {}
