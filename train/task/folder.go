package task

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/folderlock"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// A run folder holds these files.
const (
	ConfigFile     = "config.json"
	WeightsFile    = "model.safetensors"      // of the epoch to be kept so far
	HistoryFile    = "history.jsonl"          // a train.Check a line
	SummaryFile    = "summary.json"           // once training is done
	CheckpointFile = "checkpoint.safetensors" // what training needs to go on, be it done
	TimesFile      = "times.jsonl"            // how long steps took before each check: no two runs share it
	ReportFile     = "report.html"            // a page about the run, which heed train and heed report write
)

// Files returns the names of all files that a run folder may have: each has the tokenizers' that its task needs.
func Files() []string {
	return []string{ConfigFile, WeightsFile, HistoryFile, SummaryFile, CheckpointFile, TokenizerFile, SourceTokenizerFile, TargetTokenizerFile, TimesFile, ReportFile}
}

// A Summary is what summary.json holds.
type Summary struct {
	Task         string  `json:"task"`
	Seed         uint64  `json:"seed"`
	Epochs       int     `json:"epochs"`
	BestEpoch    int     `json:"best_epoch"` // the one whose weights are kept
	StoppedEarly bool    `json:"stopped_early"`
	Because      string  `json:"stopped_because"` // why training ended, in words
	TrainLoss    float64 `json:"train_loss"`
	Seconds      float64 `json:"seconds"`
	Params       int     `json:"params"`

	// ValLoss and ValAccuracy are nil, and not in the file, if there was no validation.
	ValLoss     *float64 `json:"val_loss,omitempty"`
	ValAccuracy *float64 `json:"val_accuracy,omitempty"`

	ValLossPerCharacter *float64 `json:"val_loss_per_character,omitempty"` // of a text in tokens, as Score.PerCharacter has it

	SHA256        map[string]string `json:"sha256"`                   // of the run's files, by their names; summary.json's is of the rest but Seconds
	WeightsSHA256 string            `json:"weights_sha256,omitempty"` // that model.safetensors carries and loading verifies, by which opening knows it

	Best       train.Check `json:"-"` // whose weights are kept
	Score      Score       `json:"-"` // what ValLoss and ValAccuracy are of
	Unfinished bool        `json:"-"` // a limit or onStep ended training, which goes on when it is called again: no file has this
}

// ErrNoWeights says that a run ended before its first epoch did.
var ErrNoWeights = errors.New("has no weights: the run ended before its first epoch did")

// ErrFinished says that a folder's run is done.
var ErrFinished = errors.New("is finished: there is nothing to resume, unless its epochs or its patience are raised")

