package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/internal/atomicfile"
)

// writable returns an error if writeFile couldn't make a file that a flag names: there is work to be done before.
func writable(flag, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return fmt.Errorf("--%s %s is a folder", flag, path)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	folder := filepath.Dir(path)
	switch in, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--%s's folder %s doesn't exist: make it first", flag, folder)
	case err == nil && !in.IsDir():
		return fmt.Errorf("--%s's folder %s is a file", flag, folder)
	}
	f, err := os.CreateTemp(folder, ".heed-")
	if err != nil {
		return fmt.Errorf("--%s %s can't be written: %w", flag, path, errors.Unwrap(err))
	}
	return cmp.Or(f.Close(), os.Remove(f.Name()))
}

// writeFile makes a file that a flag names hold what write writes, whole or not at all. What is there and no file, such
// as /dev/stdout or a named pipe, isn't replaced by one but written to, and so is what a symbolic link leads to.
func writeFile(path string, write func(w io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		if err = cmp.Or(write(w), w.Flush(), f.Close()); err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
		return err
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	return atomicfile.WriteFile(path, write)
}
