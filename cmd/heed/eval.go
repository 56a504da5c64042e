package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/task"
)

func newEval() *cobra.Command {
	var files, columns []string
	var answers string
	var o task.PredictOptions
	cmd := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model, on its validation set or on a file",
		Long: `Score a run's saved weights on its validation set: the sequences that the seed held out of training,
the rows of the file to validate on, or the last tenth of the text. The loss is the mean cross-entropy in
nats; that of a text of --units bpe is said by character too, to compare it with that of one of
characters. Models of a file's rows then answer these sources, and what they answer is scored too. With
--data, a model that answers rows is scored on all rows of another file.

Of pairs, all that the rows have for a source is right. An answer is compared with the one that is nearest
by edits: symbols to be replaced, inserted or left out. The error rate is all edits by all symbols of those
that are nearest. The model's symbols are counted, or words where it has byte pairs. A source that can't
be answered counts as answered with nothing.`,
		Example: `  heed eval runs/reverse
  heed eval runs/words --data test.tsv --beam 5 --answers answers.tsv`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 1:
				return usagef("heed eval takes one run folder, got %d arguments", len(args))
			case o.Beam < 1:
				return usagef("--beam must be at least 1, got %d", o.Beam)
			case cmd.Flags().Changed("answers") && answers == "":
				return usagef("--answers must be a file's name, got none")
			case columns != nil && len(files) != 1:
				return usagef("--columns goes with one --data, the file that they are of")
			case columns != nil && len(columns) != 2:
				return usagef("--columns must be two, the column of sources and the column of answers, got %q", columns)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(args[0])
			if err != nil {
				return err
			}
			kind, isText := c.Kind(), c.Kind().Columns == nil
			switch {
			case o.Beam > 1 && !kind.Beams:
				return usagef("--beam is for answers written symbol by symbol; %s learned the task %s", args[0], c.Task.Name)
			case isText && (columns != nil || answers != ""):
				return usagef("--columns and --answers are for models of rows; %s learned the task %s", args[0], c.Task.Name)
			}
			out := &outFile{flag: "answers", path: answers, inputs: append(runFiles(args[0]), files...)}
			if answers != "" {
				if files == nil {
					out.inputs = append(out.inputs, dataFiles(c.Data)...)
				}
				if err := out.open(); err != nil {
					return err
				}
				defer out.Close()
			}
			var m *task.Model
			var examples []data.Example
			if files != nil && !isText {
				m, examples, err = openExamples(args[0], columns, files, cmd.ErrOrStderr())
			} else {
				m, examples, err = evaluate(cmd, args[0], files)
				if c.Data.File == "" && answers == "" && o.Beam == 1 {
					return err // as a sequence that is right by the loss is one that is answered
				}
			}
			if err != nil || isText {
				return err
			}
			r, err := m.Judge(cmd.Context(), examples, o)
			if err != nil {
				return wrongFlag(err)
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), r); err != nil || answers == "" {
				return err
			}
			separator := '\t'
			if strings.EqualFold(filepath.Ext(answers), ".csv") {
				separator = ','
			}
			return out.write(cmd.Context(), func(w io.Writer) error { return r.WriteAnswers(w, separator) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&files, "data", nil, "a TSV or CSV file to score, or twice for two parallel ones of lines; of text, another one, which has no other characters, unless the run has --units bpe")
	f.StringSliceVar(&columns, "columns", nil, "with --data: names or numbers of the columns of sources and answers (default: as in training)")
	f.IntVar(&o.Beam, "beam", 1, "answers of pairs that are followed side by side, to take the likeliest")
	f.StringVar(&answers, "answers", "", "a file to write, every source with its answer, what is right, and whether it is: CSV if its name ends in .csv, otherwise TSV")
	return cmd
}

// evaluate prints the score of a run on its validation set, and returns its model and what it validates on.
func evaluate(cmd *cobra.Command, dir string, files []string) (*task.Model, []data.Example, error) {
	t, err := openTask(cmd.Context(), dir, files, nil, true, nil)
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if t.Config.Data.Validation == 0 {
		scores := ""
		if t.Config.Data.File != "" && t.Config.Kind().Columns != nil {
			scores = "; --data FILE scores a file"
		}
		return nil, nil, fmt.Errorf("the run in %s was to validate on nothing, so that there is nothing to evaluate by%s", dir, scores)
	}
	if err := t.Load(dir); err != nil {
		return nil, nil, withoutWeights(err, dir)
	}
	s, err := t.Evaluate(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), scoreText(s, t.Config))
	return t.Model, t.Examples(), err
}

// openExamples opens a run's model and the rows of a file, and says which of these are bad.
func openExamples(dir string, columns, files []string, stderr io.Writer) (*task.Model, []data.Example, error) {
	m, err := openModel(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := named("data", files, new(string), new(string)); err != nil {
		return nil, nil, err
	}
	examples, notes, err := m.ReadExamples(columns, files...)
	if err != nil {
		return nil, nil, err
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, "heed:", oneLine(errors.New(note)))
	}
	return m, examples, nil
}

// readConfig reads a run folder's config.json.
func readConfig(dir string) (task.Config, error) {
	if dir == "" {
		return task.Config{}, errNoFolder
	}
	return task.ReadConfig(dir)
}

// scoreText returns a score as it is printed.
func scoreText(s task.Score, c task.Config) string {
	k, loss := c.Kind(), fmt.Sprintf("Val=%.6f", s.Loss)
	if s.Characters > 0 {
		loss += fmt.Sprintf(" a token, %.6f a character", s.PerCharacter())
	}
	return fmt.Sprintf("%s, accuracy %.4f (%d of %d %s %s)", loss, s.Accuracy(), s.Right, s.Total, k.Unit, k.Right)
}

// openTask opens a run folder's task, with its data but new weights. files and validation, unless they are empty, are
// where the data are now; where others will do, a text may be another one. change, unless it is nil, changes the
// configuration as flags say.
func openTask(ctx context.Context, dir string, files, validation []string, others bool, change func(c *task.Config)) (*task.Task, error) {
	c, err := readConfig(dir)
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
	if others && len(files) > 0 && c.Kind().Columns == nil {
		c.Data.SHA256 = ""
	}
	if change != nil {
		change(&c)
	}
	t, err := newTask(ctx, c)
	var wrong *task.ConfigError
	if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(c.Data.File) {
		err = fmt.Errorf("%w, as seen from the folder that heed is called in", err)
	}
	switch {
	case errors.Is(err, context.Canceled):
	case errors.As(err, &wrong) && change != nil && raises(wrong):
		err = wrongFlag(err)
	case errors.As(err, &wrong): // which isn't the call's fault
		err = fmt.Errorf("%s: %w", filepath.Join(dir, task.ConfigFile), err)
	case err != nil && c.Data.File != "" && others && c.Kind().Columns != nil:
		err = fmt.Errorf("%w; --data FILE scores another file", err)
	case err != nil && c.Data.ValidationFile != "" && len(files)+len(validation) == 0:
		err = fmt.Errorf("%w; --data FILE and --validation-data FILE name the files as they were, if they are elsewhere now", err)
	case err != nil && c.Data.File != "" && len(files) == 0:
		err = fmt.Errorf("%w; --data FILE names the file as it was, if it is elsewhere now", err)
	}
	return t, err
}

// raises reports whether what is wrong is a setting that may be raised in a run.
func raises(wrong *task.ConfigError) bool {
	return slices.Contains(wrong.Paths(), "training.max_epochs") || slices.Contains(wrong.Paths(), "training.stopping.patience")
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
