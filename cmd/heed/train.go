package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

// A training is one call of heed train.
type training struct {
	settings
	out, resume string // run folders
	auto        bool
	find        string // picture that --find-rate draws
	live        bool
	watchAddr   string
	options     train.RunOptions
	page        net.Listener // for the page of --watch; nil: no page
	began       time.Time
	line        *waiting
}

// trainHelp has two verbs: for the list of tasks and the list of presets.
const trainHelp = `Train a model until it stops improving in validation, and keep the weights of the best epoch.

Tasks, each with the answer that it learns:

%s
Presets, each with its task:

%s
Except for text and mlm, a task that learns from a file reads the rows of --data, a TSV, CSV or JSONL file.
Its columns or keys are called source and target, text and label, text and number, or tokens and tags. If
the header has other names, or if there is no header and more than two columns, --columns chooses two. If an
answer is about two texts, it chooses three: the two texts, which are one source, and the answer. For qa, the
columns are question, context, answer and, if there is one, answer_start. For embed, they are query, positive
and any number of negatives, or two texts and their score. The first row is a header if it has these names or
names from --columns. Tagging also learns CoNLL files, such as .conll, .bio and .conllu: the first column has
the tokens and the last the tags, or FORM and UPOS in .conllu. For seq2seq, if several rows have the same
source, each of their answers is right. For validation, heed holds out a tenth of the sources, but at most
--validation of them; for classification, the same share of each label's sources.

The flags below show the defaults of the task reverse. Each task has its own defaults. If a task
learns rows, some defaults depend on the file.

The run folder gets config.json, model.safetensors, history.jsonl and summary.json, and
checkpoint.safetensors for --resume. It gets report.html, a page about the run, when the run ends or
reaches a limit. With --resume, an interrupted run continues and ends with the same bytes, whatever
the number of --workers. A finished run continues if --max-epochs or --patience is raised.

If heed was built with -tags mpi, the processes that mpirun starts train together, and the result has
the same bytes. --micro-batches must be 1, 2, 4, 8, … times the number of processes. Only the first
process uses the run folder. All processes read --data.

On SIGINT and SIGTERM, heed writes a checkpoint and exits with status 1. On SIGUSR1, which schedulers
send before they end a job, it does the same with status 3. Then --auto-resume lets you repeat the command.`

func newTrain(group train.Group) *cobra.Command {
	r := training{options: train.RunOptions{Group: group, CheckpointTime: 10 * time.Minute}}
	r.settings, _ = defaults(task.Names()[0], 0)
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model until it stops improving",
		Long:  fmt.Sprintf(trainHelp, aboutTasks(), aboutPresets()),
		Example: `  heed train                                  # learns to reverse words, and stops by itself
  heed train --task seq2seq --data words.tsv --out runs/words
  heed train --task classification --data mails.csv --columns body,queue --class-weights balanced
  heed train --task text --data book.txt --preset speedrun --seed 2
  heed train --resume runs/words --max-epochs 40 --watch
  heed train --task tagging --data names.tsv --find-rate=rate.png`,
		Args: noFile,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	groups := r.flags()
	f := groups[0].FlagSet
	f.StringVar(&r.out, "out", "", "run folder (default runs/TASK, or the first free one of runs/TASK-2, runs/TASK-3, …)")
	f.StringVar(&r.resume, "resume", "", "run folder to continue, if the run was interrupted or --max-epochs or --patience is raised")
	f.BoolVar(&r.auto, "auto-resume", false, "continue the run in --out if there is one; do nothing if it is finished")
	f.StringVar(&r.find, "find-rate", "", "instead of a run, suggest a learning rate: train for 100 steps at each of several rates and draw the losses in this PNG")
	f.Lookup("find-rate").NoOptDefVal = "learning-rate.png"
	intervalFlag(f, &r.options)
	f.Bool("no-examples", false, "leave texts of the data and paths of files out of report.html; repeat this flag with --resume")
	f.IntVar(&r.options.Workers, "workers", 0, "micro-batches to compute in parallel; doesn't change the result (0: one per core)")
	f.IntVar(&r.options.MaxSteps, "max-steps", 0, "total steps after which training stops until --resume (0: no limit)")
	f.DurationVar(&r.options.MaxTime, "max-time", 0, "time after which training stops until --resume, such as 90s or 1h30m (0: no limit)")
	f.BoolVar(&r.live, "watch", false, "show curves on a web page during training and print its address; see --watch-addr")
	f.StringVar(&r.watchAddr, "watch-addr", "127.0.0.1:0", "host and port of the page of --watch (port 0: a free one); with a host other than localhost, everyone who can reach it can see the page")
	showGroups(cmd, groups)
	cmd.MarkFlagsMutuallyExclusive("find-rate", "watch")
	cmd.MarkFlagsMutuallyExclusive("find-rate", "watch-addr")
	return cmd
}

