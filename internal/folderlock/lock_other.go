//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package folderlock

// take keeps nobody out: there are no locks here that die with their process.
func take(string) (*Lock, error) {
	return &Lock{func() bool { return true }, func() {}}, nil
}
