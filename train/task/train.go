package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/runfolder/runlog"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task/judge"
)

// ErrFinished means that the run in a folder is finished.
var ErrFinished = errors.New("is finished: there is nothing to resume, unless you raise its epochs or its patience")

// Train trains the model and writes a run folder. It makes the folder if necessary. The folder gets config.json, the
// weights in model.safetensors, one line per check in history.jsonl, a checkpoint and, at the end, summary.json. The
// saved weights are the weights of the best check, or of the last check if the Config has KeepLast.
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
// Train sets the Seed, Checkpoint, Run and Resume of the options itself. The Log gets the lines of train.Fit, a line
// when training begins, the estimated memory and, for rows of a file, the estimated time.
func (t *Task) Train(ctx context.Context, dir string, options train.RunOptions) (*Summary, error) {
	start := time.Now().Add(-t.made)
	first := options.Group == nil || options.Group.Rank() == 0
	w, err := t.take(ctx, dir, options.Group)
	if w != nil {
		defer w.Release()
	}
	if err != nil {
		return nil, err
	}
	if !first || options.Log == nil {
		options.Log = io.Discard
	}
	if t.hasLinear() {
		if first {
			err = t.takeBaseline(ctx, w)
		}
		if _, err := train.Broadcast(options.Group, nil, err); err != nil {
			return nil, err
		}
		if l := t.Linear; first && l != nil {
			io.WriteString(options.Log, metrics.Text("Baseline: "+l.About(), judge.KindOf(&t.Config.Config).Metrics, l.Values)+l.Held)
			err = t.beforeEpochs(w, options.Log)
		}
		if _, err := train.Broadcast(options.Group, nil, err); err != nil {
			return nil, err
		}
	}
	sizes, validation := "", ""
	if t.kind.about().format == nil && t.DescribeData() == "" { // which otherwise has the sizes
		sizes = fmt.Sprintf(", a text of %d characters, a vocabulary of %d", t.Config.Data.Characters, t.Coder.Layout().Tokens)
	}
	if t.set.judged() == 0 {
		validation = ", without validation"
	}
	fmt.Fprintf(options.Log, "Training %s: %s%s, seed %d, folder %s%s\n", t.Config.Task.Name, t.DescribeParams(), sizes, t.Config.Seed, dir, validation)
	options.Seed, options.Run = t.Config.Seed, t.Config.id()
	options.Checkpoint, options.Resume = filepath.Join(dir, runfolder.CheckpointFile), true
	beforeSave, onMemory, onStep, onCheck := options.BeforeSave, options.OnMemory, options.OnStep, options.OnCheck
	options.BeforeSave = func() error {
		err := w.CheckLock()
		if err == nil && beforeSave != nil {
			err = beforeSave()
		}
		return err
	}
	if options.Log != io.Discard || onMemory != nil { // with OnMemory, train.Fit collects garbage first
		options.OnMemory = func(bytes int) {
			fmt.Fprintf(options.Log, "Memory: about %s\n", text.Bytes(bytes))
			if onMemory != nil {
				onMemory(bytes)
			}
		}
	}
	foretell := func(int, int, time.Duration) {}
	if t.DescribeData() != "" {
		foretell = t.foretell(options.Log)
	}
	var clock runlog.Clock
	options.OnStep = func(epoch, step int, loss float64) bool {
		foretell(epoch, step, clock.Step())
		return onStep != nil && onStep(epoch, step, loss)
	}
	options.OnCheck = func(history []train.Check, best bool) (bool, error) {
		if first && best {
			if err := t.save(dir, t.better(history[len(history)-1])); err != nil {
				return false, err
			}
		}
		if first {
			if err := cmp.Or(runlog.WriteHistory(w, history), runlog.WriteTimes(w, &clock, history)); err != nil {
				return false, err
			}
		}
		if onCheck != nil {
			return onCheck(history, best)
		}
		return false, nil
	}
	fit := train.Fit
	if t.Config.Solved() {
		fit = t.solve
	}
	result, err := fit(ctx, t.Problem(), t.Config.Training.Config, options)
	if err != nil {
		return nil, err
	}
	s := t.summary(result)
	if !s.Unfinished {
		if err := t.judgeValidation(ctx, s, first); err != nil {
			return nil, err
		}
	}
	if x := t.Mixture; first && x != (logit.Mixture{}) {
		if err := t.save(dir, x); err != nil {
			return nil, err
		}
	}
	s.Seconds = math.Round(time.Since(start).Seconds()*10) / 10
	if s.Unfinished || !first {
		return s, nil
	}
	if s.SHA256, s.WeightsSHA256, err = w.Sums(ctx); err != nil {
		return nil, err
	}
	content, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	s.SHA256[runfolder.SummaryFile] = runfolder.SummarySum(content)
	return s, w.WriteSummary(s)
}

