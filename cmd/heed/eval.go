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
	var files []string
	cmd := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model on its validation set",
		Long: `Score a run's saved weights on its validation set: the sequences that the seed held out of training,
the rows of the file to validate on, or the last tenth of the text. The loss is the mean cross-entropy in nats.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("heed eval takes one run folder, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTask(cmd.Context(), args[0], files, nil, true, nil)
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
	cmd.Flags().StringArrayVar(&files, "data", nil, "the file that was learned, if it is elsewhere now; of text, or another one of the same characters")
	return cmd
}

// scoreText returns a score as it is printed.
func scoreText(s task.Score, c task.Config) string {
	what := "sequences exactly right"
	switch {
	case c.Task.Kind == data.KindText:
		what = "characters predicted"
	case c.Data.File == "":
	case c.Task.Kind == data.KindTags:
		what = "tags right"
	case c.Task.Kind == data.KindLabels:
		what = "labels right"
	default:
		what = "rows exactly right"
	}
	return fmt.Sprintf("Val=%.6f, accuracy %.4f (%d of %d %s)", s.Loss, s.Accuracy(), s.Right, s.Total, what)
}

// openTask opens a run folder's task, with its data but new weights. files and validation, unless they are empty, are
// where the data are now; where others will do, a text may be another one. change, unless it is nil, changes the
// configuration as flags say.
func openTask(ctx context.Context, dir string, files, validation []string, others bool, change func(c *task.Config)) (*task.Task, error) {
	if dir == "" {
		return nil, errNoFolder
	}
	c, err := task.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	if c.Data.File == "" && len(files)+len(validation) > 0 {
		return nil, usagef("--data is for models of a file; %s learned the task %s", dir, c.Task.Name)
	}
	if err := named("data", files, &c.Data.File, &c.Data.TargetFile); err != nil {
		return nil, err
	}
	if err := named("validation-data", validation, &c.Data.ValidationFile, &c.Data.ValidationTargetFile); err != nil {
		return nil, err
	}
	if others && len(files) > 0 && c.Task.Kind == data.KindText {
		c.Data.SHA256 = ""
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
	case err != nil && c.Data.ValidationFile != "" && len(files)+len(validation) == 0:
		err = fmt.Errorf("%w; --data FILE and --validation-data FILE name the files as they were, if they are elsewhere now", err)
	case err != nil && c.Data.File != "" && len(files) == 0:
		err = fmt.Errorf("%w; --data FILE names the file as it was, if it is elsewhere now", err)
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
