// Package runfolder reads and writes run folders: the files in which a training keeps its configuration, weights,
// history and checkpoint.
//
// A Folder reads files. The folder may come from someone else, so a Folder reads only regular files up to a size limit,
// and compares checksums. The checksums bind the files to each other: if a file was changed, or comes from another run,
// the error names the two files that don't belong together.
//
// A Writer locks a folder for one training, and writes its files whole or not at all.
//
// This package doesn't know what a configuration says. Its callers pass the id of the run where they need one: a string
// that depends on all settings that determine the run's result. It doesn't know training either: package runlog, in the
// folder below, reads and writes the history.
package runfolder

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/internal/text"
)

// The files of a run folder. A folder with tokenizers has either one file for all, or one for sources and one for
// answers.
const (
	ConfigFile     = "config.json"
	WeightsFile    = "model.safetensors"      // the best weights so far, or the last ones with KeepLast
	BaselineFile   = "baseline.safetensors"   // the linear model that the network is compared with, and whose answers are mixed with its own
	HistoryFile    = "history.jsonl"          // one train.Check per line
	SummaryFile    = "summary.json"           // checksums and results, when training is finished
	CheckpointFile = "checkpoint.safetensors" // state to continue training from, also after it has finished
	TimesFile      = "times.jsonl"            // time per step before each check, different in each run
	ReportFile     = "report.html"            // a page about the run, by heed train and heed report

	PublishedFile = "published.zip" // files of the published model that the run began from, except its weights

	TokenizerFile       = "tokenizer.json"
	SourceTokenizerFile = "source.json"
	TargetTokenizerFile = "target.json"
)

// Files returns the names of all files that a run folder may have.
func Files() []string {
	return []string{ConfigFile, WeightsFile, HistoryFile, SummaryFile, CheckpointFile, BaselineFile, TokenizerFile, SourceTokenizerFile, TargetTokenizerFile, PublishedFile, TimesFile, ReportFile}
}

// beginning lists the files that are written before the configuration.
var beginning = []string{TokenizerFile, SourceTokenizerFile, TargetTokenizerFile, PublishedFile}

// Limits for the sizes of files in bytes. An alphabet of all assigned characters fits into a configuration.
const (
	MaxConfig    = 1_000_000
	maxTokenizer = 64 << 20 // as in tokenizer.ReadOwn
	MaxHistory   = 1 << 28
	MaxPublished = 1 << 28
	maxBaseline  = 1 << 30 // package linear limits its models to less
	maxHeader    = 1 << 28 // of weights and of a checkpoint, with its history
)

// A Folder is a run folder to read.
type Folder struct {
	FS  fs.FS
	Dir string // name of the folder in messages
}

// At returns the folder with this path.
func At(dir string) Folder { return Folder{os.DirFS(dir), dir} }

// Path returns the path of a file for messages.
func (f Folder) Path(name string) string { return filepath.Join(f.Dir, name) }

// Has reports whether the folder has a file.
func (f Folder) Has(name string) bool {
	_, err := fs.Lstat(f.FS, name)
	return err == nil
}

// HasRun reports whether the folder has a run, with a configuration. A killed process may have left files that are
// written before the configuration: if there are no others, the folder has no run, and one can begin there. Other files
// without a configuration are an error.
func (f Folder) HasRun() (bool, error) {
	// A training may be writing to the folder. It writes these files after the configuration, so look for them first.
	later := slices.DeleteFunc(Files(), func(name string) bool {
		return name == ConfigFile || slices.Contains(beginning, name) || !f.Has(name)
	})
	if f.Has(ConfigFile) {
		return true, nil
	}
	if len(later) > 0 {
		return false, fmt.Errorf("%s has %s, but %s is missing: restore it, or choose another folder", f.Dir, later[0], ConfigFile)
	}
	return false, nil
}

// Open opens a regular file and returns its size. Other files, such as pipes, are an error, because reading them might
// never end. Errors don't name the file.
func (f Folder) Open(name string) (fs.File, int64, error) {
	info, err := fs.Stat(f.FS, name)
	if err != nil {
		return nil, 0, text.Reason(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("it must be a regular file, got %v", info.Mode())
	}
	file, err := f.FS.Open(name)
	return file, info.Size(), text.Reason(err)
}

// Read reads a regular file. It returns an error if the file has more bytes than limit. Errors don't name the file.
func (f Folder) Read(name string, limit int64) ([]byte, error) {
	file, size, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > limit {
		return nil, fmt.Errorf("it has %d bytes, but at most %d are read", size, limit)
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// Sum returns the SHA-256 of a file, in hexadecimal.
func (f Folder) Sum(name string) (string, error) { return f.sum(context.Background(), name) }

// sum is Sum until ctx ends.
func (f Folder) sum(ctx context.Context, name string) (string, error) {
	file, _, err := f.Open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Path(name), err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, until{ctx, file}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// until reads until ctx ends. Then its error is ctx.Err().
type until struct {
	ctx context.Context
	in  io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.in.Read(p)
}

// CheckSizes returns an error if a file is larger than any file of a run whose model has this number of parameters.
// Before training, this keeps a wrong file from being read for minutes.
func (f Folder) CheckSizes(params int) error {
	limits := map[string]int64{
		ConfigFile: MaxConfig, SummaryFile: MaxConfig, HistoryFile: MaxHistory, PublishedFile: MaxPublished, BaselineFile: maxBaseline,
		TokenizerFile: maxTokenizer, SourceTokenizerFile: maxTokenizer, TargetTokenizerFile: maxTokenizer,
		WeightsFile:    maxHeader + 8*int64(params),
		CheckpointFile: maxHeader + 64*int64(params), // the best parameters, averages and the solver's memory too
	}
	for _, name := range Files() {
		info, err := fs.Stat(f.FS, name)
		if limit, ok := limits[name]; ok && err == nil && info.Size() > limit {
			return fmt.Errorf("%s has %d bytes, but this run's can have at most %d: it was changed; restore it", f.Path(name), info.Size(), limit)
		}
	}
	return nil
}

// sums returns the checksum of each existing file, except the summary and the files that may differ between runs of one
// configuration.
func (f Folder) sums(ctx context.Context) (map[string]string, error) {
	sums := map[string]string{}
	for _, name := range Files() {
		if name == SummaryFile || name == TimesFile || name == ReportFile {
			continue
		}
		sum, err := f.sum(ctx, name)
		if err == nil {
			sums[name] = sum
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return sums, nil
}
