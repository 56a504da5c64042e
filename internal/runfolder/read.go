package runfolder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train"
)

// ErrNoWeights means that a run ended before the end of its first epoch, so it saved no weights.
var ErrNoWeights = errors.New("has no weights: the run ended before the end of its first epoch")

// ErrNoHistory means that a run ended before its first check.
var ErrNoHistory = errors.New("has no history: the run ended before its first check")

// sums are the checksums in a summary.
type sums struct {
	Files   map[string]string `json:"sha256"`         // by the names of files
	Weights string            `json:"weights_sha256"` // in the header of the weights
}

// readSummary decodes summary.json into v and returns its checksums. If there is none, the error wraps fs.ErrNotExist.
func (f Folder) readSummary(v any) (s sums, err error) {
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
	if s, err := f.readSummary(new(any)); err == nil && s.Files[name] != "" && !f.Has(name) {
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
	return settled(func() (*safetensors.File, error) { return f.checkedHeader(id) })
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
	s, err := f.readSummary(new(any))
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
		return nil, fmt.Errorf("%w; without %[2]s, heed opens the weights without comparing them", f.misfit(SummaryFile, WeightsFile), SummaryFile)
	case s.Files[ConfigFile] != Sum(content):
		return nil, f.misfit(SummaryFile, ConfigFile)
	}
	return header, nil
}

// A Record is what a run folder says about its training.
type Record struct {
	History  []train.Check // at least one check
	Seconds  []float64     // time per step before each check, or 0 if it is unknown
	Untimed  int           // number of lines in times.jsonl that Seconds ignores
	Finished bool          // whether there is a summary
}

// Record reads the history of the run with this id. If there was no check yet, the error wraps ErrNoHistory. If the run
// is finished, Record decodes its summary into the value that summary points to.
//
// In a finished run, the configuration and the history must match the checksums in the summary. In an unfinished run,
// they must match the header of the checkpoint. If training ended between two checks, the history has one check more,
// at the checkpoint's step, which nothing is compared with. If a process was killed between two writes, the history may
// have one check less than the checkpoint, or one more, or there may be no history. Then Record returns the
// checkpoint's history, from which the run would resume. Without a checkpoint, Record compares nothing.
func (f Folder) Record(id string, summary any) (Record, error) {
	return settled(func() (Record, error) { return f.record(id, summary) })
}

func (f Folder) record(id string, summary any) (r Record, err error) {
	// A training may be writing to the folder. It writes the summary last, so the summary is read first.
	s, err := f.readSummary(summary)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Finished = err == nil
	times, err := f.Read(TimesFile, maxHistory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s can't be read, or was changed: %w: remove it, and the run has no times", f.Path(TimesFile), err)
	}
	content, err := f.Read(HistoryFile, maxHistory)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.Finished:
		return r, f.Missing(HistoryFile, SummaryFile)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return r, fmt.Errorf("%s: %w", f.Path(HistoryFile), err)
	}
	err = nil
	for d := json.NewDecoder(bytes.NewReader(content)); err == nil; {
		var check train.Check
		if err = d.Decode(&check); err == nil {
			r.History = append(r.History, check)
		}
	}
	if err != io.EOF {
		return r, fmt.Errorf("%s can't be read, or was changed: check %d: %w", f.Path(HistoryFile), len(r.History)+1, err)
	}
	if r.Finished {
		err = f.compareSummary(s, content)
	} else {
		r.History, err = f.compareCheckpoint(id, r.History)
	}
	if err != nil {
		return r, err
	}
	switch {
	case len(r.History) == 0 && f.Has(WeightsFile):
		return r, f.Missing(HistoryFile, WeightsFile)
	case len(r.History) == 0:
		return r, fmt.Errorf("%s %w", f.Dir, ErrNoHistory)
	}
	known, untimed := timesOf(times, r.History)
	for _, check := range r.History {
		r.Seconds = append(r.Seconds, known[check.Step])
	}
	r.Untimed = untimed
	return r, nil
}

// compareSummary compares the configuration and the content of the history with the summary's checksums.
func (f Folder) compareSummary(s sums, history []byte) error {
	config, err := f.Sum(ConfigFile)
	switch {
	case err != nil:
		return err
	case s.Files[ConfigFile] != config:
		return f.misfit(SummaryFile, ConfigFile)
	case s.Files[HistoryFile] != Sum(history):
		return f.misfit(SummaryFile, HistoryFile)
	}
	return nil
}

// compareCheckpoint compares the id and the history of an unfinished run with its checkpoint, if there is one. It
// returns the checkpoint's history, with the check at the end of training if there is one.
func (f Folder) compareCheckpoint(id string, history []train.Check) ([]train.Check, error) {
	saved, err := train.ReadProgress(filepath.Join(f.Dir, CheckpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return history, nil
	case err != nil:
		return nil, fmt.Errorf("%w: restore it, or remove it to skip comparing the history", err)
	case saved.Run != id:
		return nil, f.misfit(ConfigFile, CheckpointFile)
	}
	if n := len(saved.History); len(history) == n+1 && history[n].Step == saved.Step {
		saved.History = append(saved.History, history[n]) // the check at the end: Fit saves the checkpoint before it
	}
	n := min(len(history), len(saved.History))
	if !slices.EqualFunc(history, saved.History[:n], func(a, b train.Check) bool { return JSONSum(a) == JSONSum(b) }) {
		return nil, fmt.Errorf("%w; heed train --resume rewrites %s", f.misfit(HistoryFile, CheckpointFile), HistoryFile)
	}
	return saved.History, nil
}
