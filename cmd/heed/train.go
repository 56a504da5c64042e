package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
)

func newTrain() *cobra.Command {
	c := defaults(data.DefaultTask)
	var out, resume string
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model until it stops improving",
		Long: `Train a model until its validation loss stops improving, and keep the weights of the best epoch.

The flags' defaults are shown for the task reverse; every task has its own. The run folder gets
config.json, model.safetensors, history.jsonl and summary.json. An interrupted run goes on with
--resume and ends with the same bytes.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := cmd.Flags()
			if flags.Changed("resume") {
				if flags.NFlag() > 1 {
					return usagef("--resume goes on with the settings of the run's config.json: give no other flag")
				}
				return resumeRun(cmd, resume)
			}
			if flags.Changed("out") && out == "" {
				return usagef("--out must be a folder's name, got none")
			}
			c, err := fromFlags(c.Task, flags)
			if err != nil {
				return err
			}
			return newRun(cmd, c, out)
		},
	}
	c.bind(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "folder for the run (default runs/TASK, or the first free runs/TASK-2, -3, …)")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with the interrupted run in this folder")
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// newRun starts a run. Everything that can be wrong with a call is found before the folder is made.
func newRun(cmd *cobra.Command, c config, out string) error {
	e, err := newExperiment(c, true)
	if err != nil {
		return err
	}
	defer e.close()
	dir, err := newFolder(out, c.Task)
	if err != nil {
		return err
	}
	if err := writeJSON(dir, configFile, e.config); err != nil {
		return err
	}
	return fit(cmd, e, dir, false)
}

// resumeRun goes on with a run from its last checkpoint, or from the start if it had none yet.
func resumeRun(cmd *cobra.Command, dir string) error {
	c, err := readConfig(dir)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	begun := has(checkpointFile)
	if !begun && has(summaryFile) && has(weightsFile) {
		return fmt.Errorf("the run in %s is finished: there is nothing to resume", dir)
	}
	e, err := reopen(c, true)
	if err != nil {
		return err
	}
	defer e.close()
	if err := tidy(dir); err != nil {
		return err
	}
	return fit(cmd, e, dir, begun)
}

// fit trains and writes the run folder.
func fit(cmd *cobra.Command, e *experiment, dir string, resume bool) error {
	ctx, stdout := cmd.Context(), cmd.OutOrStdout()
	signal.Ignore(syscall.SIGPIPE) // the run is to be whole, also where nobody reads its lines to the end
	fmt.Fprintf(stdout, "Training %s: %d parameters, seed %d, folder %s\n", e.Task, e.params.Count(), e.Seed, dir)

	solver := train.NewAdamW(e.Rate)
	solver.WeightDecay = e.WeightDecay
	solver.Beta2 = 0.98
	solver.ClipNorm = e.Clip
	solver.Schedule = train.WarmUp(e.WarmUp)
	if e.Decay > 0 {
		solver.Schedule = train.WarmUpCosine(e.WarmUp, e.Decay, e.Floor)
	}
	progress := newProgress(cmd.ErrOrStderr(), e.Steps)
	start := time.Now()
	result, err := train.Fit(ctx, e.problem(), train.Config{
		Patience:   e.Patience,
		MaxEpochs:  e.MaxEpochs,
		Solver:     solver,
		Seed:       e.Seed,
		Checkpoint: filepath.Join(dir, checkpointFile),
		Resume:     resume,
		Log:        progress.over(stdout),
		OnStep:     progress.step,
		OnEpoch: func(history []train.Epoch, best bool) error {
			if best {
				if err := e.params.Save(filepath.Join(dir, weightsFile), nil); err != nil {
					return err
				}
			}
			return writeHistory(dir, history)
		},
	})
	progress.clear()
	if err == nil && resume { // no epoch since may have been the best, and the file may be gone
		err = e.params.Save(filepath.Join(dir, weightsFile), nil)
	}
	var s score
	if err == nil {
		s, err = e.evaluate(ctx)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) {
		return fmt.Errorf("%w: heed train --resume %s goes on from the last whole epoch", errInterrupted, shell(dir))
	}
	if err != nil {
		return err
	}
	sum := summary{
		Task: e.Task, Seed: e.Seed, Epochs: len(result.History), BestEpoch: result.Best.Epoch, StoppedEarly: result.StoppedEarly,
		TrainLoss: result.Best.TrainLoss, ValLoss: s.loss, ValAccuracy: s.accuracy(),
		Seconds: math.Round(time.Since(start).Seconds()*10) / 10, Params: e.params.Count(),
	}
	if err := writeJSON(dir, summaryFile, sum); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Best epoch %d: %v\n", sum.BestEpoch, s.text(e))
	if err := os.Remove(filepath.Join(dir, checkpointFile)); err != nil {
		return err
	}
	try := fmt.Sprintf("predict %s %s", shell(dir), shell(e.example))
	if e.generate != nil {
		try = fmt.Sprintf("generate %s --prompt %s --tokens 300", shell(dir), shell(e.example))
	}
	fmt.Fprintf(stdout, "Done in %.1f s. Try: heed %s\n", sum.Seconds, try)
	return nil
}
