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
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// readAs replaces a run's Columns, Header, Quotes, SkipBad and Encoding with the fields that are set in as. If as has
// Columns, it also drops the run's Header.
func readAs(run *data.Settings, as data.Settings) {
	if as.Columns != nil {
		run.Columns, run.Header = as.Columns, ""
	}
	run.Header = cmp.Or(as.Header, run.Header)
	run.Quotes = cmp.Or(as.Quotes, run.Quotes)
	run.SkipBad = run.SkipBad || as.SkipBad
	run.Encoding = cmp.Or(as.Encoding, run.Encoding)
}

// readFlags declares --base, and the flags that say how eval and predict read the file of --data. The argument columns
// is the help of --columns.
func readFlags(f *pflag.FlagSet, as *data.Settings, columns string) {
	baseFlag(f)
	f.StringVar(&as.Encoding, "encoding", "", "with --data: "+encodings+" (default: as in training)")
	f.StringSliceVar(&as.Columns, "columns", nil, "with --data: "+columns+" (default: as in training)")
	f.StringVar(&as.Header, "header", "", "with --data: yes if the first row is a header, or no if it is a row like the others (default: as in training or, with --columns, a header if names are given)")
	f.StringVar(&as.Quotes, "quotes", "", "with --data: "+quotes)
}

// noting returns a function that prints notes about files to standard error.
func noting(cmd *cobra.Command) func(note string) {
	return func(note string) { fmt.Fprintln(cmd.ErrOrStderr(), "heed:", oneLine(errors.New(note))) }
}

// needData returns an error if one of the flags is given without --data.
func needData(flags *pflag.FlagSet, names ...string) error {
	if i := slices.IndexFunc(names, flags.Changed); i >= 0 && !flags.Changed("data") {
		return usagef("--%s needs --data, the file that it belongs to", names[i])
	}
	return nil
}

// baseFlag declares --base for a command that opens a model: see baseOf.
func baseFlag(f *pflag.FlagSet) {
	f.String("base", "", "if the folder has only the weights that a run trained, or an adapter: folder of the model that it began from (default: as the folder says)")
}

// rowsOnly returns an error if one of the flags is given, but the model in dir, which has this configuration, doesn't
// answer rows.
func rowsOnly(flags *pflag.FlagSet, dir string, c task.Config, names ...string) error {
	if i := slices.IndexFunc(names, flags.Changed); i >= 0 && c.Describe().Rows != nil {
		return forRows(names[i], dir, c)
	}
	return nil
}

// checkOptions returns an error if a model can't use the options that --beam and --top set.
func checkOptions(m *model.Model, o model.PredictOptions) error {
	_, err := m.PredictAll(context.Background(), nil, o)
	return wrongFlag(err, nil)
}

// forRows returns the error that a text model can't use a flag.
func forRows(flag, dir string, c task.Config) error {
	return usagef("--%s is for models that answer rows; %s learned the task %s", flag, dir, c.Task.Name)
}

// readConfig reads a run folder's config.json.
func readConfig(flags *pflag.FlagSet, dir string) (task.Config, error) {
	if dir == "" {
		return task.Config{}, errNoFolder
	}
	return task.ReadConfigBase(dir, baseOf(flags))
}

// openTask opens the task of a run folder, with its data but new weights. If files or validation aren't empty, they
// replace the paths of the data. If others is true, the files may hold a text other than the learned one. If change
// isn't nil, openTask calls it to change the configuration.
func openTask(cmd *cobra.Command, dir string, files, validation []string, others bool, change func(c *task.Config)) (*task.Task, error) {
	c, err := readConfig(cmd.Flags(), dir)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Drawn() && len(files) > 0:
		return nil, usagef("--data is for models that learned a file; %s learned the task %s", dir, c.Task.Name)
	case c.Drawn() && len(validation) > 0:
		return nil, usagef("--validation-data is for models that learned a file; %s learned the task %s", dir, c.Task.Name)
	case c.Describe().Rows != nil && c.Data.ValidationFile == "" && len(validation) > 0:
		return nil, forRows("validation-data", dir, c)
	}
	if err := setFiles(&c, files, validation); err != nil {
		return nil, err
	}
	if others && len(files) > 0 && c.Describe().Rows != nil {
		c.Data.SHA256, c.Data.Pack = "", cmp.Or(c.Data.Pack, "no") // as in training
	}
	if change != nil {
		change(&c)
	}
	t, err := newTask(cmd.Context(), c)
	var wrong *model.ConfigError
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, model.ErrFrom) && !filepath.IsAbs(c.Data.File) {
		err = fmt.Errorf("%w, in the current folder", err)
	}
	switch {
	case errors.Is(err, context.Canceled):
	case errors.Is(err, model.ErrFrom):
		err = withoutBase(err)
	case errors.As(err, &wrong) && change != nil && raises(wrong):
		err = wrongFlag(err, nil)
	case errors.As(err, &wrong): // config.json is wrong, not the call
		err = fmt.Errorf("%s: %w", filepath.Join(dir, runfolder.ConfigFile), err)
	case err != nil && !c.Drawn() && others && c.Describe().Rows == nil:
		err = fmt.Errorf("%w; --data FILE scores another file", err)
	case err != nil && c.Data.ValidationFile != "" && len(files)+len(validation) == 0:
		err = fmt.Errorf("%w; if the files have moved, give their names with --data FILE and --validation-data FILE", err)
	case err != nil && !c.Drawn() && len(files) == 0:
		err = fmt.Errorf("%w; if the file has moved, give its name with --data FILE", err)
	}
	return t, err
}

