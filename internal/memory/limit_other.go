//go:build !linux

package memory

// limit returns unknown, because this system's limits aren't known.
func limit() (int, string) { return unknown, "" }