// showGroups adds the groups of flags to cmd. The help shows each group under its title.
func showGroups(cmd *cobra.Command, groups []flagGroup) {
	for _, g := range groups {
		cmd.Flags().AddFlagSet(g.FlagSet)
	}
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		if help, common := cmd.Flags().Lookup("help"), groups[0]; help != nil && common.Lookup(help.Name) == nil {
			common.AddFlag(help)
		}
		fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
		for _, g := range groups {
			fmt.Fprintf(cmd.OutOrStderr(), "\n%s:\n%s", g.title, g.FlagUsages())
		}
		return nil
	})
}

// run checks the flags. Then it starts a run, continues one, or finds a learning rate.
func (r *training) run(cmd *cobra.Command) error {
	collectOften(50)
	r.began = time.Now()
	flags := cmd.Flags()
	if err := r.options.Check(); err != nil {
		return wrongFlag(err, nil)
	}
	resuming := flags.Changed("resume")
	if err := onlyWithResume(flags); resuming && err != nil {
		return err
	}
	if r.live || flags.Changed("watch-addr") && !flags.Changed("watch") {
		var err error
		if r.page, err = listenFirst(r.options.Group, "watch-addr", r.watchAddr); err != nil {
			return err
		}
		if r.page != nil {
			defer r.page.Close()
		}
	}
	if resuming {
		return r.continueRun(cmd, r.resume)
	}
	switch {
	case r.out == "" && flags.Changed("out"):
		return usagef("--out must be a folder's name, got none")
	case r.out == "" && r.auto:
		return usagef("--auto-resume needs --out, the folder of the run")
	}
	c, err := r.fromFlags(flags)
	if err != nil {
		return err
	}
	if flags.Changed("find-rate") {
		return r.findRate(cmd, c)
	}
	return r.newRun(cmd, c)
}

// noFile is like noArgs, and recognises the file of --find-rate without its equals sign.
func noFile(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.Flags().Changed("find-rate") {
		return usagef("write the file of --find-rate after an equals sign, as in --find-rate=FILE.png, got %q as an argument", args[0])
	}
	return noArgs(cmd, args)
}

// newRun starts a run. With --auto-resume, it continues the run in --out if there is one. It makes the folder only
// after it has checked the whole call.
func (r *training) newRun(cmd *cobra.Command, c task.Config) error {
	if err := notInText(c.Data, cmp.Or(r.out, "runs")); err != nil {
		return err
	}
	group, stdout := r.options.Group, cmd.OutOrStdout()
	defer r.wait(cmd)()
	var t *task.Task
	err := checkStdout(stdout, slices.Concat(dataFiles(c.Data), runFiles(c.From.Dir, c.From.Base, r.out)))
	if err == nil {
		t, err = newTask(cmd.Context(), c)
	}
	if err == nil {
		err = t.Config.Training.CheckGroup(group)
	}
	dir := r.out
	if err = wrongFlag(err, cmd.Flags()); err == nil && !r.auto && first(group) {
		dir, err = newFolder(dir, c.Task.Name)
	}
	if err == nil && c.From.Dir != "" && first(group) {
		fmt.Fprintln(stdout, loadedText(t))
	}
	err = r.fit(cmd, t, dir, err)
	if r.auto && errors.Is(err, task.ErrFinished) {
		_, err = fmt.Fprintf(stdout, "The run in %s is finished\n", dir)
	}
	return err
}

// notInText returns an error if a run folder would be in a folder whose files are the text.
func notInText(d data.Settings, out string) error {
	for _, folder := range dataFiles(d) {
		if within(folder, out) {
			return usagef("the run folder %s would be in the folder of --data, %s, and become a part of the text: choose another folder with --out", out, folder)
		}
	}
	return nil
}

// withResume lists the flags that may be given with --resume.
var withResume = []string{"max-epochs", "patience", "workers", "max-steps", "max-time", "checkpoint-every", "watch", "watch-addr", "no-examples", "data", "validation-data", "base"}

// onlyWithResume returns an error if a flag is given that isn't in withResume.
func onlyWithResume(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "resume" && !slices.Contains(withResume, f.Name) {
			err = usagef("--resume takes its settings from the run's config.json: only --%s and --%s may be given with it, got --%s",
				strings.Join(withResume[:len(withResume)-1], ", --"), withResume[len(withResume)-1], f.Name)
		}
	})
	return err
}

