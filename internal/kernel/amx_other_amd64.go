//go:build !linux && !noasm

package kernel

// amxPermitted returns false: we know how to get the permission to use AMX only on Linux.
func amxPermitted() bool { return false }
