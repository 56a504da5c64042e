package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/report"
	"github.com/heed-go/heed/train/task"
)

func newSweep() *cobra.Command {
	s := sweep{sweepPlan: sweepPlan{Seed: 1}}
	cmd := &cobra.Command{
		Use:   "sweep FOLDER [flags] -- FLAG...",
		Short: "Search for the best settings of a training",
		Long: `Train with many settings, stop the runs that do worse, and compare them on a page.

The flags after the two dashes are for heed train. A flag may have a list of values, such as
--learning-rate 1e-3,3e-3 or --solver adamw,muon,learning_rate=0.05. There is a run for each combination
of values. With --samples N, there are N random combinations instead. A number may then also be a range,
such as 1e-4..1e-2. If both ends are above 0, heed draws from it on a logarithmic scale.

In the first round, each run takes --steps steps, rounded up to its next check. One in --halving of the
runs, the best ones, continue to --halving times as many steps, and so on. The last run that is left
trains to its end. The best run has the best value of --monitor or, if that is a loss, the best score.
With --halving 1, all runs train to their ends.

Each run has a folder in FOLDER, with the same files as if heed train had made it; heed train --resume
continues a run that was stopped. FOLDER also gets sweep.json, and report.html, the page that compares
the runs. An interrupted sweep continues if you repeat the command. The result doesn't depend on
--workers.`,
		Example: `  heed sweep sweeps/copy -- --task copy --learning-rate 1e-3,3e-3,1e-2 --dim 32,64
  heed sweep sweeps/mails --samples 20 --workers 2 -- --task classification --data mails.csv --learning-rate 1e-4..1e-2 --dropout 0..0.4`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usagef("heed sweep takes a folder, two dashes and flags of heed train, as in heed sweep sweeps/copy -- --task copy --dim 32,64")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.dir, s.Flags = args[0], args[1:]
			return s.run(cmd)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&s.Samples, "samples", 0, "number of random combinations to try (0: all combinations of the lists)")
	f.Uint64Var(&s.Seed, "seed", s.Seed, "seed of the random combinations; for the seed of the runs, give --seed after the two dashes")
	f.IntVar(&s.Steps, "steps", 200, "steps of each run in the first round, rounded up to the run's next check")
	f.IntVar(&s.Halving, "halving", 3, "3 means that a third of the runs continues after each round, to three times as many steps (1: all runs train to their ends)")
	f.IntVar(&s.workers, "workers", 1, "runs to train in parallel; doesn't change the result")
	return cmd
}

// run plans the runs, trains them round after round, and prints the result.
func (s *sweep) run(cmd *cobra.Command) error {
	if err := atLeastOne(cmd.Flags(), "steps", "halving", "workers"); err != nil {
		return err
	}
	if s.Samples < 0 || s.Samples > mostRuns {
		return usagef("--samples must be from 0 to %d, got %d", mostRuns, s.Samples)
	}
	if err := s.plan(); err != nil {
		return err
	}
	for _, r := range s.runs {
		if err := cmp.Or(notInText(r.config.Data, r.dir), checkStdout(cmd.OutOrStdout(), append(runFiles(r.dir), dataFiles(r.config.Data)...))); err != nil {
			return err
		}
	}
	if err := interrupted(cmd.Context(), cmd.Context().Err()); err != nil { // before making the folder
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	collectOften(50)
	left := s.runs
	for budget := s.Steps; ; budget *= s.Halving {
		if len(left) == 1 || s.Halving == 1 || budget > math.MaxInt/s.Halving {
			budget = math.MaxInt
		}
		if err := s.round(cmd, left, budget); err != nil {
			return err
		}
		ranked, err := s.rank(cmd, left, budget)
		if err != nil {
			return err
		}
		if budget == math.MaxInt || len(ranked) == 0 {
			return s.finish(cmd)
		}
		left = ranked[:(len(ranked)-1)/s.Halving+1]
	}
}

// round trains runs until they have taken budget steps, up to s.workers of them in parallel.
func (s *sweep) round(cmd *cobra.Command, runs []*sweepRun, budget int) error {
	var failure atomic.Pointer[error] // the first error, which ends the sweep
	options := train.RunOptions{
		Workers: max(1, runtime.GOMAXPROCS(0)/s.workers), CheckpointTime: 10 * time.Minute,
		OnStep: func(int, int, float64) bool { return failure.Load() != nil },
	}
	var ended atomic.Int64
	next := make(chan *sweepRun)
	var workers sync.WaitGroup
	for range min(s.workers, len(runs)) {
		workers.Go(func() {
			for r := range next {
				if failure.Load() != nil {
					continue
				}
				if err := r.train(cmd.Context(), budget, options); err != nil {
					err = fmt.Errorf("%s: %w", text.Escape(r.dir), err)
					failure.CompareAndSwap(nil, &err)
				}
				if n := ended.Add(1); terminal(cmd.ErrOrStderr()) != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "heed: %d of %s in this round\n", n, text.Count(len(runs), "run"))
				}
			}
		})
	}
	for _, r := range runs {
		next <- r
	}
	close(next)
	workers.Wait()
	err := failure.Load()
	if err == nil {
		return nil
	}
	if errors.Is(*err, context.Canceled) {
		return fmt.Errorf("%w: the same command continues the sweep", interrupted(cmd.Context(), *err))
	}
	return *err
}

