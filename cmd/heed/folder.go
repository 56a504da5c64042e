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
		for i := 1; ; i++ {
			dir = filepath.Join("runs", task)
			if i > 1 {
				dir = fmt.Sprintf("%s-%d", dir, i)
			}
			if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				break
			} else if err != nil {
				return "", err
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, configFile)); err == nil {
		return "", fmt.Errorf("%s holds a run already: choose another --out, or continue it with --resume %s", dir, dir)
	}
	return dir, os.MkdirAll(dir, 0o777)
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
	path := filepath.Join(dir, configFile)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s isn't a run folder: it has no %s; heed train makes one", dir, configFile)
	}
	if err != nil {
		return c, err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s can't be read: %w", path, err)
	}
	if c.Format != configFormat {
		return c, fmt.Errorf("%s has format %d, this heed reads format %d", path, c.Format, configFormat)
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
