package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/train/task"
)

// newFolder makes the folder of a new run: the given one, which must not hold a run already, or one under runs/ that
// is named for the task.
func newFolder(dir, name string) (string, error) {
	if dir == "" {
		return freeFolder(name)
	}
	for _, name := range task.Files() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return "", fmt.Errorf("%s holds a run already, its %s at least: choose another --out, or go on with it: heed train --resume %s", dir, name, shell(dir))
		}
	}
	return dir, nil
}

// freeFolder makes the first folder under runs/ that isn't there, also where others look for one at the same time.
func freeFolder(name string) (string, error) {
	if err := os.MkdirAll("runs", 0o777); err != nil {
		return "", fmt.Errorf("no folder for the run can be made, --out names another: %w", err)
	}
	dir := filepath.Join("runs", name)
	for i := 2; ; i++ {
		err := os.Mkdir(dir, 0o777)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("no folder for the run can be made, --out names another: %w", err)
		}
		dir = filepath.Join("runs", fmt.Sprintf("%s-%d", name, i))
	}
}
