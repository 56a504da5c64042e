// Package atomicfile writes files that are whole or not there: what reads a path sees the old content or the new, never
// a part, also when the writing process is killed or the machine stops.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile makes the file at path hold what write writes. It writes to a temporary file in the same folder, syncs that
// to the disk, renames it over path and syncs the folder.
//
// The permissions are 0o644 less the umask, whatever those of an older file were; a symbolic link at path is replaced,
// not followed. Of concurrent calls for one path, the last to finish decides, with its whole content.
//
// On an error, that of write among them, path is as it was and the temporary file is gone. The one exception is an
// error that says the folder couldn't be synced: path has its new content then, but might lose it if the machine stops.
// An error that write ignores on its writer is returned all the same. A process that is killed leaves its temporary
// file behind: for a path ending in model.safetensors, it is named .model.safetensors.tmp- and a number. Of a long
// name, only the beginning is taken. Errors name path, never the temporary file.
func WriteFile(path string, write func(w io.Writer) error) error {
	return writeFile(path, write, createTemp)
}

// file is what WriteFile needs of an *os.File.
type file interface {
	io.WriteCloser
	Name() string
	Sync() error
}

func writeFile(path string, write func(w io.Writer) error, create func(path string) (file, error)) error {
	f, err := create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err))
	}
	renamed := false
	defer func() { // also when write panics
		if !renamed {
			f.Close() // a second time, for some: Windows removes no open file
			os.Remove(f.Name())
		}
	}()

	w := bufio.NewWriterSize(nameless{f}, 1<<16)
	if err := write(w); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(w.Flush(), reason(f.Sync()), reason(f.Close())); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err))
	}
	renamed = true
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s is written, but its folder couldn't be synced: %w", path, err)
	}
	return nil
}

// nameless is a file whose errors in writing don't name it.
type nameless struct{ f file }

func (n nameless) Write(b []byte) (int, error) {
	written, err := n.f.Write(b)
	return written, reason(err)
}

// reason returns what went wrong, without the name of the file that it went wrong with.
func reason(err error) error {
	switch e := err.(type) {
	case *fs.PathError:
		return e.Err
	case *os.LinkError:
		return e.Err
	}
	return err
}

var errFolder = errors.New("the path names a folder, not a file")

// longestName is how many bytes of a file's name its temporary file has: a file system takes the name of any file, but
// not a much longer one.
const longestName = 100

// createTemp creates a temporary file beside path. Unlike os.CreateTemp it gives it the permissions of any new file.
func createTemp(path string) (file, error) {
	folder, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return nil, errFolder
	}
	if there, err := os.Lstat(path); err == nil && there.IsDir() {
		return nil, errFolder
	}
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	for range 100 {
		temp := fmt.Sprintf("%s.%s.tmp-%d", folder, name, rand.Uint32())
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, errors.New("every name tried for a temporary file is taken")
}
