//go:build !unix

package atomicfile

// syncFolder does nothing: this system can't sync a folder.
func syncFolder(string) error { return nil }
