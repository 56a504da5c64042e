package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/internal/runfolder"
)

// newFolder returns the folder for a new run. It returns dir if that is given and holds no run yet. Otherwise it makes
// a folder under runs/ that is named after the task.
func newFolder(dir, name string) (string, error) {
	if dir == "" {
		return freeFolder(name)
	}
	begun, err := runfolder.At(dir).HasRun()
	if begun {
		err = fmt.Errorf("%s holds a run already (it has %s): choose another --out, or continue that run with heed train --resume %s", dir, runfolder.ConfigFile, shell(dir))
	}
	return dir, err
}

// freeFolder makes the first of the folders runs/NAME, runs/NAME-2, … that doesn't exist yet. Several processes may
// call it at the same time.
func freeFolder(name string) (string, error) {
	dir := filepath.Join("runs", name)
	err := os.MkdirAll("runs", 0o777)
	for i := 2; err == nil; i++ {
		if err = os.Mkdir(dir, 0o777); err == nil {
			return dir, nil
		}
		if errors.Is(err, fs.ErrExist) {
			dir, err = filepath.Join("runs", fmt.Sprintf("%s-%d", name, i)), nil
		}
	}
	return "", fmt.Errorf("can't make a folder for the run: %w: choose one with --out", err)
}
