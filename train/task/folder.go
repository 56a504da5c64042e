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
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/folderlock"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// The files of a run folder.
const (
	ConfigFile     = "config.json"
	WeightsFile    = "model.safetensors"      // the best weights so far, or the last ones with KeepLast
	HistoryFile    = "history.jsonl"          // one train.Check per line
	SummaryFile    = "summary.json"           // a Summary, when training is finished
	CheckpointFile = "checkpoint.safetensors" // state to continue training from, also after it has finished
	TimesFile      = "times.jsonl"            // time per step before each check, different in each run
	ReportFile     = "report.html"            // a page about the run, by heed train and heed report
)

// Files returns the names of all files that a run folder may have. The task decides which tokenizer files it has.
func Files() []string {
	return []string{ConfigFile, WeightsFile, HistoryFile, SummaryFile, CheckpointFile, TokenizerFile, SourceTokenizerFile, TargetTokenizerFile, TimesFile, ReportFile}
}

// A Summary is the content of summary.json. Train returns it.
type Summary struct {
	Task         string  `json:"task"`
	Seed         uint64  `json:"seed"`
	Epochs       int     `json:"epochs"`
	BestEpoch    int     `json:"best_epoch"` // epoch of the saved weights
	StoppedEarly bool    `json:"stopped_early"`
	Because      string  `json:"stopped_because"` // reason why training ended, in words
	TrainLoss    float64 `json:"train_loss"`
	Seconds      float64 `json:"seconds"`
	Params       int     `json:"params"`

	// ValLoss and ValScore are nil, and missing from the file, if there was no validation. ValScore is the Value of the
	// Score. In JSON its key is "val_" and then ScoreName, such as val_accuracy.
	ValLoss   *float64 `json:"val_loss,omitempty"`
	ValScore  *float64 `json:"val_score,omitempty"`
	ScoreName string   `json:"-"`

	ValLossPerCharacter *float64 `json:"val_loss_per_character,omitempty"` // for text in tokens: see Score.PerCharacter

	SHA256        map[string]string `json:"sha256"`                   // checksum of each file by its name; for summary.json: of the Summary without this checksum and Seconds
	WeightsSHA256 string            `json:"weights_sha256,omitempty"` // checksum in the header of model.safetensors, which Open and Load compare

	Best       train.Check `json:"-"` // check of the saved weights
	Score      Score       `json:"-"` // validation score, including ValLoss and ValScore
	Unfinished bool        `json:"-"` // a limit or OnStep interrupted training; call Train again to continue
}

// scoreKey is the key of ValScore that MarshalJSON and UnmarshalJSON replace.
const scoreKey = "val_score"

// MarshalJSON encodes a Summary as its documentation says.
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	content, err := json.Marshal(plain(s))
	return bytes.Replace(content, []byte(`"`+scoreKey+`":`), []byte(`"val_`+s.ScoreName+`":`), 1), err
}

// UnmarshalJSON replaces the Summary with the one in data. It returns an error if a key is unknown or repeated.
func (s *Summary) UnmarshalJSON(data []byte) error {
	if err := jsonkeys.Check(data, nil); err != nil {
		return err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	type plain Summary
	var fields plain
	for key, value := range values {
		if name, ok := strings.CutPrefix(key, "val_"); ok && key != "val_loss" && key != "val_loss_per_character" {
			fields.ScoreName = name
			delete(values, key)
			values[scoreKey] = value
			break // a second key with such a name is unknown
		}
	}
	data, err := json.Marshal(values)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&fields)
	}
	*s = Summary(fields)
	return err
}

// ErrNoWeights means that a run ended before the end of its first epoch, so it saved no weights.
var ErrNoWeights = errors.New("has no weights: the run ended before the end of its first epoch")

// ErrFinished means that the run in a folder is finished.
var ErrFinished = errors.New("is finished: there is nothing to resume, unless you raise its epochs or its patience")

