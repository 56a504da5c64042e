package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/optim"
)

// Fit trains the parameters of p until Stopping ends training, all MaxEpochs are done, or a limit, ctx, a callback or
// an error ends it. In all of these cases, Fit leaves the parameters of the best check so far, or of the last check if
// KeepLast is set or no check improved. Training ends with a check, so all steps count, unless ctx or an error ends it.
// Then, before the first check, Fit leaves the parameters of the last step, or their averages if there are averages,
// and the Result is nil.
//
// If a loss isn't finite, training ends with a *NonFiniteError. With AllowNonFinite, training continues after such a
// validation loss, and Fit returns the error only if the kept parameters have such a loss. If a step makes a parameter
// or the solver's memory NaN or infinite, training ends with this error before the next check or checkpoint, whatever
// the loss is.
//
// If a function of the Problem panics, in any goroutine, Fit panics with an error that has the value and the stack. If
// the value is an error, Fit's error wraps it. If Loss panics, Fit returns an error instead, because Gorgonia panics
// when it can't build a graph. If a function of the Problem calls runtime.Goexit in a goroutine started by Fit, Fit
// returns an error.
func Fit(ctx context.Context, p Problem, c Config, options RunOptions) (*Result, error) {
	start := time.Now()
	team, err := newTeam(ctx, options.Group)
	if err != nil {
		return nil, err
	}
	f, err := newFit(p, c, options, team)
	if err = team.begin(f, err); err == nil && options.Resume {
		err = f.resume()
	}
	if err != nil {
		return nil, err
	}
	limit := func() error {
		switch taken := time.Since(start); {
		case ctx.Err() != nil:
			return ctx.Err()
		case options.MaxSteps > 0 && f.step >= options.MaxSteps:
			return pause(fmt.Sprintf("the limit of %s is reached", text.Count(options.MaxSteps, "step")))
		case options.MaxTime > 0 && taken >= options.MaxTime:
			return pause(fmt.Sprintf("the limit of %v is reached, after %s", options.MaxTime, text.Count(f.step, "step")))
		}
		return nil
	}
	err = f.run(ctx, limit)
	defer func() { apart.Repanic(err) }() // after the kept parameters have been restored
	if f.unsaved && team.interrupted(err) {
		err = cmp.Or(f.save(), err)
	}
	if errors.Is(err, errLimit) && f.step > 0 && !f.checked() {
		err = cmp.Or(f.check(ctx), err)
	}
	err = cmp.Or(f.restoreBest(), err)
	return f.result(err)
}

// result returns the Result and the error of a call of Fit, whose training ended with err.
func (f *fit) result(err error) (*Result, error) {
	r := &Result{History: f.history, Unfinished: errors.Is(err, errLimit)}
	if len(f.history) > 0 {
		r.Best = f.history[f.stopping.kept()]
	}
	switch early := f.stopping.Because(); {
	case r.Unfinished: // only a check that is due stops training early
		r.StoppedBecause = err.Error()
		return r, nil
	case len(f.history) == 0:
		return nil, err
	case early != "":
		r.StoppedEarly, r.StoppedBecause = true, early
	case err != nil:
		r.StoppedBecause = err.Error()
	case f.CheckEvery > 0:
		r.StoppedBecause = fmt.Sprintf("the last epoch is done, after %s", text.Count(f.step, "step"))
	default:
		r.StoppedBecause = fmt.Sprintf("the limit of %s is reached", text.Count(len(f.history), "epoch"))
	}
	if err == nil && r.Best.Validated && !finite(r.Best.ValLoss) {
		err = &NonFiniteError{Epoch: r.Best.Epoch, Step: f.validation.plan.steps - 1, Validation: true, Loss: r.Best.ValLoss}
	}
	return r, err
}

