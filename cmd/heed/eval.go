package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/task"
)

func newEval() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model on its validation set",
		Long: `Score a run's saved weights on its validation set: the sequences that the seed held out of training,
or the last tenth of the text. The loss is the mean cross-entropy in nats.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("heed eval takes one run folder, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTask(cmd.Context(), args[0], text, nil)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := t.Load(args[0]); err != nil {
				return withoutWeights(err, args[0])
			}
			s, err := t.Evaluate(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), scoreText(s, t.Config))
			return err
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "the text, if it is elsewhere now, or another of the same characters")
	return cmd
}

// scoreText returns a score as it is printed.
func scoreText(s task.Score, c task.Config) string {
	what := "sequences exactly right"
	if c.Task.Kind == data.KindText {
		what = "characters predicted"
	}
	return fmt.Sprintf("Val=%.6f, accuracy %.4f (%d of %d %s)", s.Loss, s.Accuracy(), s.Right, s.Total, what)
}

// openTask opens a run folder's task, with its data but new weights. text, unless it is empty, is the text to take
// instead. change, unless it is nil, changes the configuration as flags say.
func openTask(ctx context.Context, dir, text string, change func(c *task.Config)) (*task.Task, error) {
	if dir == "" {
		return nil, errNoFolder
	}
	c, err := task.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	learnsText := c.Task.Kind == data.KindText
	if text != "" {
		if !learnsText {
			return nil, usagef("--text is for a text model; %s learned the task %s", dir, c.Task.Name)
		}
		c.Data.File, c.Data.SHA256 = text, ""
	}
	if change != nil {
		change(&c)
	}
	t, err := newTask(ctx, c)
	var wrong *task.ConfigError
	switch {
	case errors.Is(err, context.Canceled):
	case errors.As(err, &wrong) && change != nil:
		err = wrongFlag(err)
	case errors.As(err, &wrong): // which isn't the call's fault
		err = fmt.Errorf("%s: %w", filepath.Join(dir, task.ConfigFile), err)
	case err != nil && learnsText && text == "":
		err = fmt.Errorf("%w; --text FILE names the text to take", err)
	}
	return t, err
}

// newTask is task.New, and returns at once when ctx ends: scanning a text and splitting data may take a while, and end
// with the process.
func newTask(ctx context.Context, c task.Config) (*task.Task, error) {
	made := make(chan func() (*task.Task, error), 1)
	go func() {
		t, err := task.New(c)
		made <- func() (*task.Task, error) { return t, err }
	}()
	select {
	case got := <-made:
		return got()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// openModel opens a run folder's model.
func openModel(dir string) (*task.Model, error) {
	if dir == "" {
		return nil, errNoFolder
	}
	m, err := task.Open(dir)
	return m, withoutWeights(err, dir)
}

var errNoFolder = usagef("the run folder's name is empty")

// withoutWeights says what to do if a run has no weights.
func withoutWeights(err error, dir string) error {
	if errors.Is(err, task.ErrNoWeights) {
		return fmt.Errorf("%w; heed train --resume %s goes on with it", err, shell(dir))
	}
	return err
}