// continueRun continues a run from its checkpoint, or from the start if it has none yet. It applies --max-epochs and
// --patience to the run's configuration.
func (r *training) continueRun(cmd *cobra.Command, dir string) error {
	flags, group := cmd.Flags(), r.options.Group
	defer r.wait(cmd)()
	var raise func(c *task.Config)
	if flags.Changed("max-epochs") || flags.Changed("patience") {
		raise = func(c *task.Config) {
			if flags.Changed("max-epochs") {
				c.Training.MaxEpochs = r.Training.MaxEpochs
			}
			if flags.Changed("patience") {
				c.Training.Stopping.Patience = r.Training.Stopping.Patience
			}
		}
	}
	open := func(dir string) (*task.Task, error) {
		t, err := openTask(cmd, dir, r.data, r.validationData, false, raise)
		if err == nil && raise != nil && t.Config.Solved() {
			err = r.withoutEpochs(flags)
		}
		return t, err
	}
	var t *task.Task
	var shared []byte
	var err error
	if first(group) {
		if t, err = open(dir); err == nil {
			err = checkStdout(cmd.OutOrStdout(), append(runFiles(dir, r.From.Base), dataFiles(t.Config.Data)...))
		}
		if err == nil && group != nil {
			shared, err = folderStart(dir)
		}
	}
	shared, err = train.Broadcast(group, shared, interrupted(cmd.Context(), err))
	if err == nil && !first(group) { // the folder may exist only for the first process
		if dir, err = os.MkdirTemp("", "heed-"); err == nil {
			defer os.RemoveAll(dir)
			if err = writeStart(dir, shared); err == nil {
				t, err = open(dir)
			}
		}
	}
	if err == nil {
		err = wrongFlag(t.Config.Training.CheckGroup(group), flags)
	}
	return r.fit(cmd, t, dir, err)
}

// wait shows what the command is doing while it prints nothing, until its result is called.
func (r *training) wait(cmd *cobra.Command) (end func()) {
	r.line, end = waitIf(r.options.Group == nil, cmd, "Reading the data") // mpirun's pseudo-terminal isn't a user's terminal
	return end
}

// fit trains t, prints the result and what to try next, and writes the report. If err isn't nil in one of the
// processes, fit returns it in all of them.
func (r *training) fit(cmd *cobra.Command, t *task.Task, dir string, err error) error {
	if t != nil {
		defer t.Close()
	}
	if _, err := train.Broadcast(r.options.Group, nil, interrupted(cmd.Context(), err)); err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	signal.Ignore(syscall.SIGPIPE) // the run continues even if nobody reads its output any more
	resume := "heed train --resume " + shell(dir) + " continues the run"
	advise(cmd.ErrOrStderr(), resume)
	s, err := r.train(cmd, t, dir)
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %s", interrupted(cmd.Context(), err), resume)
	case err != nil:
		return wrongFlag(err, nil)
	case s.Unfinished:
		if s.Best.Step > 0 { // there is a check to report
			r.writeReport(cmd, t, dir)
		}
		fmt.Fprintf(stdout, "Stopped because %s: %s\n", s.Because, resume)
		return nil
	}
	advise(cmd.ErrOrStderr(), "the run is complete, but may have no report: heed report "+shell(dir)+" writes it")
	fmt.Fprintf(stdout, "Stopped because %s\n%s\n%s", s.Because, result(t.Config.Training, s), t.BesideBaseline(s))
	r.writeReport(cmd, t, dir)
	next := t.Config.Describe().Use + " " + shell(dir)
	switch example := shell(t.Config.Task.Example); t.Config.Describe().Use {
	case "chat":
	case "generate":
		next += fmt.Sprintf(" --prompt %s --tokens 300", example)
	default:
		next += " " + example
	}
	fmt.Fprintf(stdout, "Done in %.1f s. Try: heed %s\n", time.Since(r.began).Seconds(), next)
	return nil
}

// train trains t and shows its progress.
func (r *training) train(cmd *cobra.Command, t *task.Task, dir string) (*task.Summary, error) {
	stdout, c, options := cmd.OutOrStdout(), t.Config.Training, r.options
	if description := t.DescribeData(); description != "" && first(options.Group) {
		fmt.Fprintf(stdout, "%s  model: %s\n", text.Escape(description), modelText(t.Config))
	}
	people := terminal(stdout) != nil && options.Group == nil // mpirun's pseudo-terminal isn't a user's terminal
	progress := newProgress(r.line, c.StepsPerEpoch, c.Config, options)
	options.OnStep = progress.step
	t.Progress = r.line.counts(false)
	r.line.does("Training")
	options.OnCheck = func(history []train.Check, _ bool) (bool, error) {
		progress.checked(history, c.Stopping.BestOf(history))
		return false, nil
	}
	log, end, err := progress.show(r.page, progress.over(stdout, people), t, dir)
	if err != nil {
		return nil, err
	}
	options.Log = log
	s, err := t.Train(cmd.Context(), dir, options)
	r.line.clear()
	if err != nil {
		end(oneLine(interrupted(cmd.Context(), err)))
		return nil, err
	}
	end(s.Because)
	return s, nil
}

