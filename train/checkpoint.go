package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint is a safetensors file. It holds the current and the best value of each parameter under these prefixes
// and, of each that the solver steps, its average, if there is one, and what the solver remembers, under the names that
// it has for that; the rest is JSON in the metadata.
const (
	currentPrefix = "param."
	bestPrefix    = "best."
	averagePrefix = "average."
	stateKey      = "heed.state"
)

// checkpointState is what a checkpoint holds beside tensors.
type checkpointState struct {
	Run         string        `json:"of,omitempty"` // the Call's
	Settings    settings      `json:"run"`
	Step        int           `json:"step"`  // how many have been taken
	SolverSteps int           `json:"steps"` // its own count
	Since       window        `json:"since"` // the last check
	Stopping    EarlyStopping `json:"stopping"`
	History     []Check       `json:"history"`

	Plateau *optim.Plateau `json:"plateau,omitempty"`
}

// settings are what must not change from one part of a run to the next: which batches steps take follows from them.
type settings struct {
	Examples     int `json:"examples"`
	BatchSize    int `json:"batch_size"`
	MicroBatches int `json:"micro_batches"`
	CheckEvery   int `json:"check_every"`

	Validation int    `json:"validation"` // examples
	Rule       string `json:"rule"`       // of the solver

	Seed  uint64 `json:"seed"`
	Order Order  `json:"order"`
	Steps int    `json:"epoch"` // in an epoch, which buckets decide too

	Average float64          `json:"average,omitempty"`
	Plateau optim.Plateauing `json:"plateau,omitzero"`
}

// unlike says what differs from another one, or nothing.
func (r settings) unlike(other settings) string {
	var differ []string
	for _, f := range []struct {
		name       string
		mine, that any
	}{
		{"Train.Len", r.Examples, other.Examples}, {"BatchSize", r.BatchSize, other.BatchSize}, {"MicroBatches", r.MicroBatches, other.MicroBatches},
		{"CheckEvery", r.CheckEvery, other.CheckEvery}, {"Validation.Len", r.Validation, other.Validation}, {"rule", r.Rule, other.Rule},
		{"Seed", r.Seed, other.Seed}, {"Order", r.Order, other.Order}, {"steps in an epoch", r.Steps, other.Steps},
		{"Average", r.Average, other.Average}, {"Plateau", r.Plateau, other.Plateau},
	} {
		if f.mine != f.that {
			differ = append(differ, fmt.Sprintf("%s %+v, not %+v", f.name, f.mine, f.that))
		}
	}
	return strings.Join(differ, "; ")
}

func (f *fit) settings() settings {
	r := settings{
		Examples: f.Train.Len, BatchSize: f.BatchSize, MicroBatches: f.train.micro, CheckEvery: f.CheckEvery,
		Validation: f.Validation.Len, Seed: f.Seed, Order: f.Train.Order, Steps: f.plan.steps,
		Average: f.Optimizer.Average, Plateau: f.Optimizer.Plateau,
	}
	if f.solver != nil {
		r.Rule = fmt.Sprintf("%T", cmp.Or(f.solver.Rule, optim.Rule(optim.AdamW{})))
	}
	return r
}

// checkpoint is a checkpoint as it was read.
type checkpoint struct {
	state   checkpointState
	tensors map[string]safetensors.Tensor
}

