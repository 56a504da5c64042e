package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

func newTrain(group train.Group) *cobra.Command {
	var out, resume string
	var auto bool
	var find string
	var live bool
	var watchAddr string
	how := watched{Call: train.Call{Group: group}}
	s, _ := defaults(task.Names()[0], 0)
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model until it stops improving",
		Long: `Train a model until its validation loss stops improving, and keep the weights of the best epoch.

The tasks, by what the answer is:

` + aboutTasks() + `
The presets, by what they are for:

` + aboutPresets() + `
All tasks of a file but text learn the rows of --data, a TSV or CSV file. They read the first two
columns, or the columns that a header calls source and target, text and label, or tokens and tags.
Several rows with one source are several right answers. A tenth of the sources, and at most
--validation of them, are held out to validate on.

The defaults of the flags are shown for the task reverse. Every task has its own; those that learn
rows choose theirs by the file.

The run folder gets config.json, model.safetensors, history.jsonl and summary.json, and
checkpoint.safetensors to go on from; report.html, a page about the run, comes when it ends or a limit
ends it. An interrupted run goes on with --resume and ends with the same bytes, on any number of
--workers; a finished one goes on with more --max-epochs or --patience.

Where mpirun starts several processes, and heed was built with -tags mpi, they train together, with
the same bytes: they must divide --micro-batches. Only the first one sees the run folder; --data is
read by all.

SIGINT and SIGTERM write a checkpoint and end the call with status 1; SIGUSR1, which schedulers
send as notice, does so with status 3. With --auto-resume the same call begins a run, goes on with
it and finds it finished.`,
		Example: `  heed train                                  # learns to reverse words, and stops by itself
  heed train --task seq2seq --data words.tsv --out runs/words
  heed train --task classification --data mails.csv --columns body,queue --class-weights balanced
  heed train --task text --data book.txt --preset speedrun --seed 2
  heed train --resume runs/words --max-epochs 40 --watch
  heed train --task tagging --data names.tsv --find-rate=rate.png`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(50) // training makes little garbage: it takes a quarter less memory so, and no more time
			}
			flags := cmd.Flags()
			if err := how.Check(); err != nil {
				return wrongFlag(err)
			}
			if flags.Changed("resume") {
				if err := onlyWithResume(flags); err != nil {
					return err
				}
			}
			if live || flags.Changed("watch-addr") && !flags.Changed("watch") {
				if flags.Changed("find-rate") {
					return usagef("--find-rate makes no run: there is nothing to --watch")
				}
				var err error
				if how.page, err = listenFirst(group, "watch-addr", watchAddr); err != nil {
					return err
				}
				if how.page != nil {
					defer how.page.Close()
				}
			}
			if flags.Changed("resume") {
				return resumeRun(cmd, resume, &s, how)
			}
			if flags.Changed("find-rate") {
				c, err := s.fromFlags(flags)
				if err != nil {
					return err
				}
				return findRate(cmd, c, find, how.Call)
			}
			switch {
			case out == "" && flags.Changed("out"):
				return usagef("--out must be a folder's name, got none")
			case out == "" && auto:
				return usagef("--auto-resume needs an --out, the folder to go on in or to begin in")
			}
			c, err := s.fromFlags(flags)
			if err != nil {
				return err
			}
			return newRun(cmd, c, out, auto, how)
		},
	}
	groups := s.flags()
	common := groups[0].FlagSet
	common.StringVar(&out, "out", "", "folder for the run (default runs/TASK, or the first free runs/TASK-2, -3, …)")
	common.StringVar(&resume, "resume", "", "go on with the run in this folder: an interrupted one, or any with more --max-epochs or --patience")
	common.BoolVar(&auto, "auto-resume", false, "go on with the run in --out if there is one, and be done if it is finished")
	common.StringVar(&find, "find-rate", "", "train for 200 steps at rising learning rates, draw the losses in this PNG, name a rate, and be done, without a run folder")
	common.Lookup("find-rate").NoOptDefVal = "learning-rate.png"
	common.Var(often{&how.Call}, "checkpoint-every", "steps, as 500, or time, as 10m, from one checkpoint to the next; there is one at every check anyway")
	common.Bool("no-examples", false, "leave out of the run's page, report.html, what has texts of the data in it; --resume needs it again")
	common.IntVar(&how.Workers, "workers", 0, "micro-batches to take at once, which changes no result; 0 for one a core")
	common.IntVar(&how.MaxSteps, "max-steps", 0, "steps after which to stop until --resume; 0 for no limit")
	common.DurationVar(&how.MaxTime, "max-time", 0, "time after which to stop until --resume, such as 90s or 1h30m; 0 for no limit")
	common.BoolVar(&live, "watch", false, "show the run's curves on a page while it goes on, whose address is printed; see --watch-addr")
	common.StringVar(&watchAddr, "watch-addr", "127.0.0.1:0", "the page's host and port, 0 for a free one; on another host than this machine's own, all who reach it can see the page")
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.FlagSet)
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		if help := cmd.Flags().Lookup("help"); help != nil && common.Lookup(help.Name) == nil {
			common.AddFlag(help)
		}
		fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, g := range groups {
			fmt.Fprintf(cmd.OutOrStderr(), "\n%s:\n%s", g.title, g.FlagUsages())
		}
		return nil
	})
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.Flags().Changed("find-rate") {
		return usagef("--find-rate has its file behind an =, as --find-rate=FILE.png, got %q on its own", args[0])
	}
	if len(args) > 0 {
		return usagef("%s takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// often is a flag for how often there are checkpoints: a number of steps or a time.
type often struct{ *train.Call }

func (o often) Type() string { return "steps or time" }

func (o often) String() string { return "" }

func (o often) Set(text string) error {
	steps, err := strconv.Atoi(text)
	if err == nil && steps > 0 {
		o.CheckpointSteps, o.CheckpointTime = steps, 0
		return nil
	}
	time, err := time.ParseDuration(text)
	if err != nil || time <= 0 {
		return errors.New("it must be above 0")
	}
	o.CheckpointSteps, o.CheckpointTime = 0, time
	return nil
}

// newRun starts a run or, if it is to, goes on with that of its folder. Everything that can be wrong with a call is
// found before the folder is made.
func newRun(cmd *cobra.Command, c task.Config, out string, auto bool, how watched) error {
	t, err := newTask(cmd.Context(), c)
	dir := out
	if err = divided(how.Group, t, wrongFlag(err)); err == nil && !auto && first(how.Group) {
		dir, err = newFolder(out, c.Task.Name)
	}
	if err == nil && c.From.Dir != "" && first(how.Group) {
		fmt.Fprintln(cmd.OutOrStdout(), loadedText(c.From.Dir, t.Loaded, len(t.Params.All())))
	}
	err = fit(cmd, t, dir, how, err)
	if auto && errors.Is(err, task.ErrFinished) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "The run in %s is finished\n", dir)
	}
	return err
}

