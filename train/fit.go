package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// A Batch is what one run of a graph is fed.
type Batch struct {
	Values []*tensor.Dense // one for each input node that the Problem's Loss returned, in that order

	// Weight is what its mean loss counts for in an epoch's: as a rule, the number of targets. That of a training batch
	// must be above 0. That of a validation batch may be 0, where nothing in it counts, if another's isn't.
	Weight float64

	// Weights are what each of a training batch's examples contributes to the Weight, for a step of several
	// micro-batches: as a rule, its number of targets. With nil they all count for the same.
	Weights []float64
}

// A Problem is what Fit fits: parameters, a loss and batches. It may be anything that a Gorgonia graph can express.
type Problem struct {
	Params *layers.Params

	// Loss adds the mean loss of a batch of size examples to g, and returns that scalar and the input nodes that a
	// batch's values are bound to. Other floats that the graph's inputs hold must be those of Params, bound with b, or
	// be declared in b.Fixed. Loss is called for the validation graph and for each worker's training graph, each with a
	// Build of its own.
	Loss func(b *layers.Build, g *G.ExprGraph, size int) (loss *G.Node, inputs G.Nodes, err error)

	BatchSize int // examples in a training batch
	Steps     int // training batches in an epoch

	// MicroBatches is how many micro-batches a step takes, each of BatchSize/MicroBatches examples: 0 is 1. Values of a
	// batch are cut along their first axis; one of the shape of its input in a micro-batch's graph goes to each as it
	// is. The gradient and the loss of a step are the means of theirs, weighted by the batch's Weights. That bounds
	// memory, and Workers take micro-batches side by side.
	//
	// Two numbers of micro-batches give results that differ by rounding and, with dropout, in what is dropped.
	MicroBatches int

	// Train is the batch of a step of an epoch, both counted from 0. The same arguments must give the same batch: that
	// makes a run repeatable, and lets it resume. The next call may overwrite the values.
	Train func(epoch, step int) (Batch, error)

	ValidationSize  int // examples in a validation batch
	ValidationSteps int // validation batches

	// Validation is the i-th validation batch, the same in every epoch. The next call may overwrite the values.
	Validation func(i int) (Batch, error)
}

// Config says how to fit.
type Config struct {
	// Stopping says when training stops by itself; with a Patience of 0 it is for MaxEpochs, as a rule. A check is the
	// end of an epoch.
	Stopping

	// MaxEpochs ends training that hasn't stopped by itself; 0 sets no end, and needs a Patience.
	MaxEpochs int

	// Solver updates the parameters; NewAdamW(1e-3) if nil.
	Solver G.Solver

	Seed uint64 // of dropout

	// Workers is how many graphs take the micro-batches of a step side by side, each with its share of the cores and
	// memory of its own; 0 is for one a core. More than MicroBatches are as many. It never changes a result.
	Workers int

	// Checkpoint is a file to keep all that training needs to go on, written whole after every epoch; empty for none.
	// It needs a Solver that is an *AdamW.
	Checkpoint string

	// Resume goes on from the Checkpoint: the run's bytes are those of one that was never interrupted.
	Resume bool

	// Log gets a line for every epoch, and one when training stops early; nil for none.
	Log io.Writer

	// OnStep, if set, is called after every training step with its loss.
	OnStep func(epoch, step int, loss float64)

	// OnEpoch, if set, is called after every epoch, and on resuming for the last epoch before: the history so far, and
	// whether the last epoch is the best, or else the one to be kept so far: with KeepLast, and where none has been an
	// improvement. The parameters are then those at the end of the epoch. An error ends training.
	OnEpoch func(history []Epoch, best bool) error
}

// An Epoch is a line of the history: mean losses, weighted by their batches' weights.
type Epoch struct {
	Epoch     int     `json:"epoch"` // counted from 0
	TrainLoss float64 `json:"train_loss"`
	ValLoss   float64 `json:"val_loss"`
}

// String returns the epoch's line in a log.
func (e Epoch) String() string {
	return fmt.Sprintf("Epoch %d: Train=%.3f, Val=%.3f", e.Epoch, e.TrainLoss, e.ValLoss)
}

// value returns the value that a name stands for in Stopping.Monitor. ok is false if there is none.
func (e Epoch) value(name string) (value float64, ok bool) {
	switch name {
	case "val_loss":
		return e.ValLoss, true
	case "train_loss":
		return e.TrainLoss, true
	}
	return 0, false
}

