// Package atomicfile writes files atomically: readers of a path see the whole old content or the whole new content,
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

	"github.com/heed-go/heed/internal/text"
)

// WriteFile replaces the content of the file at path with the output of write. It writes to a temporary file in the
// same folder, syncs it to disk, renames it to path and syncs the folder.
//
// The permissions are 0o644 minus the umask, even if the old file had different permissions. A symbolic link at path is
// replaced, not followed. If calls for the same path run concurrently, the file has the whole content of the call that
// finishes last.
//
// If write or WriteFile fails, path is unchanged and the temporary file is removed. There is one exception: if the
// error says that the folder couldn't be synced, path has its new content, but might lose it if the machine stops. If
// write ignores an error of its writer, WriteFile returns it. Errors name path, never the temporary file.
//
// A process that is killed leaves its temporary file behind. For model.safetensors, the temporary file's name is
// .model.safetensors.tmp- followed by a number. Long names are cut.
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
		return fmt.Errorf("write %s: %w", path, text.Reason(err))
	}
	renamed := false
	defer func() { // even if write panics
		if !renamed {
			f.Close() // closing twice is harmless, and Windows doesn't remove open files
			os.Remove(f.Name())
		}
	}()

	w := bufio.NewWriterSize(nameless{f}, 1<<16)
	if err := write(w); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(w.Flush(), text.Reason(f.Sync()), text.Reason(f.Close())); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, text.Reason(err))
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
	return written, text.Reason(err)
}

var errFolder = errors.New("the path names a folder, not a file")

// longestName is how many bytes of a file's name its temporary file's name may contain. A longer name might exceed the
// file system's limit.
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
