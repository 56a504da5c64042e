package train

import (
	"fmt"
	"io"
	"time"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// A Problem is what Fit fits: parameters, a loss and data. It may be anything that a Gorgonia graph can express.
type Problem struct {
	Params *layers.Params

	// Loss returns the mean loss of a batch, a scalar node, and metrics, of which there may be none. The inputs are
	// nodes of the dtypes and shapes of the batch's Values, in their order. Other floats that the graph's inputs hold
	// must be those of Params, bound with b, or be declared in b.Fixed.
	//
	// Loss is called for every list of shapes that batches have, for training and for validation, and once for each
	// worker, then perhaps by several goroutines at once, with a Build and a graph of its own each time. It must do the
	// same every time.
	Loss func(b *layers.Build, inputs G.Nodes) (loss *G.Node, metrics []Metric, err error)

	// Train is what to learn from. Validation, whose Len may be 0 for none, is what to judge the parameters by.
	Train, Validation Dataset

	BatchSize int // examples in a step; the last step of an epoch, or of a bucket, may have fewer

	// MicroBatches is how many micro-batches a step takes, each of BatchSize/MicroBatches examples: 0 is 1, and the
	// most are 1,048,576. The gradient and the loss of a step are the means over its micro-batches, weighted by their
	// Weights. A step of several takes less memory, and Workers take them side by side.
	//
	// Two numbers of micro-batches give results that differ by rounding and, with dropout, in what is dropped.
	MicroBatches int

	ValidationSize int // examples in a validation batch; 0 for BatchSize
}

// Config says how to fit.
type Config struct {
	// Stopping says when training stops by itself; with a Patience of 0 it is for MaxEpochs, as a rule.
	Stopping

	// CheckEvery is how many steps there are from one check to the next, counted over all epochs; at a check the
	// parameters are validated and Stopping looks. The end of training is always one. 0 is for one at the end of every
	// epoch.
	CheckEvery int

	// MaxEpochs ends training that hasn't stopped by itself; 0 sets no end, and needs a Patience or a limit.
	MaxEpochs int

	// MaxSteps and MaxTime are limits, of the steps of all epochs and of the time that Fit takes; 0 for none. What they
	// end is as resumable as what ctx or a callback ends: a Checkpoint is written at that step, and training with
	// Resume and another limit goes on from there.
	MaxSteps int
	MaxTime  time.Duration

	// Solver updates the parameters; optim.NewAdamW(1e-3) if nil.
	Solver G.Solver

	// Average, if set, is updated after every step, and takes the place of the parameters wherever they are judged,
	// kept and handed out: in validation, in OnCheck and in the end.
	Average *optim.Average

	// Plateau, if set, observes the monitored value at every check; its Higher must be what Stopping's Mode says. It
	// does nothing unless the Solver's Schedule is its own, or has it for a factor.
	Plateau *optim.Plateau

	Seed uint64 // of dropout, and of the order of the examples

	// Workers is how many graphs take the micro-batches of a step side by side, each with its share of the cores and
	// memory of its own; 0 is for one a core. More than there are micro-batches are as many. It never changes a result.
	Workers int

	// Group is the processes that fit the Problem together; nil for this one alone. Each makes and runs its share of
	// every step's micro-batches and of the validation, and steps its part of the parameters. The Solver, which
	// remembers that part alone, must be an *optim.Solver. The number of processes must divide MicroBatches into
	// shares that are a power of two. It changes no result and no Checkpoint, from which any number of processes may go
	// on.
	//
	// The first process alone writes the Checkpoint and the Log; callbacks are called in all. What ends
	// training in one, as an error, ctx or a limit, ends it in all at the same step.
	Group Group

	// Checkpoint is a file to keep all that training needs to go on, the last parameters and the best ones among it,
	// written whole at every check, and where ctx, a limit or a callback ends training; empty for none. It needs a
	// Solver that is an *optim.Solver.
	Checkpoint string

	// CheckpointSteps and CheckpointTime have the Checkpoint written between checks too: every so many steps, counted
	// over all epochs, and when so much time has passed since the last one. 0 is for neither.
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

// A Result is how training went.
type Result struct {
	History        []Check
	Best           Check  // the one whose parameters were kept: the last where Stopping says so, or none improved
	StoppedEarly   bool   // Stopping ended training
	StoppedBecause string // why training ended, in words
	Unfinished     bool   // a limit of steps or of time or a callback ended it: with Resume it goes on
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

// mostMicroBatches is how many micro-batches a step may have, and processes a Group.
const mostMicroBatches = 1 << 20

// check checks what is wrong with a Problem, but for what it trains on, before it is tried.
func (p Problem) check() error {
	if p.Validation.Len != 0 {
		if err := p.Validation.check("Validation"); err != nil {
			return err
		}
	}
	switch {
	case p.BatchSize < 1 || p.ValidationSize < 0:
		return fmt.Errorf("train: BatchSize must be at least 1, and ValidationSize too or 0 for the same, got %d and %d", p.BatchSize, p.ValidationSize)
	case p.MicroBatches < 0 || p.MicroBatches > 1 && p.BatchSize%p.MicroBatches != 0:
		return fmt.Errorf("train: MicroBatches must divide BatchSize, got %d and %d", p.MicroBatches, p.BatchSize)
	case p.MicroBatches > mostMicroBatches:
		return fmt.Errorf("train: MicroBatches may be at most %d, got %d", mostMicroBatches, p.MicroBatches)
	}
	return nil
}

// check checks what is wrong with a Config before it is tried.
func (c Config) check() error {
	switch {
	case c.Workers < 0:
		return fmt.Errorf("train: Workers must be at least 1, or 0 for one a core, got %d", c.Workers)
	case c.MaxEpochs < 0 || c.MaxSteps < 0 || c.MaxTime < 0 || c.CheckEvery < 0:
		return fmt.Errorf("train: MaxEpochs, MaxSteps, MaxTime and CheckEvery must be at least 0, got %d, %d, %v and %d", c.MaxEpochs, c.MaxSteps, c.MaxTime, c.CheckEvery)
	case c.CheckpointSteps < 0 || c.CheckpointTime < 0:
		return fmt.Errorf("train: CheckpointSteps and CheckpointTime must be at least 0, got %d and %v", c.CheckpointSteps, c.CheckpointTime)
	case c.Patience == 0 && c.MaxEpochs == 0 && c.MaxSteps == 0 && c.MaxTime == 0:
		return fmt.Errorf("train: set Patience, MaxEpochs, MaxSteps or MaxTime above 0, or training has no end")
	case c.Checkpoint == "" && (c.Resume || c.CheckpointSteps > 0 || c.CheckpointTime > 0):
		return fmt.Errorf("train: name the Checkpoint to resume from or to write")
	}
	if c.Average != nil {
		if err := c.Average.Check(); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	if c.Plateau != nil {
		if err := c.Plateau.Check(); err != nil {
			return fmt.Errorf("train: %w", err)
		}
	}
	return c.Stopping.check()
}
