package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

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

	BatchSize int // examples in a step; fewer in the last of an epoch, or of a bucket, if they don't divide

	// MicroBatches is how many micro-batches a step takes, each of BatchSize/MicroBatches examples: 0 is 1. The
	// gradient and the loss of a step are the means of theirs, weighted by their Weights. That bounds memory, and
	// Workers take micro-batches side by side.
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
	// end is as resumable as what ctx ends: a Checkpoint is written at that step, and training with Resume and another
	// limit goes on from there.
	MaxSteps int
	MaxTime  time.Duration

	// Solver updates the parameters; optim.NewAdamW(1e-3) if nil.
	Solver G.Solver

	Seed uint64 // of dropout, and of the order of the examples

	// Workers is how many graphs take the micro-batches of a step side by side, each with its share of the cores and
	// memory of its own; 0 is for one a core. More than there are micro-batches are as many. It never changes a result.
	Workers int

	// Group is the processes that fit the Problem together; nil for this one alone. Each makes and runs its share of
	// the micro-batches, of every step and of the validation, and steps its part of the parameters, with a memory of
	// the Solver's for that alone: it must be an *optim.Solver. The number of processes must divide MicroBatches, into
	// shares that are a power of two. It changes no result: not a Checkpoint either, from which any number may go on.
	//
	// The first process alone writes the Checkpoint and the Log. OnStep and OnCheck are called in all. What ends
	// training in one, as an error, ctx or a limit, ends it in all at the same step.
	Group Group

	// Checkpoint is a file to keep all that training needs to go on, written whole at every check, and where ctx or a
	// limit ends training; empty for none. It needs a Solver that is an *optim.Solver.
	Checkpoint string

	// Run says what is trained, in words: a Checkpoint of another Run isn't resumed.
	Run string

	// Resume goes on from the Checkpoint: the run's bytes are those of one that was never interrupted.
	Resume bool

	// Log gets a line for every check, and one when training stops early; nil for none.
	Log io.Writer

	// OnStep, if set, is called after every training step, counted from 0 in each epoch, with its loss.
	OnStep func(epoch, step int, loss float64)

	// OnCheck, if set, is called after every check, and on resuming for the last one before: the history so far, and
	// whether the last check is the best, or else the one to be kept so far: with KeepLast, and where none has been an
	// improvement. The parameters are then those of the check. An error ends training.
	OnCheck func(history []Check, best bool) error
}

