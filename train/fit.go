package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/optim"
)

// Fit trains until Stopping says so, or for MaxEpochs. Then, and also when it returns an error, ctx is cancelled or a
// limit is reached, the parameters are those of the best check so far, whether or not patience ran out, or those of the
// last one with KeepLast; before the first check they are as far as they got. The result is nil if there was an error
// before the first check.
//
// A loss that isn't finite ends training with a *NonFiniteError. With AllowNonFinite a validation loss doesn't, unless
// it is that of the parameters that are kept in the end.
//
// If a function of the Problem's panics, in whichever goroutine, Fit panics with an error that has its value and stack,
// and wraps the value if that is an error. A Loss that panics is an error, as Gorgonia panics where a graph can't be.
// runtime.Goexit in a goroutine of Fit's is an error.
func Fit(ctx context.Context, p Problem, c Config, call Call) (*Result, error) {
	start := time.Now()
	team, err := newTeam(ctx, call.Group)
	if err != nil {
		return nil, err
	}
	f, err := newFit(p, c, call, team)
	if err = team.begin(f, err); err == nil && call.Resume {
		err = f.resume()
	}
	if err != nil {
		return nil, err
	}
	limit := func() error {
		switch taken := time.Since(start); {
		case ctx.Err() != nil:
			return ctx.Err()
		case call.MaxSteps > 0 && f.step >= call.MaxSteps:
			return pause(fmt.Sprintf("the limit of %s is reached", text.Count(call.MaxSteps, "step")))
		case call.MaxTime > 0 && taken >= call.MaxTime:
			return pause(fmt.Sprintf("the limit of %v is reached, after %s", call.MaxTime, text.Count(f.step, "step")))
		}
		return nil
	}
	err = f.run(ctx, limit)
	defer apart.Repanic(err) // once the parameters are those that are kept
	unfinished := errors.Is(err, errLimit)
	if f.unsaved && team.interrupted(err) {
		if failed := f.save(); failed != nil {
			err, unfinished = failed, false
		}
	}
	if failed := f.restoreBest(); failed != nil {
		err, unfinished = failed, false
	}
	r := f.stopping.result(f.history, err)
	if r.Unfinished = unfinished; unfinished {
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

// errLimit is what every pause is.
var errLimit = errors.New("a limit")

// A pause is an error that says why training ends where it can go on.
type pause string

func (p pause) Error() string        { return string(p) }
func (p pause) Is(target error) bool { return target == errLimit }

// fit is the state of one call of Fit.
type fit struct {
	Problem
	Config
	Call
	solver  *optim.Solver  // the Call's, if its state can be saved; else nil
	plateau *optim.Plateau // nil for none
	average *optim.Average // nil for none

	team       *team
	plan       *plan
	train      *trainer
	validation *validation // nil for none

	step     int    // how many have been taken
	since    window // the steps since the last check
	stopping EarlyStopping
	history  []Check
	best     []*tensor.Dense // a Snapshot of the check to be kept

	asked   error     // by a callback of this process: a pause
	unsaved bool      // the checkpoint is behind
	savedAt time.Time // or when training began
}

func newFit(p Problem, c Config, call Call, team *team) (*fit, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.Train.check("Train"); err != nil {
		return nil, err
	}
	if c.Stopping.Monitor == "" && p.Validation.Len == 0 {
		c.Stopping.Monitor = "train_loss"
	}
	if call.Solver != nil {
		c.Optimizer = optim.Config{LearningRate: 1, Average: c.Optimizer.Average} // the rate is never used
	}
	if err := cmp.Or(c.Check(), call.Check()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	switch {
	case c.Stopping.Patience == 0 && c.MaxEpochs == 0 && call.MaxSteps == 0 && call.MaxTime == 0:
		return nil, errors.New("train: set Patience, MaxEpochs, MaxSteps or MaxTime above 0, or training has no end")
	case call.Checkpoint == "" && (call.Resume || call.CheckpointSteps > 0 || call.CheckpointTime > 0):
		return nil, errors.New("train: name the Checkpoint to resume from or to write")
	}
	solver, plateau, average, err := c.Optimizer.New()
	if err != nil {
		return nil, err
	}
	if plateau != nil {
		plateau.Higher = c.Stopping.Mode == "max"
	}
	if call.Solver == nil {
		call.Solver = solver
	}
	p.ValidationSize = cmp.Or(p.ValidationSize, c.BatchSize)
	making := new(sync.Mutex)
	plan, err := newPlan(p.Train, c.BatchSize, call.Seed, making)
	if err != nil {
		return nil, fmt.Errorf("train: Train: %w", err)
	}
	f := &fit{
		Problem: p, Config: c, Call: call, plateau: plateau, average: average, team: team, savedAt: time.Now(),
		stopping: EarlyStopping{Stopping: c.Stopping, steps: c.CheckEvery > 0},
		plan:     plan,
	}
	f.MaxEpochs = min(f.MaxEpochs, math.MaxInt/f.plan.steps) // whose product is the last step
	f.solver, _ = call.Solver.(*optim.Solver)
	if call.Checkpoint != "" && f.solver == nil {
		return nil, fmt.Errorf("train: a Checkpoint needs an *optim.Solver, whose state can be saved, got a solver of type %T", call.Solver)
	}
	if err := team.check(c.MicroBatches, f.solver); err != nil {
		return nil, err
	}
	if team.rank > 0 {
		f.Log = nil
	}
	if err := f.build(making); err != nil {
		return nil, err
	}
	if err := f.checkMonitor(); err != nil {
		return nil, err
	}
	if err := f.checkMemory(); err != nil {
		return nil, err
	}
	f.best = p.Params.Snapshot()
	return f, nil
}

// build makes what trains and what validates, with a graph of either, so that what is wrong with them is found at once.
func (f *fit) build(making *sync.Mutex) error {
	step, examples := f.plan.largest()
	batches, err := f.plan.batches(examples[:min(f.microSize(), len(examples))], f.microSize())
	if err != nil {
		return fmt.Errorf("train: batch of epoch 0, step %d: %w", step, err)
	}
	if f.train, err = newTrainer(f, batches[0]); err != nil {
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
	if monitor := f.Stopping.monitor(); !slices.Contains(names, monitor) {
		return fmt.Errorf("train: %w", setting.Errorf("%s must be one of %s, got %q", setting.Path("stopping.monitor"), strings.Join(names, ", "), monitor))
	}
	return nil
}

// run trains until there is a reason not to. limit returns an error where training is to end and to be resumable.
func (f *fit) run(ctx context.Context, limit func() error) error {
	if err := f.tellResumed(); err != nil {
		return err
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
		if err := f.takeStep(batches, cmp.Or(f.asked, limit())); err != nil {
			return err
		}
	}
}

// every returns how many steps there are from one check to the next.
func (f *fit) every() int { return cmp.Or(f.CheckEvery, f.plan.steps) }

// done reports whether the last step of the last epoch has been taken.
func (f *fit) done() bool { return f.MaxEpochs > 0 && f.step >= f.MaxEpochs*f.plan.steps }

// due reports whether a check is to be made now.
func (f *fit) due() bool {
	checked := len(f.history) > 0 && f.history[len(f.history)-1].Step == f.step
	return f.step > 0 && !checked && (f.step%f.every() == 0 || f.done())
}

// takeStep takes a training step, unless there is an error before it, and saves where that is due.
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
	if err = f.train.solve(f.Solver); err == nil && f.average != nil {
		err = f.average.Update(f.train.model)
	}
	if err != nil {
		return fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
	}
	f.since.add(s, f.solver)
	f.step++
	f.unsaved = true
	if f.OnStep != nil && f.OnStep(epoch, step, loss) {
		f.asked = pause("OnStep asked for it")
	}
	if f.due() { // a check saves too
		return nil
	}
	return f.saveBetween()
}

// saveBetween saves where that is due between checks. The first process's clock decides.
func (f *fit) saveBetween() error {
	due := f.CheckpointSteps > 0 && f.step%f.CheckpointSteps == 0
	if f.CheckpointTime > 0 {
		since, err := f.team.agree([]float64{float64(time.Since(f.savedAt))}, nil)
		if err != nil {
			return err
		}
		due = due || since[0] >= float64(f.CheckpointTime)
	}
	if !due {
		return nil
	}
	return f.save()
}

// check judges the parameters, and keeps and saves what is to be.
func (f *fit) check(ctx context.Context) error {
	scheduled := f.step%f.every() == 0
	if !scheduled { // It is due as training ends here: with more epochs it is to go on as if there had been no check.
		if err := f.save(); err != nil {
			return err
		}
	}
	if err := f.averaged(func() error { return f.judge(ctx) }); err != nil {
		return err
	}
	if scheduled {
		if err := f.save(); err != nil {
			return err
		}
	}
	err := f.averaged(func() error { return f.onCheck(f.stopping.kept() == len(f.history)-1) })
	if err == nil {
		logCheck(f.Log, f.history[len(f.history)-1], &f.stopping)
	}
	return err
}

// averaged calls do while the parameters are the Average, if there is one.
func (f *fit) averaged(do func() error) error {
	if f.average == nil {
		return do()
	}
	if err := f.average.Swap(f.train.model); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return cmp.Or(do(), f.average.Swap(f.train.model))
}

// judge adds a check of the parameters to the history, and keeps them if they are to be.
func (f *fit) judge(ctx context.Context) error {
	metrics := f.train.workers[0].first.metrics
	c := Check{Epoch: (f.step - 1) / f.plan.steps, Step: f.step, TrainLoss: f.since.loss()}
	if f.solver != nil {
		c.LearningRate, c.GradientNorm = float64(f.since.Rate), float64(f.since.Norm)/float64(f.since.Steps)
	}
	if len(metrics) > 0 {
		c.Metrics = map[string]float64{}
	}
	f.since.note(c.Metrics, "train_", metrics)
	if f.validation != nil {
		s, err := f.validation.run(ctx, c.Epoch, f.Stopping.AllowNonFinite)
		if err != nil {
			return err
		}
		c.Validated, c.ValLoss = true, s.loss()
		s.note(c.Metrics, "val_", metrics)
	}
	f.since = window{}
	f.history = append(f.history, c)
	f.stopping.Observe(f.Stopping.Monitored(c))
	if f.plateau != nil {
		f.plateau.Observe(f.stopping.Last)
	}
	if f.stopping.kept() == len(f.history)-1 {
		for i, param := range f.Params.All() {
			if err := tensor.Copy(f.best[i], param.Value); err != nil {
				return fmt.Errorf("train: keeping the best parameters: %w", err)
			}
		}
	}
	return nil
}

// onCheck calls the Call's OnCheck with a copy of the history.
func (f *fit) onCheck(best bool) (err error) {
	if f.OnCheck != nil {
		history := slices.Clone(f.history)
		for i := range history {
			history[i].Metrics = maps.Clone(history[i].Metrics)
		}
		var stop bool
		if stop, err = f.OnCheck(history, best); stop {
			f.asked = pause("OnCheck asked for it")
		}
	}
	_, err = f.team.agree(nil, err)
	return err
}

// tellResumed calls OnCheck for the checks before, while the parameters are those to be kept.
func (f *fit) tellResumed() error {
	if len(f.history) == 0 {
		return nil
	}
	current := f.Params.Snapshot()
	if err := f.restoreBest(); err != nil {
		return err
	}
	return cmp.Or(f.onCheck(true), f.Params.Restore(current))
}

// restoreBest puts the values of the check that is kept back into the parameters.
func (f *fit) restoreBest() error {
	if len(f.history) == 0 {
		return nil
	}
	if err := f.Params.Restore(f.best); err != nil {
		return fmt.Errorf("train: going back to the parameters that are kept: %w", err)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
