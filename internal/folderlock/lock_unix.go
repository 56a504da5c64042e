//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package folderlock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// take locks the file at path, and none that was there before: a lock on a removed file keeps nobody out.
func take(path string) (release func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		err = lock(f)
		if err == nil {
			var opened, there fs.FileInfo
			if opened, err = f.Stat(); err == nil {
				there, err = os.Lstat(path)
			}
			if err == nil && os.SameFile(opened, there) {
				return func() {
					os.Remove(path) // before others can have it; a file that stays does no harm
					f.Close()
				}, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
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
