package text

import (
	"io/fs"
	"os"
)

// Reason returns the cause of an error about a file, without the operation and the name, for a message that names the
// file itself. It returns other errors unchanged.
func Reason(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	case *os.SyscallError:
		return e.Err
	}
	return err
}