// withResume are the flags that --resume may have beside it.
var withResume = []string{"max-epochs", "patience", "workers", "max-steps", "max-time", "checkpoint-every", "watch", "watch-addr", "no-examples", "data", "validation-data"}

// onlyWithResume returns an error for any other flag.
func onlyWithResume(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "resume" && !slices.Contains(withResume, f.Name) {
			err = usagef("--resume goes on with the settings of the run's config.json: give no other flag than --%s and --%s, got --%s",
				strings.Join(withResume[:len(withResume)-1], ", --"), withResume[len(withResume)-1], f.Name)
		}
	})
	return err
}

// resumeRun goes on with a run where it was interrupted, or from the start if it has no checkpoint yet, with what flags
// raise in it.
func resumeRun(cmd *cobra.Command, dir string, s *settings, how watched) error {
	flags := cmd.Flags()
	var raise func(c *task.Config)
	if flags.Changed("max-epochs") || flags.Changed("patience") {
		raise = func(c *task.Config) {
			if flags.Changed("max-epochs") {
				c.Training.MaxEpochs = s.Training.MaxEpochs
			}
			if flags.Changed("patience") {
				c.Training.Stopping.Patience = s.Training.Stopping.Patience
			}
		}
	}
	open := func(dir string) (*task.Task, error) {
		return openTask(cmd.Context(), dir, s.data, s.validationData, false, raise)
	}
	var t *task.Task
	var shared []byte
	var err error
	if first(how.Group) {
		if t, err = open(dir); err == nil && how.Group != nil {
			shared, err = folderStart(dir)
		}
	}
	shared, err = train.Share(how.Group, shared, err)
	if err == nil && !first(how.Group) { // where the folder needn't be
		if dir, err = os.MkdirTemp("", "heed-"); err == nil {
			defer os.RemoveAll(dir)
			if err = writeStart(dir, shared); err == nil {
				t, err = open(dir)
			}
		}
	}
	return fit(cmd, t, dir, how, divided(how.Group, t, err))
}

