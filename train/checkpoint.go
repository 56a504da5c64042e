package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint is a safetensors file. It holds the current and the best value of each parameter, under the first two
// prefixes. For each parameter that the solver updates, it also holds the average, if there is one, and the solver's
// memory, under the solver's names. The metadata holds the rest as JSON.
const (
	currentPrefix = "param."
	bestPrefix    = "best."
	averagePrefix = "average."
	stateKey      = "heed.state"
)

// checkpointState is the part of a checkpoint that is stored as JSON.
type checkpointState struct {
	Run         string        `json:"of,omitempty"` // RunOptions.Run
	Settings    settings      `json:"run"`
	Step        int           `json:"step"`  // number of steps taken
	SolverSteps int           `json:"steps"` // Steps of the solver
	Since       window        `json:"since"` // steps since the last check
	Stopping    EarlyStopping `json:"stopping"`
	History     []Check       `json:"history"`

	Plateau *optim.Plateau `json:"plateau,omitempty"`

	Frozen map[string]string `json:"frozen,omitempty"` // checksums of frozen parameters, by name

	// Instructions names the processor's instructions that computed the last steps, such as avx512+amx or avx2. Results
	// of different instructions differ in their last bits. It is empty in a checkpoint of an older version.
	Instructions string `json:"instructions,omitempty"`
}

// save collects the solver's memory in the first process, which writes the checkpoint. If there is no Checkpoint, save
// writes nothing. It returns the error of checkFinite, and then the old checkpoint stays.
func (f *fit) save() error {
	if err := f.checkFinite(); err != nil || f.Checkpoint == "" {
		return err
	}
	memories, err := f.train.memories(f.solver)
	if err == nil {
		if f.team.rank == 0 {
			err = f.write(memories)
		}
		_, err = f.team.agree(nil, err)
	}
	if err != nil {
		return fmt.Errorf("train: writing the checkpoint: %w", err)
	}
	f.unsaved, f.savedAt = false, time.Now()
	return nil
}

// write writes the checkpoint. memories holds the solver's memory for each learnable.
func (f *fit) write(memories [][]optim.Memory) error {
	if f.BeforeSave != nil {
		if err := f.BeforeSave(); err != nil {
			return err
		}
	}
	state, err := json.Marshal(checkpointState{
		Run: f.Run, Settings: f.settings(), Step: f.step, SolverSteps: f.solver.Steps,
		Since: f.since, Stopping: f.stopping, History: f.history, Plateau: f.plateau, Frozen: f.frozen,
		Instructions: kernel.Instructions(),
	})
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	for name, t := range f.tensors(memories) {
		tensors = append(tensors, safetensors.Tensor{Name: name, Shape: t.Shape(), Data: t.Data()})
	}
	return atomicfile.WriteFile(f.Checkpoint, func(w io.Writer) error {
		return safetensors.Write(w, tensors, map[string]string{stateKey: string(state)})
	})
}

// tensors yields the tensors of a checkpoint with their names: the current and best parameters, the averages, and the
// solver's memory. memories holds the memory for each learnable.
func (f *fit) tensors(memories [][]optim.Memory) iter.Seq2[string, *tensor.Dense] {
	return func(yield func(string, *tensor.Dense) bool) {
		for i, p := range f.kept {
			if !yield(currentPrefix+p.Name, p.Value) || !yield(bestPrefix+p.Name, f.best[i]) {
				return
			}
		}
		for i, n := range f.train.learnables {
			if f.average != nil && !yield(averagePrefix+n.Name(), f.average.Values[i]) {
				return
			}
			for _, m := range memories[i] {
				if !yield(m.Name+"."+n.Name(), m.Value) {
					return
				}
			}
		}
	}
}

// resume restores the checkpoint in all processes, if it exists. Only the first process reads the file.
func (f *fit) resume() error {
	exists := []float64{1}
	if _, err := os.Stat(f.Checkpoint); f.team.rank == 0 && errors.Is(err, fs.ErrNotExist) {
		exists[0] = 0
	}
	exists, err := f.team.agree(exists, nil)
	if err != nil || exists[0] == 0 {
		return err
	}
	tensors, metadata, err := f.team.readFile(f.Checkpoint)
	if err != nil {
		return fmt.Errorf("train: reading the checkpoint: %w", err)
	}
	saved := map[string]safetensors.Tensor{}
	for _, t := range tensors {
		saved[t.Name] = t
	}
	state, err := readState(f.Checkpoint, metadata)
	if err == nil {
		_, err = f.team.agree(nil, f.load(state, saved))
	}
	if err == nil && f.unsaved { // training may end before the next save
		err = f.save()
	}
	return err
}