// A Result is how training went.
type Result struct {
	History        []Check
	Best           Check  // the one whose parameters were kept: the last where Stopping says so, or none improved
	StoppedEarly   bool   // Stopping ended training
	StoppedBecause string // why training ended, in words
	Unfinished     bool   // a limit of steps or of time ended it: with Resume it goes on
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

// Fit trains until Stopping says so, or for MaxEpochs. Then, and also when it returns an error, ctx is cancelled or a
// limit is reached, the parameters are those of the best check so far, whether or not patience ran out, or those of the
// last one with KeepLast; before the first check they are as far as they got. The result is nil if there was an error
// before the first check.
//
// A loss that isn't finite ends training with a *NonFiniteError. With AllowNonFinite a validation loss doesn't, unless
// it is that of the parameters that are kept in the end.
func Fit(ctx context.Context, p Problem, c Config) (*Result, error) {
	if ctx == nil {
		return nil, errors.New("train: the context is nil: pass context.Background()")
	}
	start := time.Now()
	team, err := newTeam(ctx, c.Group)
	if err != nil {
		return nil, err
	}
	f, err := newFit(p, c, team)
	if err = team.begin(f, err); err == nil && c.Resume {
		err = f.resume()
	}
	if err != nil {
		return nil, err
	}
	limit := func() error {
		switch taken := time.Since(start); {
		case ctx.Err() != nil:
			return ctx.Err()
		case c.MaxSteps > 0 && f.step >= c.MaxSteps:
			return fmt.Errorf("%w of %s is reached", errLimit, count(c.MaxSteps, "step"))
		case c.MaxTime > 0 && taken >= c.MaxTime:
			return fmt.Errorf("%w of %v is reached, after %s", errLimit, c.MaxTime, count(f.step, "step"))
		}
		return nil
	}
	began := f.step
	err = f.run(ctx, limit)
	if f.Checkpoint != "" && f.step > began && team.interrupted(err) {
		if failed := f.save(); failed != nil {
			err = failed
		}
	}
	f.restoreBest()
	r := f.stopping.result(f.history, err)
	if r.Unfinished = errors.Is(err, errLimit); r.Unfinished {
		return r, nil
	}
	if len(f.history) == 0 {
		return nil, err
	}
	if err == nil && r.Best.Validated && !finite(r.Best.ValLoss) {
		err = &NonFiniteError{Epoch: r.Best.Epoch, Step: f.validation.plan.steps - 1, Validation: true, Loss: r.Best.ValLoss}
	}
	return r, err
}

var errLimit = errors.New("the limit")

// fit is the state of one call of Fit.
type fit struct {
	Problem
	Config
	solver *optim.Solver // whose state can be saved; nil if it is another's

	team       *team
	plan       *plan
	train      *trainer
	validation *validation // nil for none

	step     int  // how many have been taken
	since    sums // of the batches since the last check
	stopping EarlyStopping
	history  []Check
	best     []*tensor.Dense // the values of the check to be kept, one for each of Params.All()
}

func newFit(p Problem, c Config, team *team) (*fit, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.Train.check("Train"); err != nil {
		return nil, err
	}
	switch {
	case c.Workers < 0:
		return nil, fmt.Errorf("train: Workers must be at least 1, or 0 for one a core, got %d", c.Workers)
	case c.MaxEpochs < 0 || c.MaxSteps < 0 || c.MaxTime < 0 || c.CheckEvery < 0:
		return nil, fmt.Errorf("train: MaxEpochs, MaxSteps, MaxTime and CheckEvery must be at least 0, got %d, %d, %v and %d", c.MaxEpochs, c.MaxSteps, c.MaxTime, c.CheckEvery)
	case c.Patience == 0 && c.MaxEpochs == 0 && c.MaxSteps == 0 && c.MaxTime == 0:
		return nil, fmt.Errorf("train: set Patience, MaxEpochs, MaxSteps or MaxTime above 0, or training has no end")
	case c.Resume && c.Checkpoint == "":
		return nil, fmt.Errorf("train: to resume, name the Checkpoint to resume from")
	}
	if c.Monitor == "" && p.Validation.Len == 0 {
		c.Monitor = "train_loss"
	}
	if err := c.Stopping.check(); err != nil {
		return nil, err
	}
	if c.Solver == nil {
		c.Solver = optim.NewAdamW(1e-3)
	}
	making := new(sync.Mutex)
	f := &fit{Problem: p, Config: c, team: team, stopping: EarlyStopping{Stopping: c.Stopping, steps: c.CheckEvery > 0}, plan: newPlan(p.Train, p.BatchSize, c.Seed, making)}
	f.MaxEpochs = min(f.MaxEpochs, math.MaxInt/f.plan.steps) // whose product is the last step
	f.solver, _ = c.Solver.(*optim.Solver)
	if c.Checkpoint != "" && f.solver == nil {
		return nil, fmt.Errorf("train: a Checkpoint needs an *optim.Solver, whose state can be saved, got a solver of type %T", c.Solver)
	}
	if err := team.check(p, f.solver); err != nil {
		return nil, err
	}
	if team.rank > 0 {
		f.Log = nil
	}
	for _, param := range p.Params.All() {
		f.best = append(f.best, param.Value.Clone().(*tensor.Dense))
	}
	if err := f.build(making); err != nil {
		return nil, err
	}
	return f, f.checkMonitor()
}

// check checks what is wrong with a Problem, but for what it trains on, before it is tried.
func (p Problem) check() error {
	if p.Params == nil || p.Loss == nil {
		return fmt.Errorf("train: a Problem needs Params and a Loss")
	}
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
	}
	return nil
}

// build makes what trains and what validates, with a graph of either, so that what is wrong with them is found at once.
func (f *fit) build(making *sync.Mutex) error {
	examples := f.plan.epoch(0)[0]
	batches, err := f.plan.batches(examples[:min(f.microSize(), len(examples))], f.microSize())
	if err != nil {
		return fmt.Errorf("train: batch of epoch 0, step 0: %w", err)
	}
	if f.train, err = newTrainer(f.Problem, f.Config, f.team, batches[0]); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if f.Validation.Len > 0 {
		f.validation, err = newValidation(f.Problem, f.team, f.train.workers[0], making)
	}
	return err
}

// microSize returns the examples in a micro-batch.
func (f *fit) microSize() int { return f.BatchSize / max(f.MicroBatches, 1) }