func newFit(p Problem, c Config, options RunOptions, team *team) (*fit, error) {
	if err := cmp.Or(p.check(), p.Train.check("Train")); err != nil {
		return nil, err
	}
	if c.Stopping.Monitor == "" && p.Validation.Len == 0 {
		c.Stopping.Monitor = "train_loss"
	}
	if options.Solver != nil {
		c.Optimizer = optim.Config{LearningRate: 1, Average: c.Optimizer.Average} // the rate is never used
	}
	if err := cmp.Or(c.Check(), options.Check(), c.CheckGroup(options.Group)); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	switch {
	case c.Stopping.Patience == 0 && c.MaxEpochs == 0 && options.MaxSteps == 0 && options.MaxTime == 0:
		return nil, errors.New("train: training has no end: set Patience, MaxEpochs, MaxSteps or MaxTime above 0")
	case options.Checkpoint == "" && (options.Resume || options.CheckpointSteps > 0 || options.CheckpointTime > 0):
		return nil, errors.New("train: Resume, CheckpointSteps and CheckpointTime need a Checkpoint: set its name")
	}
	solver, plateau, average, err := c.Optimizer.New()
	if err != nil {
		return nil, err
	}
	if plateau != nil {
		plateau.Higher = c.Stopping.Mode == "max"
	}
	if options.Solver == nil {
		options.Solver = solver
	}
	p.Params.KeepPanels(false) // also of frozen parameters: Resume may set them
	p.ValidationSize = cmp.Or(p.ValidationSize, c.BatchSize)
	making := new(sync.Mutex)
	plan, err := newPlan(p.Train, c.BatchSize, options.Seed, making)
	if err != nil {
		return nil, fmt.Errorf("train: Train: %w", err)
	}
	f := &fit{
		Problem: p, Config: c, RunOptions: options, plateau: plateau, average: average, team: team, savedAt: time.Now(),
		stopping: EarlyStopping{StoppingConfig: c.Stopping, steps: c.CheckEvery > 0},
		plan:     plan,
		kept:     p.Params.Unfrozen().All(),
	}
	if options.Checkpoint != "" {
		f.frozen = frozenSums(p.Params)
	}
	f.MaxEpochs = min(f.MaxEpochs, math.MaxInt/f.plan.steps) // so that the number of steps doesn't overflow
	f.solver, _ = options.Solver.(*optim.Solver)
	if options.Checkpoint != "" && f.solver == nil {
		return nil, fmt.Errorf("train: a Checkpoint needs an *optim.Solver, whose state can be saved, got a solver of type %T", options.Solver)
	}
	if team.size > 1 && f.solver == nil {
		return nil, fmt.Errorf("train: a Group needs an *optim.Solver, because other solvers can't update only a part of the parameters, got a solver of type %T", options.Solver)
	}
	if f.Log == nil || team.rank > 0 {
		f.Log = io.Discard
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
	f.best = f.values()
	return f, nil
}

// build makes the trainer and the validation. Each builds its first graph, so that errors in the Problem are found
// before training starts.
func (f *fit) build(making *sync.Mutex) error {
	step, examples := f.plan.largest()
	batches, err := f.plan.batches(examples[:min(f.microSize(), len(examples))], f.microSize())
	if err != nil {
		return fmt.Errorf("train: batch of epoch 0, step %d: %w", step, err)
	}
	if f.train, err = newTrainer(f.Problem, f.Config, f.RunOptions, f.team, batches[0]); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if f.Validation.Len > 0 {
		f.validation, err = newValidation(f.Problem, f.team, f.train.workers[0], making)
	}
	return err
}

// checkMonitor returns an error if the monitored value doesn't exist.
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
		return fmt.Errorf("train: %w", setting.Errorf("%s must be one of %s, got %q%s", setting.Path("stopping.monitor"), strings.Join(names, ", "), monitor, text.DidYouMean(monitor, names)))
	}
	return nil
}