// fit trains and says what to try then, unless a process comes with an error.
func fit(cmd *cobra.Command, t *task.Task, dir string, how watched, err error) error {
	if t != nil {
		defer t.Close()
	}
	if _, err := train.Share(how.Group, nil, err); err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	signal.Ignore(syscall.SIGPIPE) // the run is to be whole, also where nobody reads its lines to the end
	if look := t.Look(); look != "" && first(how.Group) {
		m, of := t.Config.Model, t.Config.Training
		blocks := text.Count(m.Layers, "block")
		if n := t.Config.DecoderLayers; n > 0 {
			blocks = fmt.Sprintf("%d and %s", m.Layers, text.Count(n, "block"))
		}
		fmt.Fprintf(stdout, "%s  model: width %d, %s, %s; batches of %d, %s an epoch, %s\n", text.Escape(look),
			m.Dim, blocks, text.Count(m.Block.Attention.Heads, "head"), of.BatchSize, text.Count(of.StepsPerEpoch, "step"), atMost(of.MaxEpochs))
	}
	bar, people := cmd.ErrOrStderr(), terminal(stdout) != nil
	if how.Group != nil { // mpirun gives its processes a terminal that isn't one
		bar, people = io.Discard, false
	}
	of := t.Config.Training
	progress := newProgress(bar, of.StepsPerEpoch, of.Config, how.Call)
	call := how.Call
	call.OnStep = progress.step
	call.OnCheck = func(history []train.Check, _ bool) (bool, error) {
		progress.checked(history, of.Stopping.BestOf(history))
		return false, nil
	}
	log, end, err := progress.show(how.page, progress.over(stdout, people), t, dir)
	if err != nil {
		return err
	}
	call.Log = log
	s, err := t.Train(cmd.Context(), dir, call)
	progress.clear()
	if err != nil {
		end(oneLine(interrupted(cmd.Context(), err)))
	} else {
		end(s.Because)
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w: heed train --resume %s goes on from there", interrupted(cmd.Context(), err), shell(dir))
	}
	if err != nil {
		return wrongFlag(err)
	}
	if s.Unfinished {
		if first(how.Group) && s.Best.Step > 0 { // there was a check
			writeReport(cmd, t, dir)
		}
		fmt.Fprintf(stdout, "Stopped because %s: heed train --resume %s goes on from there\n", s.Because, shell(dir))
		return nil
	}
	fmt.Fprintf(stdout, "Stopped because %s\n", s.Because)
	which := "Best"
	if t.Config.Training.Stopping.KeepLast {
		which = "Last"
	}
	at, score := fmt.Sprintf("epoch %d", s.BestEpoch), fmt.Sprintf("Train=%.6f", s.TrainLoss)
	if t.Config.Training.CheckEvery > 0 {
		at = fmt.Sprintf("step %d", s.Best.Step)
	}
	if s.Best.Validated {
		score = scoreText(s.Score, t.Config)
	}
	fmt.Fprintf(stdout, "%s %s: %s\n", which, at, score)
	try := fmt.Sprintf("predict %s %s", shell(dir), shell(t.Config.Task.Example))
	if t.Config.Kind().Generates {
		try = fmt.Sprintf("generate %s --prompt %s --tokens 300", shell(dir), shell(t.Config.Task.Example))
	}
	if first(how.Group) {
		writeReport(cmd, t, dir)
	}
	fmt.Fprintf(stdout, "Done in %.1f s. Try: heed %s\n", s.Seconds, try)
	return nil
}

// loadedText says which parameters another run's weights had.
func loadedText(from string, l layers.Loaded, all int) string {
	s := fmt.Sprintf("Starting from %s: %d of %d tensors", text.Escape(from), all-len(l.Kept), all)
	if len(l.Kept) > 0 {
		s += "; new ones: " + scopes(l.Kept)
	}
	if len(l.Unused) > 0 {
		s += "; left out: " + text.Escape(scopes(l.Unused))
	}
	return s
}

// scopes lists tensors by the first two parts of their names, such as decoder.blocks, with how many there are of each.
func scopes(names []string) string {
	counts := map[string]int{}
	for _, name := range names {
		parts := strings.SplitN(name, ".", 3)
		counts[strings.Join(parts[:min(2, len(parts))], ".")]++
	}
	var parts []string
	for _, scope := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", scope, counts[scope]))
	}
	return strings.Join(parts, ", ")
}

// atMost says how many epochs there may be.
func atMost(epochs int) string {
	if epochs == 0 {
		return "as many epochs as it takes"
	}
	return text.Count(epochs, "epoch") + " at most"
}
