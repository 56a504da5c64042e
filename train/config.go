package train

import (
	"cmp"
	"io"
	"math/bits"
	"time"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// A Config holds the settings of Fit. Together with the Problem and the RunOptions, it decides the result. A Config is
// plain data that can be stored as JSON.
type Config struct {
	BatchSize int `json:"batch_size"` // examples per step; the last batch of an epoch or bucket may have fewer

	// MicroBatches is the number of micro-batches per step. Each has BatchSize/MicroBatches examples, so MicroBatches
	// must divide BatchSize. 0 means 1. The loss and the gradient of a step are the means over its micro-batches,
	// weighted by the Counts of their losses. More micro-batches need less memory, and several Workers compute them in
	// parallel.
	//
	// Changing MicroBatches changes results by rounding and, with dropout, by which elements are dropped.
	MicroBatches int `json:"micro_batches"`

	// Precision is the precision of the factors in linear layers' products while training: layers.BFloat16 rounds them
	// to 8 significant bits. Validation computes with float32, like all later uses of the parameters.
	Precision layers.Precision `json:"precision,omitzero"`

	// MaxEpochs is the maximum number of epochs. 0 means no maximum: then Patience, RunOptions.MaxSteps or
	// RunOptions.MaxTime must be set.
	MaxEpochs int `json:"max_epochs"`

	// CheckEvery is the number of steps between checks, counted over all epochs. 0 means one check at the end of each
	// epoch. At a check, Fit computes the validation loss and metrics, and Stopping decides whether training ends. Fit
	// also makes a check when the last epoch, a limit or a callback ends training. When training resumes, this last
	// check is as if it had never been made.
	CheckEvery int `json:"check_every,omitempty"`

	// Optimizer describes the solver that updates the parameters. If Optimizer.Average is set, Fit updates the averages
	// after every step. The averages then take the place of the parameters in validation, in OnCheck and at the end of
	// training. If Optimizer.Plateau is set, it observes the monitored value at every check.
	Optimizer optim.Config `json:"optimizer"`

	// Stopping says when training stops early, and which parameters Fit keeps. If Stopping.Patience is 0, training
	// usually lasts for MaxEpochs.
	Stopping StoppingConfig `json:"stopping"`
}

// RunOptions holds the arguments of Fit that belong to one call: the seed, limits, files, processes and callbacks.
type RunOptions struct {
	Seed uint64 // seed of dropout and of the order of the examples

	// Workers is the number of graphs that compute the micro-batches of a step in parallel. Each worker has its own
	// memory and its share of the cores. Fit uses at most one worker per micro-batch. 0 means one worker per core. The
	// number of workers doesn't change results.
	Workers int

	// MaxSteps limits the number of steps, counted from the start of training. MaxTime limits the duration of the call.
	// 0 means no limit. If a limit, ctx or a callback ends training, Fit writes the Checkpoint first. A later call with
	// Resume and a higher limit continues from there. The check at the end takes its time after MaxTime.
	MaxSteps int
	MaxTime  time.Duration

	// Checkpoint is the name of the file that stores everything needed to resume training, such as the current and the
	// best parameters. If the name is empty, Fit writes no file. Otherwise Fit writes the file at every check, and when
	// ctx, a limit or a callback ends training. Each write replaces the whole file. The Solver must be an
	// *optim.Solver.
	Checkpoint string

	// CheckpointSteps and CheckpointTime add writes of the Checkpoint between checks: after every CheckpointSteps
	// steps, counted over all epochs, and when CheckpointTime has passed since the last write. 0 turns either off.
	CheckpointSteps int
	CheckpointTime  time.Duration

	// BeforeSave, if set, is called before each write of the Checkpoint. If it returns an error, the Checkpoint isn't
	// written and training ends.
	BeforeSave func() error

	// Run identifies the training, and is stored in the Checkpoint. It is an error to resume from a Checkpoint with
	// another Run.
	Run string

	// Resume continues training from the Checkpoint if that file exists. The result has the same bytes as without the
	// interruption, unless the processor computes with other instructions; then Log says so. MaxEpochs, Patience and
	// the limits may be raised. The result is then the same as if training had begun with the raised values.
	//
	// Parameters that were frozen before must be frozen and have the same values. Other parameters may be frozen since;
	// they get their values from the Checkpoint.
	Resume bool

	// Group connects the processes that fit the Problem together; nil means this process alone. Each process computes
	// its share of the micro-batches of every step and of the validation batches, and updates its part of the
	// parameters. MicroBatches must be 1, 2, 4, 8, … times the number of processes, and Solver an *optim.Solver,
	// because other solvers can't update only a part of the parameters. The number of processes changes neither results
	// nor the Checkpoint, and another number of processes may resume from it.
	//
	// Only the first process writes the Checkpoint and the Log, and calls BeforeSave. All processes call the other
	// callbacks. If an error, ctx or a limit ends training in one process, training ends in all of them at the same
	// step.
	Group Group

	// Solver, if set, updates the parameters instead of Config.Optimizer. Fit then uses only the Average of
	// Config.Optimizer. Solver may be an *optim.Solver with groups or a schedule of your own, or one of Gorgonia's
	// solvers.
	Solver G.Solver

	// Log, if set, gets a line for every check, after OnCheck, and a line when training stops early. If Resume
	// continues with other instructions of the processor, Log gets a line first, which names both.
	Log io.Writer

	// OnMemory, if set, is called before the first step. The argument bytes is an estimate of the peak resident memory
	// of the process, including the memory that it already uses. If the estimate exceeds the memory of the machine, or
	// a limit of its container or of the process, Fit returns an error instead, before it allocates that memory.
	OnMemory func(bytes int)

	// OnStep, if set, is called after every training step with the loss of that step. The argument step is counted from
	// 0 in each epoch. If OnStep returns true, training ends as at a limit.
	OnStep func(epoch, step int, loss float64) (stop bool)

	// OnCheck, if set, is called after every check, with a copy of the history so far. During the call, the parameters
	// have the values that the check judged. The argument best reports whether Fit would keep these parameters if
	// training ended now. That is so if the check is the best so far, if KeepLast is set, or if no check has improved.
	//
	// If training resumes after some checks, OnCheck is also called once before the first step, with the parameters
	// that Fit would keep and with best true. If OnCheck returns true, training ends as at a limit. If it returns an
	// error, training ends with that error.
	OnCheck func(history []Check, best bool) (stop bool, err error)
}

// Check returns an error if a setting is invalid. The error names the setting by its path in JSON, such as
// stopping.patience.
func (c Config) Check() error {
	if err := cmp.Or(
		setting.Between("batch_size", c.BatchSize, 1, mostCount),
		setting.Between("micro_batches", c.MicroBatches, 0, mostMicroBatches),
		setting.Between("max_epochs", c.MaxEpochs, 0, mostCount),
		setting.Between("check_every", c.CheckEvery, 0, mostCount),
	); err != nil {
		return err
	}
	if _, err := c.Precision.MarshalText(); err != nil {
		return setting.Errorf("%s: %w", setting.Path("precision"), err)
	}
	if c.MicroBatches > 1 && c.BatchSize%c.MicroBatches != 0 {
		return setting.Errorf("%s must be a multiple of %s, got %d and %d", setting.Path("batch_size"), setting.Path("micro_batches"), c.BatchSize, c.MicroBatches)
	}
	if err := c.Stopping.check(); err != nil {
		return setting.Within("stopping", err)
	}
	return setting.Within("optimizer", c.Optimizer.Check())
}

// CheckGroup returns an error if the processes of g can't share the micro-batches of a step, as Fit does.
func (c Config) CheckGroup(g Group) error {
	if g == nil {
		return nil
	}
	processes, micro := g.Size(), max(c.MicroBatches, 1)
	if micro%processes != 0 || bits.OnesCount(uint(micro/processes)) != 1 {
		return setting.Errorf("%s must be 1, 2, 4, 8, … times the number of processes, got %d for %d processes: change one of the two", setting.Path("micro_batches"), micro, processes)
	}
	return nil
}

// Check returns an error if a number is negative. The error names the field in lower case with underscores, such as
// max_steps.
func (c RunOptions) Check() error {
	const want = "at least 0"
	return cmp.Or(
		setting.In("workers", c.Workers, c.Workers >= 0, want),
		setting.In("max_steps", c.MaxSteps, c.MaxSteps >= 0, want),
		setting.In("max_time", c.MaxTime, c.MaxTime >= 0, want),
		setting.In("checkpoint_steps", c.CheckpointSteps, c.CheckpointSteps >= 0, want),
		setting.In("checkpoint_time", c.CheckpointTime, c.CheckpointTime >= 0, want),
	)
}
