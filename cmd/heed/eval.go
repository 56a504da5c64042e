package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"
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
			e, err := openRun(args[0], text, true)
			if err != nil {
				return err
			}
			defer e.close()
			s, err := e.evaluate(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), s.text(e))
			return err
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "the text, if it is elsewhere now, or another of the same characters")
	return cmd
}

// text is a score as it is printed.
func (s score) text(e *experiment) string {
	what := "characters predicted"
	if e.sequences {
		what = "sequences exactly right"
	}
	return fmt.Sprintf("Val=%.6f, accuracy %.4f (%d of %d %s)", s.loss, s.accuracy(), s.right, s.total, what)
}

// openRun opens a run folder's experiment with its saved weights and, if asked to, its data: those of text, unless that
// is empty.
func openRun(dir, text string, withData bool) (*experiment, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	if text != "" {
		if c.Task != textTask {
			return nil, usagef("--text is for a text model; %s learned the task %s", dir, c.Task)
		}
		c.Text, c.Sum = text, ""
	}
	e, err := reopen(c, withData)
	if err != nil {
		if c.Task == textTask && text == "" && withData {
			err = fmt.Errorf("%w; --text FILE names the text to take", err)
		}
		return nil, err
	}
	if _, err := e.params.Load(filepath.Join(dir, weightsFile)); err != nil {
		e.close()
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s has no weights: the run ended before its first epoch did; heed train --resume %s goes on with it", dir, shell(dir))
		}
		return nil, err
	}
	return e, nil
}

// reopen makes the experiment of a config.json. What is wrong there isn't the call's fault.
func reopen(c config, withData bool) (*experiment, error) {
	e, err := newExperiment(c, withData)
	var usage *usageError
	if errors.As(err, &usage) {
		err = fmt.Errorf("%s: %w", c.file, usage.err)
	}
	return e, err
}