// A Result is how training went.
type Result struct {
	History        []Epoch
	Best           Epoch  // the epoch whose parameters were kept: the last one where Stopping says so, or none improved
	StoppedEarly   bool   // Stopping ended training
	StoppedBecause string // why training ended, in words
}

// A NonFiniteError is a loss that is NaN or infinite.
type NonFiniteError struct {
	Epoch, Step int // counted from 0; Step is the validation batch's where Validation is set
	Validation  bool
	Loss        float64
}

func (e *NonFiniteError) Error() string {
	what := "training"
	if e.Validation {
		what = "validation"
	}
	return fmt.Sprintf("the %s loss is %v at epoch %d, step %d: look for such numbers in the data, or try a lower learning rate", what, e.Loss, e.Epoch, e.Step)
}

// Fit trains until Stopping says so, or for MaxEpochs. Then, and also when it returns an error or ctx is cancelled, the
// parameters are those of the best epoch so far, whether or not patience ran out, or those of the last whole one with
// KeepLast; before the first epoch's end they are as far as they got. The result is nil if nothing was trained.
//
// A loss that isn't finite ends training with a *NonFiniteError. With AllowNonFinite a validation loss doesn't, unless
// it is that of the parameters that are kept in the end.
func Fit(ctx context.Context, p Problem, c Config) (*Result, error) {
	if ctx == nil {
		return nil, errors.New("train: the context is nil: pass context.Background()")
	}
	f, err := newFit(p, c)
	if err != nil {
		return nil, err
	}
	err = f.run(ctx)
	f.restoreBest()
	if len(f.history) == 0 {
		return nil, err
	}
	r := f.stopping.result(f.history, err)
	if err == nil && !finite(r.Best.ValLoss) {
		err = &NonFiniteError{Epoch: r.Best.Epoch, Step: f.ValidationSteps - 1, Validation: true, Loss: r.Best.ValLoss}
	}
	return r, err
}

// fit is the state of one call of Fit.
type fit struct {
	Problem
	Config
	adam *AdamW // the solver, if it is one

	train      *trainer
	validation *runner

	stopping EarlyStopping
	history  []Epoch
	best     []*tensor.Dense // the values of the epoch to be kept, one for each of Params.All()
}

