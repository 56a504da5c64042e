//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package folderlock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// take locks the file at path. It retries if the file was removed or replaced meanwhile, because a lock on a removed
// file has no effect.
func take(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		held := func() bool {
			opened, err := f.Stat()
			current, other := os.Lstat(path)
			return err == nil && other == nil && os.SameFile(opened, current)
		}
		if err = lock(f); err == nil && held() {
			return &Lock{held, func() {
				if held() { // otherwise a new folder may be in this one's place, with its own lock file
					os.Remove(path) // before the unlock, because then another writer may lock the file; a file that remains is harmless
				}
				f.Close()
			}}, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil || errors.Is(err, errors.ErrUnsupported):
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("%s can't be locked: %w", f.Name(), err)
		}
	}
}
