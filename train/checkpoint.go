package train

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
)

// A checkpoint is a safetensors file. It holds the current and the best value of each parameter and, of each that the
// solver steps, the solver's two running means, under these prefixes; the rest is JSON in the metadata.
const (
	currentPrefix = "param."
	bestPrefix    = "best."
	firstPrefix   = "adamw.first."
	secondPrefix  = "adamw.second."
	stateKey      = "heed.state"
)

// checkpointState is what a checkpoint holds beside tensors.
type checkpointState struct {
	Steps        int           `json:"steps"` // of the solver
	MicroBatches int           `json:"micro_batches"`
	Stopping     EarlyStopping `json:"stopping"`
	History      []Epoch       `json:"history"`
}

// checkpoint is a checkpoint as it was read.
type checkpoint struct {
	state   checkpointState
	tensors map[string]safetensors.Tensor
}

// save writes the checkpoint.
func (f *fit) save() error {
	state, err := json.Marshal(checkpointState{Steps: f.adam.state.steps, MicroBatches: f.train.micro, Stopping: f.stopping, History: f.history})
	if err != nil {
		return fmt.Errorf("train: writing the checkpoint: %w", err)
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
		add(firstPrefix+n.Name(), f.adam.state.first[i])
		add(secondPrefix+n.Name(), f.adam.state.second[i])
	}
	err = atomicfile.WriteFile(f.Checkpoint, func(w io.Writer) error {
		return safetensors.Write(w, tensors, map[string]string{stateKey: string(state)})
	})
	if err != nil {
		return fmt.Errorf("train: writing the checkpoint: %w", err)
	}
	return nil
}

func readCheckpoint(path string) (*checkpoint, error) {
	tensors, metadata, err := safetensors.ReadFile(path)
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
	if err := json.Unmarshal([]byte(text), &c.state); err != nil {
		return nil, fmt.Errorf("train: the checkpoint %s has a state that can't be read: %w", path, err)
	}
	if s := c.state; len(s.History) == 0 || s.Stopping.Epochs != len(s.History) || s.Stopping.BestEpoch < 0 || s.Stopping.BestEpoch >= len(s.History) || s.Steps < 1 {
		return nil, fmt.Errorf("train: the checkpoint %s has a state that contradicts itself: %d epochs of history, %d observed, best %d, %d steps", path, len(s.History), s.Stopping.Epochs, s.Stopping.BestEpoch, s.Steps)
	}
	return c, nil
}

// restore takes over a checkpoint, all of it or, on an error, nothing.
func (f *fit) restore(c *checkpoint) error {
	if m := c.state.MicroBatches; m != f.train.micro {
		return fmt.Errorf("train: the checkpoint %s is of a run whose steps take %d micro-batches, not %d: resume with the former", f.Checkpoint, m, f.train.micro)
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
			return fmt.Errorf("train: the checkpoint %s is of another model: it has no %q", f.Checkpoint, name)
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
	state := adamState{steps: c.state.Steps}
	for _, n := range f.train.learnables {
		first := tensor.New(tensor.WithShape(n.Shape()...), tensor.Of(n.Dtype()))
		second := first.Clone().(*tensor.Dense)
		if err := match(firstPrefix+n.Name(), first); err != nil {
			return err
		}
		if err := match(secondPrefix+n.Name(), second); err != nil {
			return err
		}
		state.first, state.second = append(state.first, first), append(state.second, second)
	}
	for _, p := range pairs {
		switch to := p.to.Data().(type) {
		case []float32:
			copy(to, p.from.Data.([]float32))
		case []float64:
			copy(to, p.from.Data.([]float64))
		}
	}
	f.adam.state = state
	f.history = c.state.History
	f.stopping = c.state.Stopping
	f.stopping.Stopping = f.Stopping
	return nil
}