// run trains until a limit, early stopping or an error. It calls limit before each step, and stops if limit returns an
// error.
func (f *fit) run(ctx context.Context, limit func() error) error {
	if err := f.tellResumed(); err != nil {
		return err
	}
	end := f.MaxEpochs * f.plan.steps
	if f.MaxSteps > 0 && (end == 0 || f.MaxSteps < end) {
		end = f.MaxSteps
	}
	batches := newFeed(f.plan.between(f.step, end), func(examples []int) ([]batch, error) {
		return f.plan.batches(f.train.own(examples, f.microSize()), f.microSize())
	})
	defer batches.stop()
	for {
		if f.due() {
			if err := f.check(ctx); err != nil {
				return err
			}
			if f.stopping.stopped() {
				fmt.Fprintf(f.Log, "Early stopping at %s\n", strings.ToLower(f.stopping.place(f.history[len(f.history)-1])))
			}
		}
		if f.stopping.stopped() || f.done() {
			return nil
		}
		if err := f.takeStep(batches, cmp.Or(f.asked, limit())); err != nil {
			return err
		}
	}
}

// every returns the number of steps between checks.
func (f *fit) every() int { return cmp.Or(f.CheckEvery, f.plan.steps) }

// done reports whether the last step of the last epoch has been taken.
func (f *fit) done() bool { return f.MaxEpochs > 0 && f.step >= f.MaxEpochs*f.plan.steps }

// due reports whether it is time for a check that hasn't been made yet.
func (f *fit) due() bool {
	return f.step > 0 && !f.checked() && (f.step%f.every() == 0 || f.done())
}

// checked reports whether there is a check of the last step.
func (f *fit) checked() bool {
	return len(f.history) > 0 && f.history[len(f.history)-1].Step == f.step
}

// takeStep takes a training step, and saves a checkpoint if one is due. If err isn't nil, it takes no step and returns
// the error.
func (f *fit) takeStep(feed *feed, err error) error {
	epoch, step := f.step/f.plan.steps, f.step%f.plan.steps
	var batches []batch
	if err == nil {
		if batches, err = feed.next(); err != nil {
			err = fmt.Errorf("train: batch of epoch %d, step %d: %w", epoch, step, err)
		} else if err = f.train.weigh(batches); err != nil {
			err = fmt.Errorf("train: epoch %d, step %d: %w", epoch, step, err)
		}
	}
	weight, processes, err := f.train.total(batches, err)
	if err != nil {
		return err
	}
	if weight == 0 {
		return fmt.Errorf("train: epoch %d, step %d: no target of the batch counts: the Count of its loss is 0: leave out examples without targets, or use larger batches", epoch, step)
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

// saveBetween saves a checkpoint if one is due between checks. The clock of the first process decides about
// CheckpointTime.
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

// check adds a check to the history, saves a checkpoint and calls OnCheck.
func (f *fit) check(ctx context.Context) error {
	if err := f.checkFinite(); err != nil {
		return err
	}
	scheduled := f.step%f.every() == 0
	// Without a schedule, training ends with this check. The checkpoint is saved before it, so that a resumed run gives
	// the same result as if the check had never been made.
	if !scheduled && f.unsaved {
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
		last := f.history[len(f.history)-1]
		fmt.Fprintf(f.Log, "%s: %s\n", f.stopping.place(last), last.values())
	}
	return err
}

// judge adds a check of the current parameters to the history. If Fit would keep these parameters, judge copies them to
// f.best.
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
	f.stopping.Observe(f.Stopping.monitored(c))
	if f.plateau != nil {
		f.plateau.Observe(f.stopping.Last)
	}
	if f.stopping.kept() == len(f.history)-1 {
		for i, q := range f.kept {
			copy(f.best[i].Raw, q.Value.Raw)
		}
	}
	return nil
}

// onCheck calls the OnCheck of the RunOptions with a copy of the history. If OnCheck returns an error in one process,
// onCheck returns it in all.
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

// tellResumed calls OnCheck once if training resumes after some checks. During the call, the parameters have the values
// that Fit would keep.
func (f *fit) tellResumed() error {
	if len(f.history) == 0 {
		return nil
	}
	current := f.values()
	if err := f.restore(f.best); err != nil {
		return err
	}
	return cmp.Or(f.onCheck(true), f.restore(current))
}
