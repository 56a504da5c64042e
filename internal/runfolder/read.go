package runfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/heed-go/heed/internal/safetensors"
)

// ErrNoWeights means that a run ended before the end of its first epoch, so it saved no weights.
var ErrNoWeights = errors.New("has no weights: the run ended before the end of its first epoch")

// Sums are the checksums in a summary.
type Sums struct {
	Files   map[string]string `json:"sha256"`         // by the names of files
	Weights string            `json:"weights_sha256"` // in the header of the weights
}

// ReadSummary decodes summary.json into v and returns its checksums. If there is none, the error wraps fs.ErrNotExist.
func (f Folder) ReadSummary(v any) (s Sums, err error) {
	content, err := f.Read(SummaryFile, MaxConfig)
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	if err == nil {
		err = json.Unmarshal(content, v)
	}
	if err == nil && s.Files[SummaryFile] != SummarySum(content) {
		err = fmt.Errorf("its content doesn't match its sha256 of %s", SummaryFile)
	}
	if err != nil {
		err = fmt.Errorf("%s can't be read, or was changed: %w: remove it; --resume writes it again", f.Path(SummaryFile), err)
	}
	return s, err
}

// runKey is the key in the metadata of a run's weights. Its value is the id of the run.
const runKey = "heed.run"

// Metadata returns the metadata for the weights of a run.
func Metadata(id string) map[string]string { return map[string]string{runKey: id} }

// Header returns the header of the weights. If there are no weights, the error wraps ErrNoWeights.
func (f Folder) Header() (header *safetensors.File, err error) {
	file, size, err := f.Open(WeightsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.withoutWeights()
	}
	if err == nil {
		defer file.Close()
		header, err = safetensors.NewFile(file, size)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(WeightsFile), err)
	}
	return header, nil
}

// withoutWeights returns the error that a folder has no weights. The summary lists them, and after each check they are
// written before the history.
func (f Folder) withoutWeights() error {
	for _, name := range []string{SummaryFile, HistoryFile} {
		if f.Has(name) {
			return f.Missing(WeightsFile, name)
		}
	}
	return fmt.Errorf("%s %w", f.Dir, ErrNoWeights)
}

// Lacks returns an error if the summary lists a file that isn't in the folder.
func (f Folder) Lacks(name string) error {
	if s, err := f.ReadSummary(new(any)); err == nil && s.Files[name] != "" && !f.Has(name) {
		return f.Missing(name, SummaryFile)
	}
	return nil
}

// Missing returns the error that a file isn't in the folder, though another file of the run needs it. Resuming the run
// writes such a file.
func (f Folder) Missing(name, needed string) error {
	return fmt.Errorf("%s is missing, and %s needs it: restore it, or let heed train --resume write it", f.Path(name), needed)
}

// CheckedHeader is like Header, but returns an error if the weights or the summary belong to a run with another id, or
// if the summary's checksum of the weights differs from the checksum in their header. Loading verifies that checksum.
func (f Folder) CheckedHeader(id string) (*safetensors.File, error) {
	return Settled(func() (*safetensors.File, error) { return f.checkedHeader(id) })
}

func (f Folder) checkedHeader(id string) (*safetensors.File, error) {
	header, err := f.Header()
	if err != nil {
		return nil, err
	}
	if found, ok := header.Metadata[runKey]; ok && found != id {
		return nil, fmt.Errorf("%s: they are the weights of another run, %.24q…; the folder has the run %.24q…: one of them was changed or swapped; restore it",
			f.Path(WeightsFile), found, id)
	}
	s, err := f.ReadSummary(new(any))
	if errors.Is(err, fs.ErrNotExist) { // the run isn't finished
		return header, nil
	}
	if err != nil {
		return nil, err
	}
	content, err := f.Read(ConfigFile, MaxConfig)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.Path(ConfigFile), err)
	case s.Weights != "" && s.Weights != header.Checksum: // a summary of an older heed has none
		return nil, fmt.Errorf("%w; without %[2]s, heed opens the weights without comparing them", f.Misfit(SummaryFile, WeightsFile), SummaryFile)
	case s.Files[ConfigFile] != Sum(content):
		return nil, f.Misfit(SummaryFile, ConfigFile)
	}
	return header, nil
}