// train trains a run until it has taken budget steps, or does nothing if it has taken them. A loss that isn't finite
// ends the run without an error.
func (r *sweepRun) train(ctx context.Context, budget int, options train.RunOptions) error {
	if run, err := task.ReadRun(r.dir); err == nil && (run.Summary != nil || run.History[len(run.History)-1].Step >= stepsOf(&run.Config, budget)) {
		return nil
	}
	t, err := newTask(ctx, r.config)
	if err != nil {
		return wrongFlag(err, nil)
	}
	defer t.Close()
	if budget < math.MaxInt {
		options.MaxSteps = stepsOf(&t.Config, budget)
	}
	_, err = t.Train(ctx, r.dir, options)
	r.diverged = errors.As(err, new(*train.NonFiniteError))
	if r.diverged || errors.Is(err, task.ErrFinished) {
		return nil
	}
	return err
}

// stepsOf returns the step of the first check at which a run has taken budget steps.
func stepsOf(c *task.Config, budget int) int {
	every := cmp.Or(c.Training.CheckEvery, c.Training.StepsPerEpoch, 1)
	if budget > math.MaxInt-every {
		return math.MaxInt
	}
	return (budget + every - 1) / every * every
}

// read reads the history of a run until it had taken budget steps. It returns nil if the run made no check.
func (r *sweepRun) read(budget int) (*report.Run, error) {
	run, err := task.ReadRun(r.dir)
	if errors.Is(err, task.ErrNoHistory) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	end, stopping := stepsOf(&run.Config, budget), run.Config.Training.Stopping
	n := len(run.History)
	run.History = slices.DeleteFunc(run.History, func(c train.Check) bool { return c.Step > end })
	if len(run.History) < n { // then the summary is about a later check
		run.Best, run.Summary = stopping.BestOf(run.History), nil
		if run.Best < 0 || stopping.KeepLast {
			run.Best = len(run.History) - 1
		}
	}
	return report.FromTask(r.dir, run), nil
}

// sorted returns runs with their pages, the best first, judged by their checks within budget steps. It leaves out runs
// without a check. The name of the value that decides is for Run.Value.
func sorted(runs []*sweepRun, budget int) (best []*sweepRun, pages []*report.Run, name string, err error) {
	found := map[*report.Run]*sweepRun{}
	for _, r := range runs {
		page, err := r.read(budget)
		if err != nil {
			return nil, nil, "", err
		}
		if page != nil {
			found[page] = r
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		return nil, nil, "", errors.New("all runs diverged before their first check: try lower learning rates")
	}
	if pages, name = report.Sorted(pages); name == "" {
		return nil, nil, "", usagef("the runs can't be compared, because they differ in their task or in the units of their answers: make a sweep for each")
	}
	for _, page := range pages {
		best = append(best, found[page])
	}
	return best, pages, name, nil
}

// rank prints how good the runs are after a round. It returns the runs that can continue, the best first.
func (s *sweep) rank(cmd *cobra.Command, runs []*sweepRun, budget int) (left []*sweepRun, err error) {
	best, pages, name, err := sorted(runs, budget)
	if err != nil {
		return nil, err
	}
	out := cmd.OutOrStdout()
	when := fmt.Sprintf("at least %s each", text.Count(budget, "step"))
	if budget == math.MaxInt {
		when = "to the end"
	}
	fmt.Fprintf(out, "%s, %s:\n", text.Count(len(runs), "run"), when)
	for i, r := range best {
		diverged := ""
		if r.diverged {
			diverged = ", diverged"
		} else {
			left = append(left, r)
		}
		fmt.Fprintf(out, "  %s: %s%s  %s\n", filepath.Base(r.dir), judgement(pages[i], name), diverged, shellAll(r.varied))
	}
	if n := len(runs) - len(best); n > 0 {
		fmt.Fprintf(out, "  diverged before a check: %s\n", text.Count(n, "run"))
	}
	return left, nil
}

// finish writes the page that compares all runs, and prints the best run's command.
func (s *sweep) finish(cmd *cobra.Command) error {
	best, pages, name, err := sorted(s.runs, math.MaxInt)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, runfolder.ReportFile)
	if err := atomicfile.WriteFile(path, func(w io.Writer) error { return report.Compare(w, pages) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "Report: %s\nBest: %s, %s\nheed train %s\n",
		text.Escape(path), text.Escape(best[0].dir), judgement(pages[0], name), shellAll(best[0].flags))
	return err
}

// judgement returns the value of a run that decides, and its validation loss.
func judgement(page *report.Run, name string) string {
	s := fmt.Sprintf("%s %.4f", name, page.Value(name))
	if within := page.Interval(name); within != [2]float64{} {
		s += fmt.Sprintf(" (95 %% interval %.3f to %.3f)", within[0], within[1])
	}
	if loss := page.Value("val_loss"); !math.IsNaN(loss) {
		s += fmt.Sprintf(", val_loss %.4f", loss)
	}
	return s
}

// shellAll quotes words for a shell.
func shellAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shell(w)
	}
	return strings.Join(quoted, " ")
}
