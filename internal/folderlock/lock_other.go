//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package folderlock

// take returns a lock without effect, because this system has no locks that end with their process.
func take(string) (*Lock, error) {
	return &Lock{func() bool { return true }, func() {}}, nil
}