// summary returns the Summary of a training without its Seconds and checksums.
func (t *Task) summary(r *train.Result) *Summary {
	s := &Summary{
		Task: t.Config.Task.Name, Seed: t.Config.Seed, BestEpoch: r.Best.Epoch, StoppedEarly: r.StoppedEarly, Because: r.StoppedBecause,
		TrainLoss: r.Best.TrainLoss, Params: t.Params.Count(), Best: r.Best, Unfinished: r.Unfinished,
	}
	if t.Config.Partial() {
		s.Trained = t.Trained().Count()
	}
	if l := t.Linear; l != nil {
		s.Baseline = l.Values
	}
	if n := len(r.History); n > 0 {
		s.Epochs = r.History[n-1].Epoch + 1
	}
	if r.Best.Validated {
		s.Score = t.score(r.Best.ValLoss, r.Best.Metrics)
		s.of(t.Model, s.Score)
	}
	return s
}

// save writes the weights of a model that answers with the mixture.
func (t *Task) save(dir string, x logit.Mixture) error {
	metadata := x.Metadata(t.Config.id())
	t.AddThresholds(metadata)
	return t.Trained().Save(filepath.Join(dir, runfolder.WeightsFile), metadata)
}

// beforeEpochs lets a folder answer before the first check, with the linear model, if answers will be mixed.
func (t *Task) beforeEpochs(w *runfolder.Writer, log io.Writer) error {
	if !t.mixes() || t.Config.Solved() || w.Has(runfolder.WeightsFile) {
		return nil
	}
	if t.Config.From.Dir != "" {
		gain := ""
		if t.kind.about().classes { // docs/finetuning.md has the figures
			gain = ", which usually brings 1 to 3 points more"
		}
		fmt.Fprintf(log, "The run answers so until a check is better; interrupting it keeps the better of both. In the end it mixes them%s\n", gain)
	}
	return t.save(w.Dir, logit.Mixture{Linear: 1})
}

// better returns the better one of the linear model and of the network at a check: an interrupted training answers with
// it.
func (t *Task) better(c train.Check) logit.Mixture {
	l := t.Linear
	if !t.Config.Mix || l == nil {
		return logit.Mixture{}
	}
	names := []string{judge.KindOf(&t.Config.Config).Score.Name, "mean_absolute_error"} // one row has no r2
	for _, m := range judge.KindOf(&t.Config.Config).Metrics {
		linear, known := l.Values[m.Name]
		if network := c.Metrics["val_"+m.Name]; known && slices.Contains(names, m.Name) && (network > linear) == !m.Lower {
			return logit.Mixture{}
		}
	}
	return logit.Mixture{Linear: 1}
}

// take lets the first process lock the folder, and begin or resume a run there. All processes return the same error.
func (t *Task) take(ctx context.Context, dir string, group train.Group) (w *runfolder.Writer, err error) {
	var finished []byte // one byte if the run is finished, otherwise empty
	if group == nil || group.Rank() == 0 {
		if _, err = configBytes(t.Config); err == nil { // before making the folder
			w, err = runfolder.Lock(dir)
		}
		if err == nil {
			err = t.begin(ctx, w)
		}
		if errors.Is(err, ErrFinished) { // all processes return this error
			finished, err = []byte{1}, nil
		}
	}
	finished, err = train.Broadcast(group, finished, err)
	if err == nil && len(finished) > 0 {
		err = fmt.Errorf("the run in %s %w", dir, ErrFinished)
	}
	return w, err
}

// begin begins a run in an empty folder. If the folder has a run with the same configuration, begin prepares it for
// resuming: it writes the higher MaxEpochs and Patience to config.json, and removes a summary that lists missing files.
func (t *Task) begin(ctx context.Context, w *runfolder.Writer) error {
	if t.unstarted != nil && !w.Has(runfolder.CheckpointFile) {
		return t.unstarted
	}
	content, err := configBytes(t.Config)
	if err != nil {
		return err
	}
	if err := w.Tidy(); err != nil {
		return err
	}
	if begun, err := w.HasRun(); err != nil {
		return err
	} else if !begun {
		if err := w.WriteTokenizers(t.Config.Tokenizers()); err != nil {
			return err
		}
		if t.Config.Published() {
			if err := w.WritePublished(t.Config.Archive); err != nil {
				return err
			}
		}
		return w.WriteConfig(content)
	}
	saved, err := ReadConfig(w.Dir, t.Config.Task)
	if err != nil {
		return err
	}
	raised := saved
	raised.Training.MaxEpochs, raised.Training.Stopping.Patience = t.Config.Training.MaxEpochs, t.Config.Training.Stopping.Patience
	raised.MoveTo(t.Config.Config)
	saved.divide(t.kind.about())
	if err := saved.Decide(t.Coder.Layout()); err != nil || !runfolder.SameJSON(raised, t.Config) {
		return fmt.Errorf("%s holds a run with another configuration: choose another folder", w.Dir)
	}
	if err := w.CheckSizes(t.Params.Count()); err != nil {
		return err
	}
	finished, err := w.Finished(ctx)
	if err != nil {
		return err
	}
	moved := saved
	if moved.MoveTo(t.Config.Config); finished && runfolder.SameJSON(moved, t.Config) {
		return ErrFinished
	}
	if runfolder.SameJSON(saved, t.Config) && !w.Has(runfolder.SummaryFile) {
		return nil
	}
	if err := saved.raisedTo(t.Config); err != nil {
		return err
	}
	if err := w.Reopen(ctx, finished); err != nil {
		return err
	}
	return w.WriteConfig(content)
}