// Train trains the model and writes a run folder, which it makes if there is none. Where dir holds a run of the same
// Config that was interrupted or met a limit, Train goes on with it from there, and ends with the same bytes as if it
// had never been interrupted. MaxEpochs and Patience may be higher than there, also where the run is finished: it ends
// with the bytes of one that had them from the start, and the same Decay and WarmUp, which New may have decided by the
// MaxEpochs that there were. Otherwise a finished run is an error that wraps ErrFinished. A
// run of another Config is an error, and so is a folder that another training is writing to, which stays as it is. The
// weights that it keeps are those of the best epoch, or of the last one if the Config says KeepLast.
//
// In a Group every process makes the same Task and calls Train. Only the first one locks, reads and writes the folder,
// which others needn't see, and writes to its Log.
//
// The Config decides the call's Seed, and the folder its Checkpoint, Run and Resume, whatever call says. The Log also
// gets a line when training begins and one that says about how much memory it takes.
func (t *Task) Train(ctx context.Context, dir string, call train.Call) (*Summary, error) {
	first := call.Group == nil || call.Group.Rank() == 0
	lock, err := t.take(dir, call.Group)
	if lock != nil {
		defer lock.Release()
	}
	if err != nil {
		return nil, err
	}
	if !first || call.Log == nil {
		call.Log = io.Discard
	}
	size, without := "", ""
	if t.Config.Kind().Columns == nil { // rows have a Look
		size = fmt.Sprintf(", a vocabulary of %d", t.layout.Tokens)
	}
	if t.set.judged() == 0 {
		without = ", without validation"
	}
	fmt.Fprintf(call.Log, "Training %s: %d parameters%s, seed %d, folder %s%s\n", t.Config.Task.Name, t.Params.Count(), size, t.Config.Seed, dir, without)
	start := time.Now()
	metadata := map[string]string{runKey: t.Config.id()}
	call.Seed, call.Run = t.Config.Seed, metadata[runKey]
	call.Checkpoint, call.Resume = filepath.Join(dir, CheckpointFile), true
	beforeSave, onMemory, onStep, onCheck := call.BeforeSave, call.OnMemory, call.OnStep, call.OnCheck
	call.BeforeSave = func() error {
		err := heldFolder(dir, lock)
		if err == nil && beforeSave != nil {
			err = beforeSave()
		}
		return err
	}
	call.OnMemory = func(bytes int) {
		fmt.Fprintf(call.Log, "Memory: about %s\n", text.Bytes(bytes))
		if onMemory != nil {
			onMemory(bytes)
		}
	}
	foretell := func(int) {}
	if t.Look() != "" {
		foretell = t.foretell(call.Log)
	}
	var times stepTimes
	call.OnStep = func(epoch, step int, loss float64) bool {
		times.step()
		foretell(epoch)
		return onStep != nil && onStep(epoch, step, loss)
	}
	call.OnCheck = func(history []train.Check, best bool) (bool, error) {
		if first && best {
			if err := t.Params.Save(filepath.Join(dir, WeightsFile), metadata); err != nil {
				return false, err
			}
		}
		if first {
			if err := cmp.Or(writeHistory(dir, history), times.write(dir, history)); err != nil {
				return false, err
			}
		}
		if onCheck != nil {
			return onCheck(history, best)
		}
		return false, nil
	}
	result, err := train.Fit(ctx, t.Problem(), t.Config.Training.Config, call)
	if err != nil {
		return nil, err
	}
	s := t.summary(result)
	s.Seconds = math.Round(time.Since(start).Seconds()*10) / 10
	if s.Unfinished || !first {
		return s, nil
	}
	if err := heldFolder(dir, lock); err != nil {
		return nil, err
	}
	if s.SHA256, err = sums(dir); err != nil {
		return nil, err
	}
	if s.WeightsSHA256, err = carried(filepath.Join(dir, WeightsFile)); err != nil {
		return nil, err
	}
	s.SHA256[SummaryFile] = s.sum()
	return s, writeJSON(dir, SummaryFile, s)
}

// summary returns what there is to say of a training but for its seconds.
func (t *Task) summary(r *train.Result) *Summary {
	s := &Summary{
		Task: t.Config.Task.Name, Seed: t.Config.Seed, BestEpoch: r.Best.Epoch, StoppedEarly: r.StoppedEarly, Because: r.StoppedBecause,
		TrainLoss: r.Best.TrainLoss, Params: t.Params.Count(), Best: r.Best, Unfinished: r.Unfinished,
	}
	if n := len(r.History); n > 0 {
		s.Epochs = r.History[n-1].Epoch + 1
	}
	if r.Best.Validated {
		s.Score = t.score(r.Best.ValLoss, r.Best.Metrics["val_accuracy"])
		s.ValLoss, s.ValAccuracy = &r.Best.ValLoss, new(s.Score.Accuracy())
		if s.Score.Characters > 0 {
			s.ValLossPerCharacter = new(s.Score.PerCharacter())
		}
	}
	return s
}

// take has the first process lock the folder and begin a run there, or go on with one.
func (t *Task) take(dir string, group train.Group) (lock *folderlock.Lock, err error) {
	var finished []byte // something, if the run is
	if group == nil || group.Rank() == 0 {
		if lock, err = t.lock(dir); err == nil {
			err = t.begin(dir)
		}
		if errors.Is(err, ErrFinished) { // in all processes
			finished, err = []byte{1}, nil
		}
	}
	finished, err = train.Share(group, finished, err)
	if err == nil && len(finished) > 0 {
		err = fmt.Errorf("the run in %s %w", dir, ErrFinished)
	}
	return lock, err
}

// lock keeps other trainings out of a folder, which it makes if there is none.
func (t *Task) lock(dir string) (*folderlock.Lock, error) {
	if err := checkSize(t.Config); err != nil { // before anything is made
		return nil, fmt.Errorf("the configuration can't be saved: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%s can't be made a run folder: %w", dir, err)
	}
	lock, err := folderlock.Take(dir)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("another training is writing to %s: wait for its end, or choose another folder", dir)
	}
	return lock, err
}

// heldFolder returns an error for a folder that another training may have by now.
func heldFolder(dir string, lock *folderlock.Lock) error {
	if err := lock.Check(); err != nil {
		return fmt.Errorf("%s isn't this training's folder any more: %w: resume it where its files are now", dir, err)
	}
	return nil
}

