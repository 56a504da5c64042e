package task

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/safetensors"
)

// sums returns the SHA-256 of the files of a run folder that are there, but for its summary and those ofThisRun.
func sums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	for _, name := range slices.DeleteFunc(Files(), func(name string) bool { return name == SummaryFile || ofThisRun(name) }) {
		sum, err := fileSum(filepath.Join(dir, name))
		if err == nil {
			sums[name] = sum
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return sums, nil
}

// ofThisRun reports whether a file says what no other run of the same configuration would, and nothing depends on it.
func ofThisRun(name string) bool { return name == TimesFile || name == ReportFile }

// checkSums returns an error if a finished run's files aren't those that its summary is of. Its checkpoint, which none
// but a raise needs, may be gone.
func checkSums(dir string) error {
	s, err := readSummary(os.DirFS(dir), dir)
	if err != nil {
		return err
	}
	is, err := sums(dir)
	if err != nil {
		return err
	}
	is[SummaryFile] = s.SHA256[SummaryFile]
	for name, sum := range s.SHA256 {
		if is[name] != sum && (is[name] != "" || name != CheckpointFile) {
			return misfit(dir, SummaryFile, name)
		}
	}
	return nil
}

// A misfitError is two files of a folder of which one isn't what the other says.
type misfitError struct{ dir, a, b string }

func (e *misfitError) Error() string {
	return fmt.Sprintf("%s and %s in %s don't belong together: one of them was changed or swapped, restore it", e.a, e.b, e.dir)
}

func misfit(dir, a, b string) error { return &misfitError{dir, a, b} }

// settled returns what read makes of a run folder. Files that don't fit are read again, because a training may have
// written between them.
func settled[T any](read func() (T, error)) (v T, err error) {
	for range 3 {
		if v, err = read(); !errors.As(err, new(*misfitError)) {
			break
		}
	}
	return v, err
}

// carried returns the checksum that a file of tensors carries in its header.
func carried(path string) (string, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return "", err
	}
	return f.Checksum, f.Close()
}

// intact returns an error if a file of tensors isn't what was written.
func intact(path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Tensors(func(string) bool { return false }); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// sum returns the SHA-256 of what a summary says, but for its Seconds, which no two runs share.
func (s Summary) sum() string {
	s.Seconds, s.SHA256 = 0, maps.Clone(s.SHA256)
	delete(s.SHA256, SummaryFile)
	return jsonSum(s)
}

// jsonSum returns the SHA-256 of a value's JSON, or nothing if it has none.
func jsonSum(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return hexSum(content)
}

func hexSum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// configFile is what config.json holds.
type configFile struct {
	Config
	SHA256 string `json:"sha256,omitempty"` // of the file's bytes, with noSum in its place
}

var noSum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// configBytes returns the bytes of a config.json.
func configBytes(c Config) ([]byte, error) {
	content, err := json.MarshalIndent(configFile{c, noSum}, "", "  ")
	if err != nil {
		return nil, err
	}
	content = append(content, '\n')
	copy(content[bytes.LastIndex(content, []byte(noSum)):], hexSum(content))
	return content, nil
}

// check returns an error for a config.json of these bytes that was changed since it was written, if it has a sum.
func (f configFile) check(content []byte) error {
	if f.SHA256 == "" {
		return nil
	}
	if len(f.SHA256) != len(noSum) || hexSum(bytes.ReplaceAll(content, []byte(f.SHA256), []byte(noSum))) != f.SHA256 {
		return errors.New("it and its sha256 don't fit: it was changed after heed wrote it: restore it")
	}
	return nil
}
