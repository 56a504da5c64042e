package folderlock

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// take opens the file at path exclusively. Windows removes the file when it is closed, also when the process ends.
func take(path string) (*Lock, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const alone = 0
	file, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE|windows.DELETE, alone, nil,
		windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	// Windows doesn't move or remove a folder that contains a file opened this way.
	return &Lock{func() bool { return true }, func() { windows.CloseHandle(file) }}, nil
}
