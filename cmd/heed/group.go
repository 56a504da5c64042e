package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train"
)

// started has the names of the files that a run folder can have when the run starts.
var started = []string{runfolder.ConfigFile, runfolder.TokenizerFile, runfolder.SourceTokenizerFile, runfolder.TargetTokenizerFile, runfolder.PublishedFile}

// folderStart returns the files of a run folder whose names are in the list started. They are encoded for writeStart.
func folderStart(dir string) ([]byte, error) {
	files := map[string][]byte{}
	for _, name := range started {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			files[name] = content
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return json.Marshal(files)
}

// writeStart writes the files that folderStart encoded.
func writeStart(dir string, shared []byte) error {
	var files map[string][]byte
	if err := json.Unmarshal(shared, &files); err != nil {
		return err
	}
	for _, name := range started {
		if content, ok := files[name]; ok {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// first reports whether this process is the first of a group, or the group is nil.
func first(g train.Group) bool { return g == nil || g.Rank() == 0 }