// result describes the check whose weights a run keeps, as in "Best epoch 3: Train=0.100000, Val=0.200000".
func result(c task.Training, s *task.Summary) string {
	prefix, check, score := "Best", fmt.Sprintf("epoch %d", s.BestEpoch), fmt.Sprintf("Train=%.6f", s.TrainLoss)
	if c.Stopping.KeepLast {
		prefix = "Last"
	}
	if c.CheckEvery > 0 {
		check = fmt.Sprintf("step %d", s.Best.Step)
	}
	if s.Best.Validated {
		score = s.Score.String()
	}
	if s.Linear != nil {
		return "Answers: " + score
	}
	if c.Optimizer.Average > 0 {
		check += ", averaged weights"
	}
	return fmt.Sprintf("%s %s: %s", prefix, check, score)
}

// loadedText describes which of a model's tensors were loaded from another model, and what is trained.
func loadedText(t *task.Task) string {
	l, tensors := t.Loaded, len(t.Params.All())
	s := fmt.Sprintf("Starting from %s: %d of %d tensors", text.Escape(t.Config.From.Dir), tensors-len(l.Kept), tensors)
	if len(l.Kept) > 0 {
		s += "; new ones: " + scopes(l.Kept)
	}
	if len(l.Unused) > 0 {
		s += "; left out: " + text.Escape(scopes(l.Unused))
	}
	if tuned := tunedText(t.Config); tuned != "" {
		s += fmt.Sprintf("; tuned: %s (%s)", tuned, t.DescribeParams())
	}
	return s
}

// tunedText describes the part of a model that is trained. It returns "" for the whole model.
func tunedText(c task.Config) string {
	last, blocks := strings.CutPrefix(c.From.Tune, "last:")
	switch n, _ := strconv.Atoi(last); {
	case blocks && n == 1:
		return "the last block and the head"
	case blocks:
		return fmt.Sprintf("the last %d blocks and the head", n)
	case c.From.Tune == "lora" && c.Describe().Generate == nil:
		return fmt.Sprintf("a low-rank adapter of rank %d", c.From.LowRank.Rank)
	case c.From.Tune == "lora":
		return fmt.Sprintf("a low-rank adapter of rank %d, and the head", c.From.LowRank.Rank)
	case c.From.Tune == "head":
		return "the head"
	}
	return ""
}

// scopes counts tensors by the first two parts of their names, as in "decoder.blocks (26), head.bias (1)".
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

// modelText describes a model and its training, as in "width 64, 2 blocks, 4 heads; batches of 32, …".
func modelText(c task.Config) string {
	m, t := c.Model, c.Training
	blocks := text.Count(m.Layers, "block")
	if n := c.DecoderLayers; n > 0 {
		blocks = fmt.Sprintf("%d and %s", m.Layers, text.Count(n, "block"))
	}
	s := fmt.Sprintf("width %d, %s, %s; ", m.Dim, blocks, text.Count(m.Block.Attention.Heads, "head"))
	if c.Solved() {
		return s + "only the head is fitted, without epochs"
	}
	s += fmt.Sprintf("batches of %d, %s per epoch, ", t.BatchSize, text.Count(t.StepsPerEpoch, "step"))
	if t.MaxEpochs > 0 {
		s += text.Count(t.MaxEpochs, "epoch") + " at most"
	} else {
		s += "no limit of epochs"
	}
	if tuned := tunedText(c); tuned != "" {
		s += "; tuned: " + tuned
	}
	if t.CheckEvery > 0 {
		s += fmt.Sprintf("; a check after every %s", text.Count(t.CheckEvery, "step"))
	}
	return s
}

// writeReport writes the page of a training that has just ended. If it can't, it only prints why: the run is saved
// without the page. In a group, only the first process writes the page.
func (r *training) writeReport(cmd *cobra.Command, t *task.Task, dir string) {
	if !first(r.options.Group) {
		return
	}
	runtime.GC()         // runs the finalizers that release the memory of training
	debug.FreeOSMemory() // before the report needs memory
	r.line.does("Writing the report")
	private, _ := cmd.Flags().GetBool("no-examples")
	path := filepath.Join(dir, runfolder.ReportFile)
	page, _, err := readRunPage(cmd, dir, private)
	if err == nil {
		err = page.AddAnswers(cmd.Context(), t.Model, t)
	}
	if err == nil {
		err = page.Save(path)
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "heed: the run is saved, but its report can't be written; to try again, run heed report", shell(dir)+":", oneLine(interrupted(cmd.Context(), err)))
		return
	}
	fmt.Fprintln(cmd.OutOrStdout(), "Report:", text.Escape(path))
}
