// Package folderlock keeps a folder to one writer at a time.
package folderlock

import (
	"errors"
	"path/filepath"
)

// Name is the file that is locked. It is there while a folder is locked, and after its writer was killed.
const Name = ".heed.lock"

// ErrHeld says that another writer has the folder.
var ErrHeld = errors.New("another writer has the folder")

// ErrLost says that the folder isn't the one that was locked, or its lock was removed.
var ErrLost = errors.New("the folder was moved or removed, or its " + Name + " was")

// A Lock is that of a folder.
type Lock struct {
	held    func() bool
	release func()
}

// Check returns ErrLost if the lock doesn't keep others out any more: another folder may be in its folder's place.
func (l *Lock) Check() error {
	if !l.held() {
		return ErrLost
	}
	return nil
}

// Release unlocks the folder; the end of the process does so too, however it comes.
func (l *Lock) Release() { l.release() }

// Take locks a folder, which must be there, without waiting: it returns ErrHeld if another process has it, or another
// caller in this one.
//
// Where the system or the file system has no such locks, Take returns one that keeps nobody out.
func Take(dir string) (*Lock, error) { return take(filepath.Join(dir, Name)) }