// readState decodes the state in a checkpoint's metadata.
func readState(path string, metadata map[string]string) (s checkpointState, err error) {
	text, ok := metadata[stateKey]
	if !ok {
		return s, fmt.Errorf("train: %s isn't a checkpoint: its metadata has no %q", path, stateKey)
	}
	if err = jsonkeys.Check([]byte(text), nil); err == nil {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		return s, fmt.Errorf("train: the checkpoint %s has a state that can't be read: %w", path, err)
	}
	if two := s.contradiction(); two != "" {
		return s, fmt.Errorf("train: the checkpoint %s has a state that contradicts itself: %s", path, two)
	}
	return s, nil
}

// Progress describes how far training had come when a checkpoint was written.
type Progress struct {
	Run     string  // RunOptions.Run
	Step    int     // number of steps taken
	History []Check // checks made
}

// ReadProgress reads the Progress from the header of the checkpoint at path. It doesn't read the tensors, so it doesn't
// verify the checksum of the file. If there is no such file, the error wraps fs.ErrNotExist. It is also an error if the
// file isn't a checkpoint or if its state contradicts itself.
func ReadProgress(path string) (Progress, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Progress{}, fmt.Errorf("train: reading the checkpoint's header: %w", err)
	}
	defer f.Close()
	s, err := readState(path, f.Metadata)
	return Progress{s.Run, s.Step, s.History}, err
}

// contradiction returns two facts of the state that can't both be true, in words, or the empty string if there are
// none.
func (s checkpointState) contradiction() string {
	best, checks, since := s.Stopping.BestCheck, len(s.History), s.Since.Steps
	last := 0
	for i, c := range s.History {
		if c.Step <= last {
			return fmt.Sprintf("check %d of its history is after step %d, but the check before is after step %d", i, c.Step, last)
		}
		last = c.Step
	}
	switch {
	case s.Step < 1:
		return fmt.Sprintf("it counts %d steps, but must count at least 1", s.Step)
	case s.SolverSteps < s.Step:
		return fmt.Sprintf("it counts %d steps, but its solver counts %d", s.Step, s.SolverSteps)
	case s.Stopping.Checks != checks:
		return fmt.Sprintf("its history has %d checks, but its early stopping has observed %d", checks, s.Stopping.Checks)
	case best < 0 || best > 0 && best >= checks:
		return fmt.Sprintf("its best check is number %d, from 0, but its history has %d checks", best, checks)
	case last > s.Step || since != s.Step-last:
		return fmt.Sprintf("it counts %d steps, but its last check is after step %d, with %d steps since then", s.Step, last, since)
	}
	return ""
}

// load sets the state, the parameters and the solver's memory to those of a checkpoint. If it returns an error, it has
// changed no parameter.
func (f *fit) load(s checkpointState, saved map[string]safetensors.Tensor) error {
	err := cmp.Or(f.suits(s), f.suitsFrozen(s, saved))
	var copies []func()
	if err == nil {
		copies, err = f.copies(saved)
	}
	if err != nil {
		return fmt.Errorf("train: the checkpoint %s %w", f.Checkpoint, err)
	}
	for _, copy := range copies {
		copy()
	}
	f.solver.Steps = s.SolverSteps
	f.step, f.since, f.history = s.Step, s.Since, s.History
	f.unsaved = !reflect.DeepEqual(s.Stopping.StoppingConfig, f.Stopping)
	f.stopping = s.Stopping
	f.stopping.StoppingConfig, f.stopping.steps = f.Stopping, f.CheckEvery > 0
	if f.plateau != nil {
		*f.plateau = *s.Plateau
	}
	if f.average != nil {
		f.average.Updates = f.step // one after each step
	}
	if before, now := s.Instructions, kernel.Instructions(); before != "" && before != now {
		fmt.Fprintf(f.Log, "Resuming with the instructions %s after %s: results differ in their last bits from a run on one kind of processor\n", now, before)
	}
	return nil
}