// Train trains the model and writes a run folder. It makes the folder if necessary. The saved weights are the weights
// of the best check, or of the last check if the Config has KeepLast.
//
// If the folder has an unfinished run with the same Config, Train resumes it. The result has the same bytes as a run
// without an interruption. If MaxEpochs or Patience is higher than in the folder, Train continues the run, even if it
// is finished. The result has the same bytes as a run that had the higher values from the start, with the same Decay
// and WarmUp. For this, take the Config from ReadConfig: New could choose another Decay and WarmUp for a higher
// MaxEpochs.
//
// The error wraps ErrFinished if the run is finished and neither value is higher. It is also an error if the folder has
// a run with another Config, or if another training is writing to it. In these cases Train changes no file of the run.
//
// In a Group, every process makes the same Task and calls Train. Only the first process locks, reads and writes the
// folder, and writes to its Log. The other processes need no access to the folder.
//
// Train sets the call's Seed, Checkpoint, Run and Resume itself. Besides train.Fit's lines, it writes to the Log: a
// line when training begins, the estimated memory and, for rows of a file, the estimated time.
func (t *Task) Train(ctx context.Context, dir string, options train.RunOptions) (*Summary, error) {
	first := options.Group == nil || options.Group.Rank() == 0
	lock, err := t.take(dir, options.Group)
	if lock != nil {
		defer lock.Release()
	}
	if err != nil {
		return nil, err
	}
	if !first || options.Log == nil {
		options.Log = io.Discard
	}
	size, without := "", ""
	if t.Config.Kind().Columns == nil { // for rows, DescribeData has the sizes
		size = fmt.Sprintf(", a text of %d characters, a vocabulary of %d", t.Config.Data.Characters, t.layout.Tokens)
	}
	if t.set.judged() == 0 {
		without = ", without validation"
	}
	fmt.Fprintf(options.Log, "Training %s: %d parameters%s, seed %d, folder %s%s\n", t.Config.Task.Name, t.Params.Count(), size, t.Config.Seed, dir, without)
	start := time.Now()
	metadata := map[string]string{runKey: t.Config.id()}
	options.Seed, options.Run = t.Config.Seed, metadata[runKey]
	options.Checkpoint, options.Resume = filepath.Join(dir, CheckpointFile), true
	beforeSave, onMemory, onStep, onCheck := options.BeforeSave, options.OnMemory, options.OnStep, options.OnCheck
	options.BeforeSave = func() error {
		err := heldFolder(dir, lock)
		if err == nil && beforeSave != nil {
			err = beforeSave()
		}
		return err
	}
	options.OnMemory = func(bytes int) {
		fmt.Fprintf(options.Log, "Memory: about %s\n", text.Bytes(bytes))
		if onMemory != nil {
			onMemory(bytes)
		}
	}
	foretell := func(int, int, time.Duration) {}
	if t.DescribeData() != "" {
		foretell = t.foretell(options.Log)
	}
	var times stepTimes
	options.OnStep = func(epoch, step int, loss float64) bool {
		foretell(epoch, step, times.step())
		return onStep != nil && onStep(epoch, step, loss)
	}
	options.OnCheck = func(history []train.Check, best bool) (bool, error) {
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
	result, err := train.Fit(ctx, t.Problem(), t.Config.Training.Config, options)
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

// summary returns the Summary of a training without its Seconds and checksums.
func (t *Task) summary(r *train.Result) *Summary {
	s := &Summary{
		Task: t.Config.Task.Name, Seed: t.Config.Seed, BestEpoch: r.Best.Epoch, StoppedEarly: r.StoppedEarly, Because: r.StoppedBecause,
		TrainLoss: r.Best.TrainLoss, Params: t.Params.Count(), Best: r.Best, Unfinished: r.Unfinished,
	}
	if n := len(r.History); n > 0 {
		s.Epochs = r.History[n-1].Epoch + 1
	}
	if r.Best.Validated {
		s.Score = t.score(r.Best.ValLoss, r.Best.Metrics)
		s.ValLoss, s.ValScore, s.ScoreName = &r.Best.ValLoss, &s.Score.Value, s.Score.Name
		if s.Score.Characters > 0 {
			s.ValLossPerCharacter = new(s.Score.PerCharacter())
		}
	}
	return s
}

// take lets the first process lock the folder, and begin or resume a run there. All processes return the same error.
func (t *Task) take(dir string, group train.Group) (lock *folderlock.Lock, err error) {
	var finished []byte // one byte if the run is finished, otherwise empty
	if group == nil || group.Rank() == 0 {
		if lock, err = t.lock(dir); err == nil {
			err = t.begin(dir)
		}
		if errors.Is(err, ErrFinished) { // all processes return this error
			finished, err = []byte{1}, nil
		}
	}
	finished, err = train.Broadcast(group, finished, err)
	if err == nil && len(finished) > 0 {
		err = fmt.Errorf("the run in %s %w", dir, ErrFinished)
	}
	return lock, err
}

// lock makes the folder if necessary, and locks it against other trainings.
func (t *Task) lock(dir string) (*folderlock.Lock, error) {
	if err := checkSize(t.Config); err != nil { // before making the folder
		return nil, fmt.Errorf("the configuration can't be saved: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("%s can't become a run folder: %w", dir, text.Reason(err))
	}
	lock, err := folderlock.Take(dir)
	if errors.Is(err, folderlock.ErrHeld) {
		return nil, fmt.Errorf("another training is writing to %s: wait for its end, or choose another folder", dir)
	}
	return lock, err
}

// heldFolder returns an error if the folder was moved or replaced, so that another training may use it now.
func heldFolder(dir string, lock *folderlock.Lock) error {
	if err := lock.Check(); err != nil {
		return fmt.Errorf("%s isn't this training's folder any more: %w: resume it where its files are now", dir, err)
	}
	return nil
}

// begin begins a run in an empty folder. If the folder has a run with the same configuration, begin prepares it for
// resuming: it writes the higher MaxEpochs and Patience to config.json.
func (t *Task) begin(dir string) error {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	if t.unstarted != nil && !has(CheckpointFile) {
		return t.unstarted
	}
	if err := tidy(dir); err != nil {
		return err
	}
	switch i := slices.IndexFunc(Files(), has); {
	case i < 0 || Files()[i] == TokenizerFile || Files()[i] == SourceTokenizerFile || Files()[i] == TargetTokenizerFile: // no files, or only tokenizers, which are written first
		if err := writeTokenizers(dir, t.Config.Task); err != nil {
			return err
		}
		return writeConfig(dir, t.Config)
	case i > 0: // other files of a run, but no configuration
		return fmt.Errorf("%s has the file %s of a run, but no %s: choose another folder", dir, Files()[i], ConfigFile)
	}
	saved, err := ReadConfig(dir, t.Config.Task)
	if err != nil {
		return err
	}
	raised := saved
	raised.Training.MaxEpochs, raised.Training.Stopping.Patience = t.Config.Training.MaxEpochs, t.Config.Training.Stopping.Patience
	raised.moveTo(t.Config.Data)
	if err := saved.decide(t.layout); err != nil || !same(raised, t.Config) {
		return fmt.Errorf("%s holds a run with another configuration: choose another folder", dir)
	}
	finished := has(SummaryFile) && has(WeightsFile)
	if finished {
		if err := checkSums(dir); err != nil {
			return err
		}
	}
	moved := saved
	if moved.moveTo(t.Config.Data); finished && same(moved, t.Config) {
		return ErrFinished
	}
	if same(saved, t.Config) {
		return nil
	}
	if err := saved.raisedTo(t.Config); err != nil {
		return err
	}
	if finished && !has(CheckpointFile) {
		return fmt.Errorf("the run in %s has no %s any more, so it can't train for longer", dir, CheckpointFile)
	}
	if has(CheckpointFile) { // check it before changing the configuration
		if err := intact(filepath.Join(dir, CheckpointFile)); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, SummaryFile)); err != nil && !errors.Is(err, fs.ErrNotExist) { // the run is unfinished again
		return err
	}
	return writeConfig(dir, t.Config)
}

// moveTo takes the paths of the data files from d. The checksums stay: the content must be the same.
func (c *Config) moveTo(d data.Settings) {
	c.Data.File, c.Data.MoreFiles, c.Data.TargetFile = d.File, d.MoreFiles, d.TargetFile
	c.Data.ValidationFile, c.Data.ValidationTargetFile = d.ValidationFile, d.ValidationTargetFile
}

// raisedTo returns an error if MaxEpochs or Patience is lower in the other Config; 0 means no limit.
func (c Config) raisedTo(other Config) error {
	for _, n := range []struct {
		name     setting.Path
		old, new int
	}{
		{"training.max_epochs", c.Training.MaxEpochs, other.Training.MaxEpochs},
		{"training.stopping.patience", c.Training.Stopping.Patience, other.Training.Stopping.Patience},
	} {
		if n.new != 0 && (n.old == 0 || n.new < n.old) {
			was := fmt.Sprint(n.old)
			if n.old == 0 {
				was = "0, which means no limit"
			}
			return setting.Errorf("%s may be raised when a run is resumed, but not lowered: it was %s, got %d", n.name, was, n.new)
		}
	}
	return nil
}

// same reports whether two values have the same JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// leftover matches the names of atomicfile's temporary files.
var leftover = regexp.MustCompile(`^\.(.+)\.tmp-[0-9]+$`)

// tidy removes the temporary files that killed processes left in a locked folder. Only the page is also written without
// the lock, by heed report, which takes a moment: its temporary file stays for a minute.
func tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := leftover.FindStringSubmatch(e.Name())
		if name == nil || !slices.Contains(Files(), name[1]) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); name[1] == ReportFile && (err != nil || time.Since(info.ModTime()) < time.Minute) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// checkSize returns an error if the configuration's file would be too large for ReadConfig.
func checkSize(c Config) error {
	content, err := configBytes(c)
	if err == nil && len(content) >= maxConfig {
		err = fmt.Errorf("its file would have %d bytes, but at most %d are read: its task has too many symbols, classes or words", len(content), maxConfig)
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

// writeJSON writes a file with one indented JSON value.
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
