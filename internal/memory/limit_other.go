//go:build !linux

package memory

// limit returns the bytes of memory that the machine has, which nothing is known to bound.
func limit() (int, string) { return unknown, "" }
