// Package folderlock allows a folder only one writer at a time.
package folderlock

import (
	"errors"
	"path/filepath"
)

// Name is the name of the lock file. It exists while a folder is locked, and remains if the writer was killed.
const Name = ".heed.lock"

// ErrHeld means that another writer has locked the folder.
var ErrHeld = errors.New("another writer has the folder")

// ErrLost means that the folder isn't the one that was locked, or that its lock file was removed.
var ErrLost = errors.New("the folder was moved or removed, or its " + Name + " was")

// A Lock is the lock on a folder.
type Lock struct {
	held    func() bool
	release func()
}

// Check returns ErrLost if the lock no longer keeps others out, for example because another folder has replaced its
// folder.
func (l *Lock) Check() error {
	if !l.held() {
		return ErrLost
	}
	return nil
}

// Release unlocks the folder. The end of the process unlocks it too, in any case.
func (l *Lock) Release() { l.release() }

// Take locks a folder, which must exist. It doesn't wait: it returns ErrHeld if another process, or another caller in
// this process, holds the lock.
//
// If the system or the file system has no such locks, Take returns a lock that keeps nobody out.
func Take(dir string) (*Lock, error) { return take(filepath.Join(dir, Name)) }
