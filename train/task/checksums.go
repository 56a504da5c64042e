package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sums returns the SHA-256 of the files of a run folder that are there, but for its summary.
func sums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	for _, name := range []string{ConfigFile, WeightsFile, HistoryFile, CheckpointFile} {
		sum, err := fileSum(filepath.Join(dir, name))
		if err == nil {
			sums[name] = sum
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return sums, nil
}

// checkSums returns an error if a finished run's files aren't those that its summary is of. Its checkpoint, which none
// but a raise needs, may be gone.
func checkSums(dir string) error {
	path := filepath.Join(dir, SummaryFile)
	f, _, err := openRegular(os.DirFS(dir), SummaryFile)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return err
	}
	var s Summary
	if err := json.Unmarshal(content, &s); err != nil {
		return fmt.Errorf("%s can't be read: %w: remove it, and --resume writes it anew", path, err)
	}
	is, err := sums(dir)
	if err != nil {
		return err
	}
	for name, sum := range s.SHA256 {
		if is[name] != sum && (is[name] != "" || name != CheckpointFile) {
			return fmt.Errorf("%s and %s in %s don't belong together: one of them was changed or swapped, restore it", SummaryFile, name, dir)
		}
	}
	return nil
}
