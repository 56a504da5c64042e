package train

import (
	"io"
	"time"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/optim"
)

// A Config says how to fit, and decides the result together with the Problem and the Call's Seed. It is plain data, and
// goes to JSON and back.
type Config struct {
	BatchSize int `json:"batch_size"` // examples in a step; the last step of an epoch, or of a bucket, may have fewer

	// MicroBatches is the number of micro-batches in a step, each of BatchSize/MicroBatches examples. It must divide
	// BatchSize; 0 means 1. The gradient and the loss of a step are the means over its micro-batches, weighted by their
	// Weights. More micro-batches take less memory, and Workers take them side by side.
	//
	// Changing MicroBatches changes results by rounding and, with dropout, by which elements are dropped.
	MicroBatches int `json:"micro_batches"`

	// MaxEpochs ends training that hasn't stopped by itself. 0 sets no end, and needs a Patience or a limit.
	MaxEpochs int `json:"max_epochs"`

	// CheckEvery is the number of steps from one check to the next, counted over all epochs. At a check, Fit validates
	// the parameters and Stopping decides. The end of training is always a check. 0 checks at the end of every epoch.
	CheckEvery int `json:"check_every,omitempty"`

	// Optimizer says what steps the parameters. Its Average, if there is one, is updated after every step and takes the
	// place of the parameters wherever they are judged, kept and handed out: in validation, in OnCheck and in the end.
	// Its Plateau observes the monitored value at every check.
	Optimizer optim.Config `json:"optimizer"`

	// Stopping says when training stops by itself. With a Patience of 0 it usually goes on for MaxEpochs.
	Stopping Stopping `json:"stopping"`
}

// A Call is what belongs to one call of Fit, and is never saved.
type Call struct {
	Seed uint64 // of dropout, and of the order of the examples

	// Workers is the number of graphs that take the micro-batches of a step side by side, each with its share of the
	// cores and memory of its own. There are at most MicroBatches of them; 0 means one worker per core. The number
	// never changes a result.
	Workers int

	// MaxSteps and MaxTime limit the steps of all epochs and the time that Fit takes; 0 means no limit. What they end
	// is as resumable as what ctx or a callback ends: Fit writes a Checkpoint at that step, and training with Resume
	// and another limit goes on from there.
	MaxSteps int
	MaxTime  time.Duration

	// Checkpoint is a file for all that training needs to go on, the last parameters and the best ones among it. Fit
	// writes it whole at every check, and where ctx, a limit or a callback ends training; an empty name means none. It
	// can't be written for a Solver that isn't an *optim.Solver.
	Checkpoint string

	// CheckpointSteps and CheckpointTime have the Checkpoint written between checks too: after this number of steps,
	// counted over all epochs, and when this time has passed since the last one. 0 means neither.
	CheckpointSteps int
	CheckpointTime  time.Duration

	// BeforeSave, if set, is called before the Checkpoint is written. An error ends training, without it.
	BeforeSave func() error

	// Run names what is trained. A Checkpoint of another Run isn't resumed.
	Run string

	// Resume goes on from the Checkpoint if there is one: the run's bytes are those of one that was never interrupted.
	// MaxEpochs, Patience and the limits may be raised: training ends with the bytes of one that had them from the
	// start.
	Resume bool

	// Group is the processes that fit the Problem together; nil for this one alone. Each makes and runs its share of
	// every step's micro-batches and of the validation, and steps its part of the parameters. A Solver, which remembers
	// that part alone, must be an *optim.Solver. The number of processes must divide MicroBatches into shares that are
	// a power of two. It changes no result and no Checkpoint, from which any number of processes may go on.
	//
	// The first process alone writes the Checkpoint and the Log; callbacks are called in all. What ends
	// training in one, as an error, ctx or a limit, ends it in all at the same step.
	Group Group

	// Solver, if set, steps the parameters in place of the Config's Optimizer, of which only the Average counts then.
	// It may be an *optim.Solver with groups or a schedule of your own, or one of Gorgonia's.
	Solver G.Solver

	// Log gets a line for every check, after OnCheck, and one when training stops early; nil for none.
	Log io.Writer

	// OnMemory, if set, is called before the first step with an estimate, in bytes, of the most memory that the process
	// will have resident: what it has, and what training is still to take. If that is more than the machine has, or its
	// container may use, Fit returns an error instead, before it takes that memory.
	OnMemory func(bytes int)

	// OnStep, if set, is called after every training step, counted from 0 in each epoch, with its loss. If it returns
	// true, training ends as at a limit.
	OnStep func(epoch, step int, loss float64) (stop bool)

	// OnCheck, if set, is called after every check, with a copy of the history so far. The parameters are those of the
	// check. best says whether Fit would keep them if it ended now: the check is the best one so far, or it is the last
	// one where KeepLast is set or no check has been an improvement. If training resumes after some checks, OnCheck is
	// called once before the first step: with the parameters that Fit would keep, and best is true. If it returns true,
	// training ends as at a limit; an error ends it too.
	OnCheck func(history []Check, best bool) (stop bool, err error)
}

const (
	mostMicroBatches = 1 << 20 // in a step, and processes in a Group
	mostCount        = 1 << 30 // in a Config
)

// Check returns an error if a setting is impossible. The error names it by its path in JSON, such as
// stopping.patience.
func (c Config) Check() error {
	for _, n := range []struct {
		path      setting.Path
		got       int
		low, high int
	}{
		{"batch_size", c.BatchSize, 1, mostCount}, {"micro_batches", c.MicroBatches, 0, mostMicroBatches},
		{"max_epochs", c.MaxEpochs, 0, mostCount}, {"check_every", c.CheckEvery, 0, mostCount},
	} {
		if n.got < n.low || n.got > n.high {
			return setting.Errorf("%s must be from %d to %d, got %d", n.path, n.low, n.high, n.got)
		}
	}
	if c.MicroBatches > 1 && c.BatchSize%c.MicroBatches != 0 {
		return setting.Errorf("%s must be a multiple of %s, got %d and %d", setting.Path("batch_size"), setting.Path("micro_batches"), c.BatchSize, c.MicroBatches)
	}
	if err := c.Stopping.check(); err != nil {
		return setting.Within("stopping", err)
	}
	return setting.Within("optimizer", c.Optimizer.Check())
}

// Check returns an error if a number is below 0. The error names it in lower case with underscores, such as max_steps.
func (c Call) Check() error {
	for _, x := range []struct {
		path setting.Path
		got  any
		ok   bool
	}{
		{"workers", c.Workers, c.Workers >= 0}, {"max_steps", c.MaxSteps, c.MaxSteps >= 0}, {"max_time", c.MaxTime, c.MaxTime >= 0},
		{"checkpoint_steps", c.CheckpointSteps, c.CheckpointSteps >= 0}, {"checkpoint_time", c.CheckpointTime, c.CheckpointTime >= 0},
	} {
		if !x.ok {
			return setting.Errorf("%s must be at least 0, got %v", x.path, x.got)
		}
	}
	return nil
}