func newFit(p Problem, c Config) (*fit, error) {
	switch {
	case p.Params == nil || p.Loss == nil || p.Train == nil || p.Validation == nil:
		return nil, fmt.Errorf("train: a Problem needs Params, Loss, Train and Validation")
	case p.BatchSize < 1 || p.Steps < 1 || p.ValidationSize < 1 || p.ValidationSteps < 1:
		return nil, fmt.Errorf("train: batch sizes and steps must be at least 1, got BatchSize %d, Steps %d, ValidationSize %d, ValidationSteps %d", p.BatchSize, p.Steps, p.ValidationSize, p.ValidationSteps)
	case p.MicroBatches < 0 || p.MicroBatches > 1 && p.BatchSize%p.MicroBatches != 0:
		return nil, fmt.Errorf("train: MicroBatches must divide BatchSize, got %d and %d", p.MicroBatches, p.BatchSize)
	case c.Workers < 0:
		return nil, fmt.Errorf("train: Workers must be at least 1, or 0 for one a core, got %d", c.Workers)
	case c.Patience < 0 || c.MaxEpochs < 0 || c.Patience+c.MaxEpochs == 0:
		return nil, fmt.Errorf("train: set Patience or MaxEpochs above 0, or training has no end; got %d and %d", c.Patience, c.MaxEpochs)
	case c.Resume && c.Checkpoint == "":
		return nil, fmt.Errorf("train: to resume, name the Checkpoint to resume from")
	}
	if _, ok := (Epoch{}).value(c.monitor()); !ok {
		return nil, fmt.Errorf("train: Monitor must be val_loss or train_loss, got %q", c.Monitor)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Solver == nil {
		c.Solver = NewAdamW(1e-3)
	}
	f := &fit{Problem: p, Config: c, stopping: EarlyStopping{Stopping: c.Stopping}}
	f.adam, _ = c.Solver.(*AdamW)
	if c.Checkpoint != "" && f.adam == nil {
		return nil, fmt.Errorf("train: a Checkpoint needs an *AdamW, whose state can be saved, got a solver of type %T", c.Solver)
	}
	for _, param := range p.Params.All() {
		f.best = append(f.best, param.Value.Clone().(*tensor.Dense))
	}
	var resumed *checkpoint
	var err error
	if c.Resume {
		if resumed, err = readCheckpoint(c.Checkpoint); err != nil {
			return nil, err
		}
	}
	if f.train, err = newTrainer(p, c); err != nil {
		return nil, err
	}
	if f.validation, err = newRunner(p, &layers.Build{}, p.ValidationSize); err != nil {
		return nil, err
	}
	if resumed != nil {
		err = f.restore(resumed)
	}
	return f, err
}

func (f *fit) run(ctx context.Context) error {
	if len(f.history) > 0 && f.OnEpoch != nil { // resumed
		if err := f.OnEpoch(f.history, f.stopping.kept() == len(f.history)-1); err != nil {
			return err
		}
	}
	for !f.stopping.Stopped() && (f.MaxEpochs == 0 || len(f.history) < f.MaxEpochs) {
		e := Epoch{Epoch: len(f.history)}
		var err error
		if e.TrainLoss, err = f.trainEpoch(ctx, e.Epoch); err != nil {
			return err
		}
		if e.ValLoss, err = f.validate(ctx, e.Epoch); err != nil {
			return err
		}
		f.history = append(f.history, e)
		value, _ := e.value(f.monitor())
		f.stopping.Observe(value)
		keep := f.stopping.kept() == e.Epoch
		if keep {
			for i, param := range f.Params.All() {
				if err := tensor.Copy(f.best[i], param.Value); err != nil {
					return fmt.Errorf("train: keeping the best parameters: %w", err)
				}
			}
		}
		if f.Checkpoint != "" {
			if err := f.save(); err != nil {
				return err
			}
		}
		logEpoch(f.Log, e, &f.stopping)
		if f.OnEpoch != nil {
			if err := f.OnEpoch(f.history, keep); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fit) trainEpoch(ctx context.Context, epoch int) (float64, error) {
	var mean weightedMean
	for step := range f.Steps {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		batch, err := f.Train(epoch, step)
		if err != nil {
			return 0, fmt.Errorf("train: batch of epoch %d, step %d: %w", epoch, step, err)
		}
		if !(batch.Weight > 0) || math.IsInf(batch.Weight, 1) {
			return 0, fmt.Errorf("train: batch of epoch %d, step %d: its Weight must be above 0, got %v: set it to how many targets count", epoch, step, batch.Weight)
		}
		loss, err := f.train.run(epoch*f.Steps+step, batch)
		if err != nil {
			return 0, fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
		}
		if !finite(loss) {
			return 0, &NonFiniteError{Epoch: epoch, Step: step, Loss: loss}
		}
		if err := f.Solver.Step(f.train.model); err != nil {
			return 0, fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
		}
		mean.add(loss, batch.Weight)
		if f.OnStep != nil {
			f.OnStep(epoch, step, loss)
		}
	}
	return mean.value(), nil
}

func (f *fit) validate(ctx context.Context, epoch int) (float64, error) {
	var mean weightedMean
	for i := range f.ValidationSteps {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		batch, err := f.Validation(i)
		if err != nil {
			return 0, fmt.Errorf("train: validation batch %d: %w", i, err)
		}
		if !(batch.Weight >= 0) || math.IsInf(batch.Weight, 1) {
			return 0, fmt.Errorf("train: validation batch %d: its Weight must be 0 or more, got %v: set it to how many targets count", i, batch.Weight)
		}
		loss, err := f.validation.run(0, batch)
		if err != nil {
			return 0, fmt.Errorf("train: validation batch %d of epoch %d: %w", i, epoch, err)
		}
		if !finite(loss) && !f.AllowNonFinite {
			return 0, &NonFiniteError{Epoch: epoch, Step: i, Validation: true, Loss: loss}
		}
		mean.add(loss, batch.Weight)
	}
	if mean.weight == 0 {
		return 0, errors.New("train: every validation batch has a Weight of 0: set it to how many targets count")
	}
	return mean.value(), nil
}

// restoreBest puts the values of the epoch that is kept back into the parameters.
func (f *fit) restoreBest() {
	if len(f.history) == 0 {
		return
	}
	for i, param := range f.Params.All() {
		tensor.Copy(param.Value, f.best[i]) // it was copied from there: shapes and dtypes agree
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// weightedMean adds up means of different weights.
type weightedMean struct{ sum, weight float64 }

func (m *weightedMean) add(x, weight float64) {
	m.sum += x * weight
	m.weight += weight
}

func (m *weightedMean) value() float64 { return m.sum / m.weight }
