package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// findRate finds a learning rate, and draws the losses that it was chosen by.
func findRate(cmd *cobra.Command, c task.Config, out string, options train.RunOptions) error {
	if err := fileFlag(cmd.Flags(), "find-rate", ".png"); err != nil {
		return err
	}
	picture := &outFile{flag: "find-rate", path: out, inputs: append(runFiles(c.From.Dir, c.From.Base), dataFiles(c.Data)...)}
	if err := picture.open(cmd.OutOrStdout()); err != nil {
		return err
	}
	defer picture.Close()
	var line *waiting
	if options.Group == nil { // mpirun's pseudo-terminal isn't a user's terminal
		l, end := wait(cmd, "Reading the data")
		defer end()
		line = l
	}
	t, err := newTask(cmd.Context(), c)
	if err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	defer t.Close()
	if err := t.Config.Training.CheckGroup(options.Group); err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	line.does("Finding a rate")
	options.Seed = c.Seed
	var losses []train.RateLoss
	var rate float64
	steps := 100
	for ; ; steps *= 4 {
		// There are at most 13 rates, and twice 6 more.
		options.OnStep = newProgress(line, steps, train.Config{MaxEpochs: 25}, train.RunOptions{}).step
		losses, rate, err = train.FindRate(cmd.Context(), t.Problem(), t.Config.Training.Config, options, 1e-5, 10, steps)
		line.clear()
		if !errors.Is(err, train.ErrNoRate) || steps > 100 {
			break
		}
	}
	if err != nil || !first(options.Group) { // only the first process draws
		return err
	}
	f := curve{
		Title: fmt.Sprintf("Loss of %s after %d steps", c.Task.Name, steps), X: "learning rate", Y: "training loss",
		Mark: rate, Note: fmt.Sprintf("fitted minimum: %.2g", rate),
	}
	for _, l := range losses {
		f.Points = append(f.Points, [2]float64{l.Rate, l.Loss})
	}
	if err := picture.write(cmd.Context(), f.writePNG); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "The loss is lowest at --learning-rate %.2g, as %s shows\n", rate, text.Escape(out))
	return err
}
