package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/task"
)

func newEval() *cobra.Command {
	var files []string
	var answers string
	var as data.Settings // how to read the files
	var o task.PredictOptions
	cmd := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model on its validation set or on a file",
		Long: `Score a run's saved weights on its validation set: the sequences that were held out of training, the
rows of --validation-data, or the last tenth of the text. The loss is the mean cross-entropy in nats. For
a text with --units bpe, heed also prints the loss per character, to compare it with models of characters.
A model that learned rows of a file then answers the sources, and its answers are scored too. With --data,
the model is scored on all rows of another file, or on the last tenth of another text.

For seq2seq, every answer that the rows have for a source is right. Each answer of the model is compared
with the nearest right answer, the one that needs the fewest edits: symbols replaced, inserted or left
out. The error rate is the number of all edits divided by the number of symbols in all nearest right
answers. If the model has byte pairs, words count instead of symbols. A source that the model can't answer
counts as an empty answer.

For tagging with tags such as B-PER, I-PER and O, heed also scores whole entities, as the script conlleval
does: precision, recall and F1 for each type and for all.`,
		Example: `  heed eval runs/reverse
  heed eval runs/words --data test.tsv --beam 5 --answers answers.tsv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("heed eval takes one run folder, got %d arguments", len(args))
			}
			if err := suits(cmd.Flags(), args[0], "header", "skip-bad", "answers"); err != nil {
				return err
			}
			switch {
			case o.Beam < 1:
				return usagef("--beam must be at least 1, got %d", o.Beam)
			case cmd.Flags().Changed("answers") && answers == "":
				return usagef("--answers must be a file's name, got none")
			case cmd.Flags().Changed("encoding") && files == nil:
				return usagef("--encoding needs --data: the encoding of the run's own files is in config.json")
			case as.Columns != nil && files == nil:
				return usagef("--columns needs --data, the file that has these columns")
			case as.Header != "" && len(files) != 1:
				return usagef("--header needs exactly one --data, the file that it describes")
			case as.SkipBad && files == nil:
				return usagef("--skip-bad needs --data: the run's own files are read as in training")
			}
			if as.Columns != nil {
				c, err := readConfig(args[0]) // if it is wrong, the command reports that later
				switch isText := err == nil && c.Kind().Columns == nil; {
				case isText && len(as.Columns) != 1:
					return usagef("--columns must be one for a text, the key in the lines of JSONL files, got %q", as.Columns)
				case isText && !slices.ContainsFunc(files, hasKeys):
					return withoutKeys(files)
				case isText:
				case len(files) != 1:
					return usagef("--columns needs exactly one --data, the file that has these columns")
				}
			}
			return knownEncoding(as.Encoding)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readConfig(args[0])
			if err != nil {
				return err
			}
			isText := c.Kind().Columns == nil
			out := &outFile{flag: "answers", path: answers, inputs: append(runFiles(args[0]), files...)}
			if files == nil {
				out.inputs = append(out.inputs, dataFiles(c.Data)...)
			}
			if err := out.open(cmd.OutOrStdout()); err != nil {
				return err
			}
			defer out.Close()
			if form := table.FormNamed(answers); form == "JSONL" || form == "CoNLL" {
				return usagef("--answers %s promises %s, but answers are written as TSV or CSV: let its name end in .tsv or .csv", answers, form)
			}
			var m *task.Model
			var examples []data.Example
			if files != nil && !isText {
				m, examples, err = openExamples(args[0], as, files, cmd.ErrOrStderr())
			} else {
				m, examples, err = evaluate(cmd, args[0], files, as)
				if c.Data.File == "" && answers == "" && o.Beam == 1 {
					return err // for a rule of Heed's own, the score above already counts the right answers
				}
			}
			if err != nil || isText {
				return err
			}
			r, err := m.Judge(cmd.Context(), examples, o)
			if err != nil {
				return wrongFlag(err, nil)
			}
			if _, err := fmt.Fprint(cmd.OutOrStdout(), r); err != nil || answers == "" {
				return err
			}
			separator := '\t'
			if table.FormNamed(answers) == "CSV" {
				separator = ','
			}
			return out.write(cmd.Context(), func(w io.Writer) error { return r.WriteAnswers(w, separator) })
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&files, "data", nil, "TSV, CSV, JSONL or CoNLL file to score; given twice: a file with one source per line, and one with one answer per line; for text: files or folders of another text, with no new characters unless the run has --units bpe")
	f.StringVar(&as.Encoding, "encoding", "", "with --data: "+encodings+" (default: as in training)")
	f.StringSliceVar(&as.Columns, "columns", nil, "with --data: columns of sources and answers, by name or number, or of two texts and answers; for text: key of the text in .jsonl files (default: as in training)")
	f.StringVar(&as.Header, "header", "", "with --data: yes if the first row is a header, or no if it is a row like the others (default: as in training or, with --columns, a header if names are given)")
	f.BoolVar(&as.SkipBad, "skip-bad", false, "with --data: leave out bad rows whatever their share is (default: as in training)")
	f.IntVar(&o.Beam, "beam", 1, "beam width for seq2seq: number of unfinished answers to keep at each symbol")
	f.StringVar(&answers, "answers", "", "file to write, with each source, its answer, whether it is right, and the right answers: CSV if its name ends in .csv, otherwise TSV; compressed if its name ends in .gz")
	return cmd
}

// evaluate prints the score of a run on its validation set, or on a text that is read as described. It returns the
// run's model and its validation examples.
func evaluate(cmd *cobra.Command, dir string, files []string, as data.Settings) (*task.Model, []data.Example, error) {
	t, err := openTask(cmd.Context(), dir, files, nil, true, func(c *task.Config) { readAs(&c.Data, as) })
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	if t.Config.Data.Validation == 0 {
		scores := ""
		if t.Config.Data.File != "" && t.Config.Kind().Columns != nil {
			scores = ": use --data FILE to score a file"
		}
		return nil, nil, fmt.Errorf("the run in %s has no validation set%s", dir, scores)
	}
	if err := t.Load(dir); err != nil {
		return nil, nil, withoutWeights(err, dir)
	}
	s, err := t.Evaluate(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), s)
	return t.Model, t.Examples(), err
}

// openExamples opens a run's model and reads the examples of a file. It prints notes about the file, such as bad rows.
func openExamples(dir string, as data.Settings, files []string, stderr io.Writer) (*task.Model, []data.Example, error) {
	m, err := openModel(dir)
	if err != nil {
		return nil, nil, err
	}
	readAs(&m.Config.Data, as)
	c := m.Config
	if err := setFiles(&c, files, nil); err != nil { // only to check their number
		return nil, nil, err
	}
	examples, notes, err := m.ReadExamples(files...)
	if err != nil {
		return nil, nil, wrongFlag(err, nil)
	}
	for _, note := range notes {
		fmt.Fprintln(stderr, "heed:", oneLine(errors.New(note)))
	}
	return m, examples, nil
}

// readAs changes how a run reads a file to the settings that as has: Columns, Header, SkipBad and Encoding. With other
// Columns, the run's Header means nothing.
func readAs(run *data.Settings, as data.Settings) {
	if as.Columns != nil {
		run.Columns, run.Header = as.Columns, ""
	}
	run.Header = cmp.Or(as.Header, run.Header)
	run.SkipBad = run.SkipBad || as.SkipBad
	run.Encoding = cmp.Or(as.Encoding, run.Encoding)
}

// suits returns an error if a flag is given that a run's kind of task can't use: --beam, or one of the flags in rows,
// which are for models that answer rows. Commands call it before they judge the flags' values. If the folder has no
// valid configuration, suits returns nil: the command reports that when it opens the run.
func suits(flags *pflag.FlagSet, dir string, rows ...string) error {
	c, err := readConfig(dir)
	if err != nil {
		return nil
	}
	if beam := flags.Lookup("beam"); beam.Value.String() != beam.DefValue && !c.Kind().Beams {
		return usagef("--beam is for answers written symbol by symbol; %s learned the task %s", dir, c.Task.Name)
	}
	if i := slices.IndexFunc(rows, flags.Changed); i >= 0 && c.Kind().Columns == nil {
		return forRows(rows[i], dir, c)
	}
	return nil
}

// forRows returns the error that a text model can't use a flag.
func forRows(flag, dir string, c task.Config) error {
	return usagef("--%s is for models that answer rows; %s learned the task %s", flag, dir, c.Task.Name)
}

// readConfig reads a run folder's config.json.
func readConfig(dir string) (task.Config, error) {
	if dir == "" {
		return task.Config{}, errNoFolder
	}
	return task.ReadConfig(dir)
}

// openTask opens the task of a run folder, with its data but new weights. If files or validation aren't empty, they
// replace the paths of the data. If others is true, a text may differ from the one that was learned. If change isn't
// nil, openTask calls it to change the configuration.
func openTask(ctx context.Context, dir string, files, validation []string, others bool, change func(c *task.Config)) (*task.Task, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Data.File == "" && len(files) > 0:
		return nil, usagef("--data is for models that learned a file; %s learned the task %s", dir, c.Task.Name)
	case c.Data.File == "" && len(validation) > 0:
		return nil, usagef("--validation-data is for models that learned a file; %s learned the task %s", dir, c.Task.Name)
	case c.Kind().Columns == nil && len(validation) > 0:
		return nil, forRows("validation-data", dir, c)
	}
	if err := setFiles(&c, files, validation); err != nil {
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
		err = fmt.Errorf("%w, in the current folder", err)
	}
	switch {
	case errors.Is(err, context.Canceled):
	case errors.As(err, &wrong) && change != nil && raises(wrong):
		err = wrongFlag(err, nil)
	case errors.As(err, &wrong): // config.json is wrong, not the call
		err = fmt.Errorf("%s: %w", filepath.Join(dir, task.ConfigFile), err)
	case err != nil && c.Data.File != "" && others && c.Kind().Columns != nil:
		err = fmt.Errorf("%w; --data FILE scores another file", err)
	case err != nil && c.Data.ValidationFile != "" && len(files)+len(validation) == 0:
		err = fmt.Errorf("%w; if the files have moved, give their names with --data FILE and --validation-data FILE", err)
	case err != nil && c.Data.File != "" && len(files) == 0:
		err = fmt.Errorf("%w; if the file has moved, give its name with --data FILE", err)
	}
	return t, err
}

// raises reports whether the error is about a setting that --resume may raise.
func raises(wrong *task.ConfigError) bool {
	return slices.Contains(wrong.Paths(), "training.max_epochs") || slices.Contains(wrong.Paths(), "training.stopping.patience")
}

// newTask is like task.New, but returns at once when ctx ends. Scanning a text and splitting data may take long: they
// continue until they are done or the process ends.
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

// withoutWeights adds what to do to an error that a run has no weights.
func withoutWeights(err error, dir string) error {
	if errors.Is(err, task.ErrNoWeights) {
		return fmt.Errorf("%w; heed train --resume %s continues the run", err, shell(dir))
	}
	return err
}
