package train

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/train/optim"
)

// A checkpoint is a safetensors file. It holds the current and the best value of each parameter under these prefixes
// and, of each that the solver steps, what the solver remembers, under the names that it has for that; the rest is JSON
// in the metadata.
const (
	currentPrefix = "param."
	bestPrefix    = "best."
	stateKey      = "heed.state"
)

// checkpointState is what a checkpoint holds beside tensors.
type checkpointState struct {
	Of       string        `json:"of,omitempty"` // Config's Run
	Run      runState      `json:"run"`
	Step     int           `json:"step"`  // how many have been taken
	Steps    int           `json:"steps"` // of the solver
	Since    sums          `json:"since"` // the last check
	Stopping EarlyStopping `json:"stopping"`
	History  []Check       `json:"history"`
}

// runState is what must not change from one part of a run to the next, as it says which batches steps take.
type runState struct {
	Examples     int `json:"examples"`
	BatchSize    int `json:"batch_size"`
	MicroBatches int `json:"micro_batches"`
	CheckEvery   int `json:"check_every"`
}

func (r runState) String() string {
	return fmt.Sprintf("%d examples, a BatchSize of %d, %d MicroBatches and a CheckEvery of %d", r.Examples, r.BatchSize, r.MicroBatches, r.CheckEvery)
}

func (f *fit) runState() runState {
	return runState{f.Train.Len, f.BatchSize, f.train.micro, f.CheckEvery}
}

// checkpoint is a checkpoint as it was read.
type checkpoint struct {
	state   checkpointState
	tensors map[string]safetensors.Tensor
}

// save has the first process write the checkpoint.
func (f *fit) save() error {
	memories, err := f.memories()
	if err == nil {
		if f.team.rank == 0 {
			err = f.write(memories)
		}
		_, err = f.team.agree(nil, err)
	}
	if err != nil {
		err = fmt.Errorf("train: writing the checkpoint: %w", err)
	}
	return err
}

// write writes the checkpoint, with what the solver remembers of each learnable.
func (f *fit) write(memories [][]optim.Memory) error {
	state, err := json.Marshal(checkpointState{f.Config.Run, f.runState(), f.step, f.solver.Steps, f.since, f.stopping, f.history})
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
		for _, m := range memories[i] {
			add(m.Name+"."+n.Name(), m.Value)
		}
	}
	return atomicfile.WriteFile(f.Checkpoint, func(w io.Writer) error {
		return safetensors.Write(w, tensors, map[string]string{stateKey: string(state)})
	})
}

// resume has all processes take over the checkpoint that the first one reads.
func (f *fit) resume() error {
	c, err := readCheckpoint(f.Checkpoint, f.team)
	if err == nil {
		_, err = f.team.agree(nil, f.restore(c))
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
	text, ok := metadata[stateKey]
	if !ok {
		return nil, fmt.Errorf("train: %s is no checkpoint: its metadata has no %q", path, stateKey)
	}
	if err = jsonkeys.Check([]byte(text), nil); err == nil {
		err = json.Unmarshal([]byte(text), &c.state)
	}
	if err != nil {
		return nil, fmt.Errorf("train: the checkpoint %s has a state that can't be read: %w", path, err)
	}
	s := c.state
	last := Check{}
	if n := len(s.History); n > 0 {
		last = s.History[n-1]
	}
	if s.Stopping.Checks != len(s.History) || s.Stopping.BestCheck < 0 || s.Stopping.BestCheck > 0 && s.Stopping.BestCheck >= len(s.History) ||
		s.Step < 1 || s.Steps < 1 || last.Step < 0 || last.Step > s.Step {
		return nil, fmt.Errorf("train: the checkpoint %s has a state that contradicts itself: %d checks of history, the last after %d steps, %d observed, best %d, %d steps, %d of the solver",
			path, len(s.History), last.Step, s.Stopping.Checks, s.Stopping.BestCheck, s.Step, s.Steps)
	}
	return c, nil
}

// restore takes over a checkpoint, all of it or, on an error, nothing.
func (f *fit) restore(c *checkpoint) error {
	if saved, now := c.state.Of, f.Config.Run; saved != now {
		return fmt.Errorf("train: the checkpoint %s belongs to another run: to %.100q, not to %.100q: one of them was changed or swapped, restore it", f.Checkpoint, saved, now)
	}
	if saved, now := c.state.Run, f.runState(); saved != now {
		return fmt.Errorf("train: the checkpoint %s is of a run of %v, not of %v: resume with the former", f.Checkpoint, saved, now)
	}
	if n := len(c.state.Since.Metrics); n > 0 && n != len(f.train.workers[0].first.metrics) {
		return fmt.Errorf("train: the checkpoint %s is of a run with %d metrics, not %d: resume with the former", f.Checkpoint, n, len(f.train.workers[0].first.metrics))
	}
	if saved := c.state.Stopping; saved.KeepLast != f.KeepLast {
		return fmt.Errorf("train: the checkpoint %s is of a run with KeepLast %t: resume with that", f.Checkpoint, saved.KeepLast)
	} else if saved.monitor() != f.monitor() || saved.sign() != f.sign() {
		return fmt.Errorf("train: the checkpoint %s is of a run that monitored %s, in the mode %q, not %s, in the mode %q: resume with the former", f.Checkpoint, saved.monitor(), saved.Mode, f.monitor(), f.Mode)
	}
	type pair struct {
		from safetensors.Tensor
		to   *tensor.Dense
	}
	var pairs []pair
	match := func(name string, to *tensor.Dense) error {
		from, ok := c.tensors[name]
		if !ok {
			return fmt.Errorf("train: the checkpoint %s is of another model or solver: it has no %q", f.Checkpoint, name)
		}
		if !slices.Equal(from.Shape, []int(to.Shape())) || fmt.Sprintf("%T", from.Data) != fmt.Sprintf("%T", to.Data()) {
			return fmt.Errorf("train: the checkpoint %s is of another model: %q must be %T of shape %v, got %T of %v", f.Checkpoint, name, to.Data(), to.Shape(), from.Data, tensor.Shape(from.Shape))
		}
		pairs = append(pairs, pair{from, to})
		return nil
	}
	for i, p := range f.Params.All() {
		if err := match(currentPrefix+p.Name, p.Value); err != nil {
			return err
		}
		if err := match(bestPrefix+p.Name, f.best[i]); err != nil {
			return err
		}
	}
	for _, i := range f.train.part() {
		n := f.train.learnables[i]
		memory, err := f.solver.State(f.train.model, i)
		if err != nil {
			return fmt.Errorf("train: resuming from %s: %w", f.Checkpoint, err)
		}
		for _, m := range memory {
			if err := match(m.Name+"."+n.Name(), m.Value); err != nil {
				return err
			}
		}
	}
	for _, p := range pairs {
		switch to := p.to.Data().(type) {
		case []float32:
			copy(to, p.from.Data.([]float32))
		case []float64:
			copy(to, p.from.Data.([]float64))
		}
	}
	f.solver.Steps = c.state.Steps
	f.step, f.since, f.history = c.state.Step, c.state.Since, c.state.History
	f.stopping = c.state.Stopping
	f.stopping.Stopping, f.stopping.steps = f.Stopping, f.CheckEvery > 0
	return nil
}