// save has the first process write the checkpoint, if there is to be one.
func (f *fit) save() error {
	if f.Checkpoint == "" {
		return nil
	}
	memories, err := f.memories()
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

// write writes the checkpoint, with what the solver remembers of each learnable.
func (f *fit) write(memories [][]optim.Memory) error {
	if f.BeforeSave != nil {
		if err := f.BeforeSave(); err != nil {
			return err
		}
	}
	state, err := json.Marshal(checkpointState{
		Run: f.Run, Settings: f.settings(), Step: f.step, SolverSteps: f.solver.Steps,
		Since: f.since, Stopping: f.stopping, History: f.history, Plateau: f.plateau,
	})
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	add := func(name string, t *tensor.Dense) {
		tensors = append(tensors, safetensors.Tensor{Name: name, Shape: t.Shape(), Data: t.Data()})
	}
	for i, p := range f.Params.All() {
		add(currentPrefix+p.Name, p.Value)
		add(bestPrefix+p.Name, f.best[i])
	}
	for i, n := range f.train.learnables {
		if f.average != nil {
			add(averagePrefix+n.Name(), f.average.Values[i])
		}
		for _, m := range memories[i] {
			add(m.Name+"."+n.Name(), m.Value)
		}
	}
	return atomicfile.WriteFile(f.Checkpoint, func(w io.Writer) error {
		return safetensors.Write(w, tensors, map[string]string{stateKey: string(state)})
	})
}

// resume has all processes take over the checkpoint that the first one reads, if there is one.
func (f *fit) resume() error {
	there := []float64{1}
	if _, err := os.Stat(f.Checkpoint); f.team.rank == 0 && errors.Is(err, fs.ErrNotExist) {
		there[0] = 0
	}
	there, err := f.team.agree(there, nil)
	if err != nil || there[0] == 0 {
		return err
	}
	c, err := readCheckpoint(f.Checkpoint, f.team)
	if err == nil {
		_, err = f.team.agree(nil, f.restore(c))
	}
	if err == nil && f.unsaved { // what follows may end training at once
		err = f.save()
	}
	return err
}

func readCheckpoint(path string, team *team) (*checkpoint, error) {
	tensors, metadata, err := team.readFile(path)
	if err != nil {
		return nil, fmt.Errorf("train: reading the checkpoint %s: %w", path, err)
	}
	c := &checkpoint{tensors: map[string]safetensors.Tensor{}}
	for _, t := range tensors {
		c.tensors[t.Name] = t
	}
	c.state, err = readState(path, metadata)
	return c, err
}

// readState returns the state in a checkpoint's metadata.
func readState(path string, metadata map[string]string) (s checkpointState, err error) {
	text, ok := metadata[stateKey]
	if !ok {
		return s, fmt.Errorf("train: %s is no checkpoint: its metadata has no %q", path, stateKey)
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

// Progress is how far training had got when a checkpoint was written.
type Progress struct {
	Run     string  // the Call's
	Step    int     // how many had been taken
	History []Check // the checks up to then
}

// ReadProgress reads the header of a checkpoint and none of its tensors. The checkpoint's checksum is of the whole file
// and isn't verified. It is an error if there is no checkpoint at path, which wraps fs.ErrNotExist where there is no
// file, or if what it says of its training contradicts itself.
func ReadProgress(path string) (Progress, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Progress{}, fmt.Errorf("train: reading the checkpoint's header: %w", err)
	}
	defer f.Close()
	s, err := readState(path, f.Metadata)
	return Progress{s.Run, s.Step, s.History}, err
}

// contradiction returns two things of the state that can't both be, in words; nothing if all fits.
func (s checkpointState) contradiction() string {
	best, checks, since := s.Stopping.BestCheck, len(s.History), s.Since.Steps
	last := 0
	for i, c := range s.History {
		if c.Step <= last {
			return fmt.Sprintf("check %d of its history is after %d steps, the one before after %d", i, c.Step, last)
		}
		last = c.Step
	}
	switch {
	case s.Step < 1:
		return fmt.Sprintf("it was written after a step, but says that %d have been taken", s.Step)
	case s.SolverSteps < s.Step:
		return fmt.Sprintf("%d steps have been taken, but %d by its solver", s.Step, s.SolverSteps)
	case s.Stopping.Checks != checks:
		return fmt.Sprintf("its history has %d checks, but %d have been observed to stop by", checks, s.Stopping.Checks)
	case best < 0 || best > 0 && best >= checks:
		return fmt.Sprintf("the best check is number %d, but its history has %d", best, checks)
	case last > s.Step || since != s.Step-last:
		return fmt.Sprintf("%d steps have been taken, but the last check was after %d and %d since then", s.Step, last, since)
	}
	return ""
}

// restore takes over a checkpoint, all of it or, on an error, nothing.
func (f *fit) restore(c *checkpoint) error {
	if err := f.suits(c.state); err != nil {
		return fmt.Errorf("train: the checkpoint %s %w", f.Checkpoint, err)
	}
	copies, err := f.copies(c.tensors)
	if err != nil {
		return fmt.Errorf("train: the checkpoint %s %w", f.Checkpoint, err)
	}
	for _, p := range copies {
		switch to := p.to.Data().(type) {
		case []float32:
			copy(to, p.from.Data.([]float32))
		case []float64:
			copy(to, p.from.Data.([]float64))
		}
	}
	f.solver.Steps = c.state.SolverSteps
	f.step, f.since, f.history = c.state.Step, c.state.Since, c.state.History
	f.unsaved = !reflect.DeepEqual(c.state.Stopping.Stopping, f.Stopping)
	f.stopping = c.state.Stopping
	f.stopping.Stopping, f.stopping.steps = f.Stopping, f.CheckEvery > 0
	if f.plateau != nil {
		*f.plateau = *c.state.Plateau
	}
	return nil
}

// suits returns an error, which goes on from the checkpoint's name, if the state of one isn't of this run.
func (f *fit) suits(s checkpointState) error {
	if s.Run != f.Run {
		return fmt.Errorf("belongs to another run: to %.100q, not to %.100q: one of them was changed or swapped, restore it", s.Run, f.Run)
	}
	if differ := s.Settings.unlike(f.settings()); differ != "" {
		return fmt.Errorf("is of a run with other settings: %s: resume with the former", differ)
	}
	if (s.Plateau != nil) != (f.plateau != nil) {
		return errors.New("contradicts itself: it must say what a Plateau has observed if it has the settings of one, and only then")
	}
	for i, check := range s.History {
		if epoch := (check.Step - 1) / f.plan.steps; check.Epoch != epoch {
			return fmt.Errorf("contradicts the data: check %d of its history, after %d steps, is of epoch %d, but with %d steps in an epoch it is of epoch %d", i, check.Step, check.Epoch, f.plan.steps, epoch)
		}
	}
	if n, now := len(s.Since.Metrics), len(f.train.workers[0].first.metrics); n > 0 && n != now {
		return fmt.Errorf("is of a run with %d metrics, not %d: resume with the former", n, now)
	}
	if s.Stopping.KeepLast != f.Stopping.KeepLast {
		return fmt.Errorf("is of a run with KeepLast %t: resume with that", s.Stopping.KeepLast)
	}
	if s.Stopping.monitor() != f.Stopping.monitor() || s.Stopping.sign() != f.Stopping.sign() {
		return fmt.Errorf("is of a run that monitored %s, in the mode %q, not %s, in the mode %q: resume with the former", s.Stopping.monitor(), s.Stopping.Mode, f.Stopping.monitor(), f.Stopping.Mode)
	}
	return nil
}

// savedCopy is a tensor of a checkpoint with the tensor that is to have its numbers.
type savedCopy struct {
	from safetensors.Tensor
	to   *tensor.Dense
}

// copies returns where the tensors of a checkpoint belong: as the parameters, their best values and averages, and what
// the solver remembers. Its error goes on from the checkpoint's name.
func (f *fit) copies(saved map[string]safetensors.Tensor) ([]savedCopy, error) {
	var copies []savedCopy
	var err error
	match := func(name string, to *tensor.Dense) {
		from, ok := saved[name]
		switch {
		case err != nil:
		case !ok:
			err = fmt.Errorf("is of another model or solver: it has no %q", name)
		case !slices.Equal(from.Shape, []int(to.Shape())) || fmt.Sprintf("%T", from.Data) != fmt.Sprintf("%T", to.Data()):
			err = fmt.Errorf("is of another model: %q must be %T of shape %v, got %T of %v", name, to.Data(), to.Shape(), from.Data, tensor.Shape(from.Shape))
		case notFinite(from) >= 0:
			err = fmt.Errorf("goes on from finite numbers, but %q isn't finite at element %d: restore it, or train again", name, notFinite(from))
		}
		copies = append(copies, savedCopy{from, to})
	}
	for i, p := range f.Params.All() {
		match(currentPrefix+p.Name, p.Value)
		match(bestPrefix+p.Name, f.best[i])
	}
	if f.average != nil {
		if f.average.Values == nil {
			if err := f.average.Update(f.train.model); err != nil { // which makes them
				return nil, fmt.Errorf("can't be resumed: %w", err)
			}
		}
		for i, n := range f.train.learnables {
			match(averagePrefix+n.Name(), f.average.Values[i])
		}
	}
	for _, i := range f.train.part() {
		memory, err := f.solver.State(f.train.model, i)
		if err != nil {
			return nil, fmt.Errorf("can't be resumed: %w", err)
		}
		n := f.train.learnables[i]
		for _, m := range memory {
			match(m.Name+"."+n.Name(), m.Value)
		}
	}
	return copies, err
}

// notFinite returns the place of the first number that is NaN or infinite, or -1.
func notFinite(t safetensors.Tensor) int {
	switch values := t.Data.(type) {
	case []float32:
		return slices.IndexFunc(values, func(x float32) bool { return x-x != 0 })
	case []float64:
		return slices.IndexFunc(values, func(x float64) bool { return x-x != 0 })
	}
	return -1
}
