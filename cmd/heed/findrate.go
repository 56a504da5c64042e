package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// findRate finds a learning rate, and draws the losses that decide the choice.
func findRate(cmd *cobra.Command, c task.Config, out string, options train.RunOptions) error {
	if !strings.EqualFold(filepath.Ext(out), ".png") {
		return usagef("--find-rate must be a file's name that ends in .png, got %q", out)
	}
	picture := &outFile{flag: "find-rate", path: out, inputs: append(runFiles(c.From.Dir), dataFiles(c.Data)...)}
	if err := picture.open(cmd.OutOrStdout()); err != nil {
		return err
	}
	defer picture.Close()
	t, err := newTask(cmd.Context(), c)
	if err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	defer t.Close()
	if err := t.Config.Training.CheckGroup(options.Group); err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	options.Seed = c.Seed
	const steps = 200
	bar := io.Discard
	if first(options.Group) {
		bar = cmd.ErrOrStderr()
	}
	progress := newProgress(bar, steps, train.Config{MaxEpochs: 1}, train.RunOptions{})
	step := 0
	options.OnStep = func(_, _ int, loss float64) bool {
		step++
		return progress.step(0, step-1, loss)
	}
	losses, rate, err := train.FindRate(cmd.Context(), t.Problem(), t.Config.Training.Config, options, 1e-6, 10, steps)
	progress.clear()
	if err != nil || !first(options.Group) { // only the first process draws
		return err
	}
	f := curve{
		Title: "Loss of " + c.Task.Name + " while the learning rate rises", X: "learning rate", Y: "training loss, smoothed",
		Mark: rate, Note: fmt.Sprintf("steepest at %.2g", rate),
	}
	for _, l := range losses {
		f.Points = append(f.Points, [2]float64{l.Rate, l.Loss})
	}
	if err := picture.write(cmd.Context(), f.writePNG); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The loss falls most steeply at --learning-rate %.2g, as %s shows\n", rate, text.Escape(out))
	return err
}