// begin begins a run in an empty folder, or finds a run of the same configuration there that can go on, and raises what
// may be raised.
func (t *Task) begin(dir string) error {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	if t.unstarted != nil && !has(CheckpointFile) {
		return t.unstarted
	}
	switch i := slices.IndexFunc(Files(), has); {
	case i < 0 || Files()[i] == TokenizerFile || Files()[i] == SourceTokenizerFile || Files()[i] == TargetTokenizerFile: // none, or what is written first
		if err := writeTokenizers(dir, t.Config.Task); err != nil {
			return err
		}
		return writeConfig(dir, t.Config)
	case i > 0: // no configuration, but what belongs to one
		return fmt.Errorf("%s has a run's %s, but no %s: choose another folder", dir, Files()[i], ConfigFile)
	}
	there, err := ReadConfig(dir, t.Config.Task)
	if err != nil {
		return err
	}
	raised := there
	raised.Training.MaxEpochs, raised.Training.Stopping.Patience = t.Config.Training.MaxEpochs, t.Config.Training.Stopping.Patience
	raised.moveTo(t.Config.Data)
	if err := there.decide(t.layout); err != nil || !same(raised, t.Config) {
		return fmt.Errorf("%s holds a run of another configuration: choose another folder", dir)
	}
	finished := has(SummaryFile) && has(WeightsFile)
	if finished {
		if err := checkSums(dir); err != nil {
			return err
		}
	}
	moved := there
	if moved.moveTo(t.Config.Data); finished && same(moved, t.Config) {
		return cmp.Or(tidy(dir), ErrFinished) // the page of a finished run may be half-written
	}
	if same(there, t.Config) {
		return tidy(dir)
	}
	if err := there.raisedTo(t.Config); err != nil {
		return err
	}
	if finished && !has(CheckpointFile) {
		return fmt.Errorf("the run in %s has no %s any more, and can't go on for longer", dir, CheckpointFile)
	}
	if has(CheckpointFile) { // before the configuration says that it has gone on
		if err := intact(filepath.Join(dir, CheckpointFile)); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, SummaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it isn't finished now
		return err
	}
	if err := writeConfig(dir, t.Config); err != nil {
		return err
	}
	return tidy(dir)
}

// moveTo sets where the data lie, whose sums say that they are the same.
func (c *Config) moveTo(d Data) {
	c.Data.File, c.Data.TargetFile = d.File, d.TargetFile
	c.Data.ValidationFile, c.Data.ValidationTargetFile = d.ValidationFile, d.ValidationTargetFile
}

// raisedTo returns an error if what may be raised in a run is lower in another Config; 0 is no limit.
func (c Config) raisedTo(other Config) error {
	for _, n := range []struct {
		name    setting.Path
		was, is int
	}{
		{"training.max_epochs", c.Training.MaxEpochs, other.Training.MaxEpochs},
		{"training.stopping.patience", c.Training.Stopping.Patience, other.Training.Stopping.Patience},
	} {
		if n.is != 0 && (n.was == 0 || n.is < n.was) {
			was := fmt.Sprint(n.was)
			if n.was == 0 {
				was = "0, which is no limit"
			}
			return setting.Errorf("%s may be raised when a run goes on, but not lowered: it was %s, got %d", n.name, was, n.is)
		}
	}
	return nil
}

// same reports whether two values are the same in JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// tidy removes what a killed process left half-written.
func tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, name := range Files() {
			if strings.HasPrefix(e.Name(), "."+name+".tmp-") { // as atomicfile names it
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkSize returns an error for a configuration that ReadConfig wouldn't read, as its file were too large.
func checkSize(c Config) error {
	content, err := configBytes(c)
	if err == nil && len(content) >= maxConfig {
		err = fmt.Errorf("it takes %d bytes, at most %d are read: its task has too many symbols, classes or words", len(content), maxConfig)
	}
	return err
}

// writeConfig writes config.json.
func writeConfig(dir string, c Config) error {
	content, err := configBytes(c)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, ConfigFile), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// writeJSON writes a file of one indented JSON value.
func writeJSON(dir, name string, v any) error {
	return atomicfile.WriteFile(filepath.Join(dir, name), func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

// writeHistory writes history.jsonl.
func writeHistory(dir string, history []train.Check) error {
	return atomicfile.WriteFile(filepath.Join(dir, HistoryFile), func(w io.Writer) error {
		e := json.NewEncoder(w)
		for _, epoch := range history {
			if err := e.Encode(epoch); err != nil {
				return err
			}
		}
		return nil
	})
}