// checkMonitor checks that what is monitored is there.
func (f *fit) checkMonitor() error {
	names := []string{"train_loss"}
	if f.validation != nil {
		names = append(names, "val_loss")
	}
	for _, m := range f.train.workers[0].first.metrics {
		names = append(names, "train_"+m.Name)
		if f.validation != nil {
			names = append(names, "val_"+m.Name)
		}
	}
	if !slices.Contains(names, f.monitor()) {
		return fmt.Errorf("train: Monitor must be one of %s, got %q", strings.Join(names, ", "), f.monitor())
	}
	return nil
}

// run trains until there is a reason not to. limit returns an error where training is to end and to be resumable.
func (f *fit) run(ctx context.Context, limit func() error) error {
	if len(f.history) > 0 { // resumed
		if err := f.onCheck(f.stopping.kept() == len(f.history)-1); err != nil {
			return err
		}
	}
	to := f.MaxEpochs * f.plan.steps
	if f.MaxSteps > 0 && (to == 0 || f.MaxSteps < to) {
		to = f.MaxSteps
	}
	batches := newFeed(f.plan.between(f.step, to), func(examples []int) ([]Batch, error) {
		return f.plan.batches(f.train.own(examples, f.microSize()), f.microSize())
	})
	defer batches.stop()
	for {
		if f.due() {
			if err := f.check(ctx); err != nil {
				return err
			}
		}
		if f.stopping.Stopped() || f.done() {
			return nil
		}
		if err := f.takeStep(batches, limit()); err != nil {
			return err
		}
	}
}

// done reports whether the last step of the last epoch has been taken.
func (f *fit) done() bool { return f.MaxEpochs > 0 && f.step >= f.MaxEpochs*f.plan.steps }

// due reports whether a check is to be made now.
func (f *fit) due() bool {
	every := cmp.Or(f.CheckEvery, f.plan.steps)
	checked := len(f.history) > 0 && f.history[len(f.history)-1].Step == f.step
	return f.step > 0 && !checked && (f.step%every == 0 || f.done())
}

// takeStep takes a training step, unless there is an error before it.
func (f *fit) takeStep(feed *feed, err error) error {
	epoch, step := f.step/f.plan.steps, f.step%f.plan.steps
	var batches []Batch
	if err == nil {
		if batches, err = feed.next(); err != nil {
			err = fmt.Errorf("train: batch of epoch %d, step %d: %w", epoch, step, err)
		}
	}
	weight, processes, err := f.train.weigh(batches, err)
	if err != nil {
		return err
	}
	if weight == 0 {
		return fmt.Errorf("train: batch of epoch %d, step %d: its Weight must be above 0, got 0: set it to how many targets count", epoch, step)
	}
	s, err := f.train.run(f.step, batches, weight, processes)
	if err != nil {
		return fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
	}
	loss := s.loss()
	if !finite(loss) {
		return &NonFiniteError{Epoch: epoch, Step: step, Loss: loss}
	}
	if err := f.train.solve(f.Solver); err != nil {
		return fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
	}
	f.since.add(s)
	f.step++
	if f.OnStep != nil {
		f.OnStep(epoch, step, loss)
	}
	return nil
}

// check judges the parameters, and keeps and saves what is to be.
func (f *fit) check(ctx context.Context) error {
	metrics := f.train.workers[0].first.metrics
	c := Check{Epoch: (f.step - 1) / f.plan.steps, Step: f.step, TrainLoss: f.since.loss()}
	if len(metrics) > 0 {
		c.Metrics = map[string]float64{}
	}
	f.since.note(c.Metrics, "train_", metrics)
	if f.validation != nil {
		s, err := f.validation.run(ctx, c.Epoch, f.AllowNonFinite)
		if err != nil {
			return err
		}
		c.Validated, c.ValLoss = true, s.loss()
		s.note(c.Metrics, "val_", metrics)
	}
	f.since = sums{}
	f.history = append(f.history, c)
	f.stopping.Observe(c.named()[f.monitor()])
	keep := f.stopping.kept() == len(f.history)-1
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
	logCheck(f.Log, c, &f.stopping)
	return f.onCheck(keep)
}

// onCheck calls the Config's OnCheck.
func (f *fit) onCheck(best bool) (err error) {
	if f.OnCheck != nil {
		err = f.OnCheck(f.history, best)
	}
	_, err = f.team.agree(nil, err)
	return err
}

// restoreBest puts the values of the check that is kept back into the parameters.
func (f *fit) restoreBest() {
	if len(f.history) == 0 {
		return
	}
	for i, param := range f.Params.All() {
		tensor.Copy(param.Value, f.best[i]) // it was copied from there: shapes and dtypes agree
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
