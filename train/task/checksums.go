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

// sums returns the SHA-256 of each existing file of a run folder, except the summary and the files that ofThisRun
// reports.
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

// ofThisRun reports whether a file differs between runs of the same configuration. Nothing depends on such a file.
func ofThisRun(name string) bool { return name == TimesFile || name == ReportFile }

// checkSums returns an error if a file of a finished run doesn't match the checksum in its summary. The checkpoint may
// be missing, because only training for longer needs it.
func checkSums(dir string) error {
	s, err := readSummary(os.DirFS(dir), dir)
	if err != nil {
		return err
	}
	found, err := sums(dir)
	if err != nil {
		return err
	}
	found[SummaryFile] = s.SHA256[SummaryFile]
	for name, sum := range s.SHA256 {
		if found[name] != sum && (found[name] != "" || name != CheckpointFile) {
			return misfit(dir, SummaryFile, name)
		}
	}
	return nil
}

// A misfitError reports two files of a folder that don't match.
type misfitError struct{ dir, a, b string }

func (e *misfitError) Error() string {
	return fmt.Sprintf("%s and %s in %s don't belong together: one of them was changed or swapped; restore it", e.a, e.b, e.dir)
}

func misfit(dir, a, b string) error { return &misfitError{dir, a, b} }

// settled calls read, which reads files of a run folder. If two files don't match, it calls read again, up to three
// times in all: a training may have written to the folder in between.
func settled[T any](read func() (T, error)) (v T, err error) {
	for range 3 {
		if v, err = read(); !errors.As(err, new(*misfitError)) {
			break
		}
	}
	return v, err
}

// carried returns the checksum in the header of a safetensors file.
func carried(path string) (string, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return "", err
	}
	return f.Checksum, f.Close()
}

// intact returns an error if the content of a safetensors file doesn't match its checksum.
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

// sum returns the SHA-256 of a summary without its Seconds, which differ from run to run.
func (s Summary) sum() string {
	s.Seconds, s.SHA256 = 0, maps.Clone(s.SHA256)
	delete(s.SHA256, SummaryFile)
	return jsonSum(s)
}

// jsonSum returns the SHA-256 of a value's JSON, or "" if the value can't be encoded.
func jsonSum(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return hexSum(content)
}

func hexSum(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// configFile is the content of config.json.
type configFile struct {
	Config
	SHA256 string `json:"sha256,omitempty"` // checksum of the file's bytes with noSum in place of the checksum
}

var noSum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// configBytes returns the content of config.json for a configuration.
func configBytes(c Config) ([]byte, error) {
	content, err := json.MarshalIndent(configFile{c, noSum}, "", "  ")
	if err != nil {
		return nil, err
	}
	content = append(content, '\n')
	copy(content[bytes.LastIndex(content, []byte(noSum)):], hexSum(content))
	return content, nil
}

// check returns an error if content, the bytes of config.json, doesn't match the checksum. A file without a checksum
// passes.
func (f configFile) check(content []byte) error {
	if f.SHA256 == "" {
		return nil
	}
	if len(f.SHA256) != len(noSum) || hexSum(bytes.ReplaceAll(content, []byte(f.SHA256), []byte(noSum))) != f.SHA256 {
		return errors.New("its content doesn't match its sha256: it was changed after heed wrote it; restore it")
	}
	return nil
}
