// Package folderlock allows a folder only one writer at a time.
package folderlock

import (
	"errors"
	"path/filepath"
)

// Name is the name of the lock file. The file exists while a folder is locked, and remains if the writer is killed.
const Name = ".heed.lock"

// ErrHeld means that another writer has locked the folder.
var ErrHeld = errors.New("another writer has locked the folder")

// ErrLost means that the locked folder, or its lock file, was moved, removed or replaced.
var ErrLost = errors.New("the folder, or its " + Name + ", was moved or removed")

// A Lock is the lock on a folder.
type Lock struct {
	held    func() bool
	release func()
}

// Check returns ErrLost if the lock no longer keeps other writers out, for example because a new folder has replaced
// the locked one.
func (l *Lock) Check() error {
	if !l.held() {
		return ErrLost
	}
	return nil
}

// Release unlocks the folder. When the process ends, for any reason, the folder is unlocked too.
func (l *Lock) Release() { l.release() }

// Take locks a folder, which must exist. It doesn't wait: it returns ErrHeld if another process, or another caller in
// this process, holds the lock.
//
// If the system or the file system doesn't support such locks, Take returns a lock without effect.
func Take(dir string) (*Lock, error) { return take(filepath.Join(dir, Name)) }
