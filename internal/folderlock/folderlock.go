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

// Take locks a folder, which must be there, without waiting: it returns ErrHeld if another process has it, or another
// caller in this one. Release unlocks it; the end of the process does so too, however it comes.
//
// Where the system or the file system has no such locks, Take returns one that keeps nobody out.
func Take(dir string) (release func(), err error) { return take(filepath.Join(dir, Name)) }
