package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/internal/atomicfile"
)

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