// suits returns an error if the state belongs to another run or has other settings. The error continues a sentence that
// starts with the checkpoint's name.
func (f *fit) suits(s checkpointState) error {
	if s.Run != f.Run {
		return fmt.Errorf("belongs to another run: to %.100q, not to %.100q: a file was changed or swapped, restore it", s.Run, f.Run)
	}
	if differ := s.Settings.unlike(f.settings()); differ != "" {
		return fmt.Errorf("was made with other settings: %s: resume with the settings of the checkpoint", differ)
	}
	if (s.Plateau != nil) != (f.plateau != nil) {
		return errors.New("contradicts itself: it must have both the settings and the state of a Plateau, or neither")
	}
	for i, check := range s.History {
		if epoch := (check.Step - 1) / f.plan.steps; check.Epoch != epoch {
			return fmt.Errorf("contradicts the data: check %d of its history is after step %d in epoch %d, but with %d steps per epoch this step is in epoch %d", i, check.Step, check.Epoch, f.plan.steps, epoch)
		}
	}
	metrics := f.train.workers[0].first.metrics
	if n, now := len(s.Since.Metrics), len(metrics); n > 0 && n != now {
		return fmt.Errorf("was made with %d metrics, not %d: resume with the metrics of the checkpoint", n, now)
	}
	for i, sums := range s.Since.Metrics {
		if n, now := len(sums), metrics[i].size(); n != now {
			return fmt.Errorf("has %d sums of the metric %s, not %d: resume with the metrics of the checkpoint", n, metrics[i].Name, now)
		}
	}
	if s.Stopping.KeepLast != f.Stopping.KeepLast {
		return fmt.Errorf("was made with KeepLast %t: resume with the same value", s.Stopping.KeepLast)
	}
	if s.Stopping.monitor() != f.Stopping.monitor() || s.Stopping.sign() != f.Stopping.sign() {
		return fmt.Errorf("was made with Monitor %s and Mode %q, not %s and %q: resume with the settings of the checkpoint", s.Stopping.monitor(), s.Stopping.Mode, f.Stopping.monitor(), f.Stopping.Mode)
	}
	return nil
}

// suitsFrozen compares the frozen parameters with those of a checkpoint. A parameter that was trained and is frozen now
// has its values in the checkpoint: suitsFrozen adds it to f.kept. Its error continues a sentence that starts with the
// checkpoint's name.
func (f *fit) suitsFrozen(s checkpointState, saved map[string]safetensors.Tensor) error {
	var trained, other []string
	for _, q := range f.Params.All() {
		sum, frozen := f.frozen[q.Name]
		before, wasFrozen := s.Frozen[q.Name]
		switch _, isSaved := saved[currentPrefix+q.Name]; {
		case wasFrozen && !frozen:
			trained = append(trained, q.Name)
		case frozen && isSaved:
			f.kept, f.best = append(f.kept, q), append(f.best, q.Value.Clone().(*tensor.Dense))
			delete(f.frozen, q.Name)
		case frozen && s.Frozen != nil && sum != before: // a checkpoint of an older version has no checksums
			other = append(other, q.Name)
		}
	}
	list := func(names []string) string {
		return text.List(len(names), 3, ", ", func(i int) string { return strconv.Quote(names[i]) })
	}
	switch {
	case trained != nil:
		return fmt.Errorf("was made while these parameters were frozen: %s: freeze them, or begin a new training with the parameters of this one", list(trained))
	case other != nil:
		return fmt.Errorf("was made with other values of these frozen parameters: %s: load the values that they had, such as those of a pretrained model", list(other))
	}
	return nil
}

// copies returns functions that copy the tensors of a checkpoint to their targets. Of the solver's memory, they copy
// only the part of this process. Its error continues a sentence that starts with the checkpoint's name.
func (f *fit) copies(saved map[string]safetensors.Tensor) (copies []func(), err error) {
	memories, err := f.train.states(f.solver, f.train.part())
	if err == nil && f.average != nil && f.average.Values == nil {
		err = f.average.Update(f.train.model) // allocates them
	}
	if err != nil {
		return nil, fmt.Errorf("can't be resumed: %w", err)
	}
	for name, target := range f.tensors(memories) {
		t, ok := saved[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("belongs to another model or solver: it has no %q", name)
		case !slices.Equal(t.Shape, []int(target.Shape())) || reflect.TypeOf(t.Data) != reflect.TypeOf(target.Data()):
			return nil, fmt.Errorf("belongs to another model: %q must be %T of shape %v, got %T of shape %v", name, target.Data(), target.Shape(), t.Data, tensor.Shape(t.Shape))
		case notFinite(t.Data) >= 0:
			return nil, fmt.Errorf("can't be resumed: %q isn't finite at element %d: restore the checkpoint, or train again", name, notFinite(t.Data))
		}
		copies = append(copies, func() { reflect.Copy(reflect.ValueOf(target.Data()), reflect.ValueOf(t.Data)) })
	}
	return copies, nil
}