// raises reports whether the error is about a setting that --resume may raise.
func raises(wrong *model.ConfigError) bool {
	return slices.Contains(wrong.Paths(), "training.max_epochs") || slices.Contains(wrong.Paths(), "training.stopping.patience")
}

// newTask is like task.New, but returns at once when ctx ends. task.New, which may take long, then continues in the
// background.
func newTask(ctx context.Context, c task.Config) (*task.Task, error) {
	var t *task.Task
	made := make(chan error, 1)
	go func() {
		var err error
		t, err = task.New(c)
		made <- err
	}()
	select {
	case err := <-made:
		return t, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// weightsFlag declares --weights for a command that only answers with a model.
func weightsFlag(f *pflag.FlagSet) {
	kept := model.Float32Weights
	choose(f, "weights", &kept, "how to keep the model's weights: %s; int8 takes a quarter of the memory and, with AVX-512 or AVX2, less time per token; its results differ slightly")
}

// languageFlags declares the flags of a command that answers with a model that translates or summarises.
func languageFlags(f *pflag.FlagSet) {
	f.String("prompt-name", "", "for a published model that translates or summarises: task in its config.json, such as summarization, whose prefix and settings it takes, or an empty name for none (default: as the folder says)")
	f.String("source-language", "", "for a published model that translates: code of the inputs' language, such as en_XX (default: as the folder says)")
	f.String("target-language", "", "for a published model that translates: code of the answers' language, such as ro_RO, or fra for >>fra<< (default: as the folder says)")
}

// chooseTexts sets the prompt and the languages that flags choose.
func chooseTexts(flags *pflag.FlagSet, m *model.Model) error {
	value := func(name string) string {
		if f := flags.Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	if flags.Changed("prompt-name") {
		if err := m.SetPrompt(value("prompt-name")); err != nil {
			return err
		}
	}
	if source, target := value("source-language"), value("target-language"); source+target != "" {
		return m.SetLanguages(source, target)
	}
	return nil
}

// beamHelp is the help of --beam.
const beamHelp = "beam width for seq2seq: number of unfinished answers to keep at each symbol (0: as a published model's folder says, or 1)"

// openModel opens a run folder's model, with the weights of --weights, and with the prompt and the languages of other
// flags, if the command has them. Standard output must not be one of the folder's files.
func openModel(cmd *cobra.Command, dir string) (*model.Model, error) {
	if dir == "" {
		return nil, errNoFolder
	}
	if err := checkStdout(cmd.OutOrStdout(), runFiles(dir, baseOf(cmd.Flags()))); err != nil {
		return nil, err
	}
	kept := model.Float32Weights
	if f := cmd.Flags().Lookup("weights"); f != nil {
		kept = f.Value.String()
	}
	_, end := wait(cmd, "Loading the model")
	defer end()
	m, err := model.OpenAs(dir, baseOf(cmd.Flags()), kept)
	if err == nil {
		err = wrongFlag(chooseTexts(cmd.Flags(), m), nil)
	}
	return m, withoutWeights(err, dir)
}

// withoutWeights adds advice to an error that a run has no weights.
func withoutWeights(err error, dir string) error {
	if errors.Is(err, model.ErrNoWeights) {
		return fmt.Errorf("%w; heed train --resume %s continues the run", err, shell(dir))
	}
	return err
}

// withoutBase adds advice to an error that a run's From can't be loaded.
func withoutBase(err error) error {
	if errors.Is(err, model.ErrFrom) {
		return fmt.Errorf("%w; if that model has moved, say where it is with --base", err)
	}
	return err
}

// noteCut prints a note about inputs that are longer than the model's context. The argument inputs is the sentence's
// subject and verb, such as "the input is".
func noteCut(stderr io.Writer, m *model.Model, inputs string) {
	fmt.Fprintf(stderr, "heed: %s longer than the model's %d symbols; %s was ignored\n", inputs, m.Config.Task.MaxLen, m.Config.Describe().Cut)
}

// noAnswerFlag declares --no-answer.
func noAnswerFlag(f *pflag.FlagSet, allowed *bool) {
	f.BoolVar(allowed, "no-answer", false, "for a published model that answers questions: it may say that the context has no answer, as after training on SQuAD 2.0 (default: only if a run learned such questions)")
}
