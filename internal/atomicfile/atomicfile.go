// Package atomicfile writes files atomically: readers of a path see the old content or the new content, never a part,
// even if the writing process is killed or the machine stops.
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

// WriteFile replaces the content of the file at path with the output of write. It writes to a temporary file in the
// same folder, syncs it to disk, renames it to path and syncs the folder.
//
// The permissions are 0o644 less the umask, even if an older file had others. A symbolic link at path is replaced, not
// followed. If calls for the same path run concurrently, the last one to finish wins, with its whole content.
//
// On an error, also one from write, path is unchanged and the temporary file is removed. There is one exception: if the
// error says that the folder couldn't be synced, path has its new content, but might lose it if the machine stops.
// WriteFile also returns an error of its writer that write ignored. A process that is killed leaves its temporary file
// behind: for model.safetensors it is named .model.safetensors.tmp- and a number, with long names cut. Errors name
// path, never the temporary file.
func WriteFile(path string, write func(w io.Writer) error) error {
	return writeFile(path, write, createTemp)
}

// file holds the methods of *os.File that WriteFile needs.
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
	defer func() { // also if write panics
		if !renamed {
			f.Close() // closing twice is harmless, and Windows doesn't remove open files
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

// nameless is a file whose write errors don't contain its name.
type nameless struct{ f file }

func (n nameless) Write(b []byte) (int, error) {
	written, err := n.f.Write(b)
	return written, reason(err)
}

// reason returns the cause of an error without the file's name.
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

// longestName is the number of bytes of a file's name in its temporary file's name, which must not exceed the file
// system's limit.
const longestName = 100

// createTemp creates a temporary file beside path. Unlike os.CreateTemp, it uses the permissions of an ordinary new
// file.
func createTemp(path string) (file, error) {
	folder, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return nil, errFolder
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
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
	return nil, errors.New("found no free name for a temporary file in 100 tries")
}
