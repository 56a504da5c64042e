//go:build !unix

package atomicfile

// syncFolder does nothing: a folder can't be synced here.
func syncFolder(string) error { return nil }
