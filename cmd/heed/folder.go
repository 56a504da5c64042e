package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/train"
)

// A run folder holds these files.
const (
	configFile     = "config.json"
	weightsFile    = "model.safetensors"
	historyFile    = "history.jsonl"
	summaryFile    = "summary.json"
	checkpointFile = "checkpoint.safetensors" // until training is done
)

// summary is summary.json.
type summary struct {
	Task         string  `json:"task"`
	Seed         uint64  `json:"seed"`
	Epochs       int     `json:"epochs"`
	BestEpoch    int     `json:"best_epoch"`
	StoppedEarly bool    `json:"stopped_early"`
	TrainLoss    float64 `json:"train_loss"`
	ValLoss      float64 `json:"val_loss"`
	ValAccuracy  float64 `json:"val_accuracy"`
	Seconds      float64 `json:"seconds"`
	Params       int     `json:"params"`
}

// newFolder makes the folder of a new run: the given one, which must not hold a run already, or one under runs/ that
// is named for the task.
func newFolder(dir, task string) (string, error) {
	if dir == "" {
		return freeFolder(task)
	}
	for _, name := range []string{configFile, weightsFile, historyFile, summaryFile, checkpointFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return "", fmt.Errorf("%s holds a run already, its %s at least: choose another --out, or go on with it: heed train --resume %s", dir, name, shell(dir))
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("%s can't be made a run folder: %w", dir, err)
	}
	return dir, nil
}

// freeFolder makes the first folder under runs/ that isn't there, also where others look for one at the same time.
func freeFolder(task string) (string, error) {
	if err := os.MkdirAll("runs", 0o777); err != nil {
		return "", fmt.Errorf("no folder for the run can be made, --out names another: %w", err)
	}
	dir := filepath.Join("runs", task)
	for i := 2; ; i++ {
		err := os.Mkdir(dir, 0o777)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("no folder for the run can be made, --out names another: %w", err)
		}
		dir = filepath.Join("runs", fmt.Sprintf("%s-%d", task, i))
	}
}

// tidy removes what a killed process left half-written.
func tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, name := range []string{configFile, weightsFile, historyFile, summaryFile, checkpointFile} {
			if strings.HasPrefix(e.Name(), "."+name+".tmp-") { // as atomicfile names it
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeJSON writes a file of one indented JSON value.
func writeJSON(dir, name string, v any) error {
	return atomicfile.WriteFile(filepath.Join(dir, name), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// writeHistory writes history.jsonl, a line an epoch.
func writeHistory(dir string, history []train.Epoch) error {
	return atomicfile.WriteFile(filepath.Join(dir, historyFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, epoch := range history {
			if err := e.Encode(epoch); err != nil {
				return err
			}
		}
		return nil
	})
}

// readConfig reads and checks a run folder's config.json.
func readConfig(dir string) (config, error) {
	var c config
	if dir == "" {
		return c, usagef("the run folder's name is empty")
	}
	path := filepath.Join(dir, configFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s isn't a run folder: it has no %s; heed train makes one", dir, configFile)
	}
	if err != nil {
		return c, fmt.Errorf("%s isn't a run folder that can be read: %w", dir, err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	err = d.Decode(&c)
	var syntax *json.SyntaxError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &syntax) {
		return c, fmt.Errorf("%s isn't whole JSON (%w): restore it, or train again", path, err)
	}
	if err != nil {
		return c, fmt.Errorf("%s can't be read: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return c, fmt.Errorf("%s can't be read: something follows its JSON object", path)
	}
	if c.Format != configFormat {
		return c, fmt.Errorf("%s has format %d, this heed reads format %d", path, c.Format, configFormat)
	}
	c.file = path
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if c.Task == textTask && c.Chars == "" {
		return c, fmt.Errorf("%s: symbols must be the text's characters, got none", path)
	}
	if c.Task == textTask {
		if _, err := data.NewVocab(c.Chars); err != nil {
			return c, fmt.Errorf("%s: symbols: %w", path, err)
		}
	}
	return c, nil
}
