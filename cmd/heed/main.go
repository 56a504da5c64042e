// Command heed trains transformers on sequence tasks and text. It also scores trained models, predicts and generates
// text with them, and shows their attention.
//
//	heed train                      # trains the default task, reverse
//	heed eval runs/reverse
//	heed predict runs/reverse gorgonia
//	heed generate runs/text --prompt "To be" --tokens 300
//	heed chat models/smollm2
//	heed embed models/minilm 'A text'
//	heed search models/minilm --data mails.csv --column body 'A query'
//	heed rank models/reranker 'late parcel' --data mails.csv --column body
//	heed attention runs/reverse gorgonia --out attention.png
//	heed report runs/reverse runs/copy --out runs.html
//	heed serve runs/reverse         # over HTTP, until a signal ends it
//	heed sweep sweeps/copy -- --task copy --dim 32,64
//	heed tokenize runs/text 'To be' # pieces and ids
//	heed export runs/text --out models/text
//
// Its exit status is 0 on success, 1 if something failed, 2 if the call was wrong, and 3 if SIGUSR1 ended a training
// that can be resumed. A service that a signal ends has status 0. Progress is shown on standard error, and only if that
// is a terminal.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/mpi"
)

func main() {
	if os.Getenv("GOMEMLIMIT") == "" { // collect garbage more often before the process reaches its limit
		debug.SetMemoryLimit(int64(memory.Limit() / 16 * 15))
	}
	ctx := listen(context.Background(), len(os.Args) > 1 && os.Args[1] == "chat")
	if rank, _ := mpi.Rank(); rank > 0 {
		os.Exit(follow(ctx, os.Args[1:]))
	}
	os.Exit(launched(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// launched is like run, for a process that an MPI launcher may have started. heed train and heed bench dist use all
// processes of the job.
func launched(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if !(len(args) > 0 && args[0] == "train" || len(args) > 1 && args[0] == "bench" && args[1] == "dist") {
		return run(ctx, nil, args, stdout, stderr)
	}
	if rank, launcher := mpi.Rank(); launcher && rank == 0 {
		stderr = lastWords(ctx, stderr)
	}
	group, leave, err := mpi.Join()
	if err != nil {
		return failed(stderr, err)
	}
	if err := alike(group, args); err != nil {
		return failed(stderr, err)
	}
	code := run(ctx, group, args, stdout, stderr)
	if code == 0 { // otherwise the launcher ends the other processes
		leave()
	}
	return code
}

// alike checks that all processes of a group have the same arguments.
func alike(group train.Group, args []string) error {
	mine := fmt.Sprintf("%q", args)
	firsts, err := train.Broadcast(group, []byte(mine), nil)
	if err == nil && string(firsts) != mine {
		err = usagef("its arguments, %s, differ from those of process 0: give all processes the same arguments", mine)
	}
	_, err = train.Broadcast(group, nil, err)
	return err
}

// follow is like launched, for a process other than the first. Only the first process prints. If the launcher doesn't
// end this process within 3 seconds of an error, follow prints the error.
func follow(ctx context.Context, args []string) int {
	var stderr bytes.Buffer
	code := launched(ctx, args, io.Discard, &stderr)
	if code == 0 {
		return 0
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		os.Stderr.Write(stderr.Bytes())
	}
	return code
}

// lastWords returns a writer to standard error for the first process of a job. It passes on only the first write: the
// line that says why the process ends. If a signal ends ctx and no such line comes within half a second, lastWords
// writes one itself, with the advice that advise has set. Waiting longer isn't possible: after one process has ended,
// the others may wait for it forever, and mpirun sends them SIGTERM and kills them a second later.
func lastWords(ctx context.Context, stderr io.Writer) io.Writer {
	line := &oneWrite{Writer: stderr}
	line.advice.Store("")
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errInterrupted) {
			time.Sleep(500 * time.Millisecond)
			fmt.Fprint(line, "heed: interrupted, or another process of the job has ended", line.advice.Load(), "\n")
		}
	})
	return line
}

// listen returns a context that the first signal cancels, with errInterrupted or errNoticed as the cause. A second
// signal kills the process, except for the signals in notice: they are ignored from then on. If own is true, the
// command handles os.Interrupt itself.
func listen(parent context.Context, own bool) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append(notice, syscall.SIGTERM)...)
	if !own {
		signal.Notify(signals, os.Interrupt)
	}
	go func() {
		got := <-signals
		signal.Stop(signals)
		if len(notice) > 0 { // without arguments, Ignore ignores all signals
			signal.Ignore(notice...)
		}
		cause := errInterrupted
		if slices.Contains(notice, got) {
			cause = errNoticed
		}
		cancel(cause)
		if terminal(os.Stderr) != nil {
			fmt.Fprintf(os.Stderr, "\nheed: %v: stopping\n", cause)
		}
	}()
	return ctx
}

// run executes one call of heed in a process of a group, and returns its exit status. A nil group means this process
// alone.
func run(ctx context.Context, group train.Group, args []string, stdout, stderr io.Writer) int {
	root := newRoot(group)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		complete(root) // only if needed: cobra never frees the completions of a command
	}
	root.SetArgs(args)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := interrupted(ctx, root.ExecuteContext(ctx))
	if err == nil && out.err != nil { // commands may ignore errors of printing
		err = fmt.Errorf("the work is done, but not all output could be printed: %w", out.err)
	}
	if err == nil {
		return 0
	}
	return failed(stderr, err)
}

// failed prints an error and returns its exit status.
func failed(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "heed:", oneLine(err))
	switch {
	case errors.As(err, new(*usageError)):
		return 2
	case errors.Is(err, errNoticed), strings.Contains(err.Error(), " of the Group: "+errNoticed.Error()):
		return 3
	}
	return 1
}

func newRoot(group train.Group) *cobra.Command {
	root := &cobra.Command{
		Use:           "heed",
		Short:         "Train transformers on sequence tasks and text, in pure Go",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(root *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(root, args[0], args[0])
			}
			return nil
		},
		PersistentPreRunE: exclusive,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newTrain(group), newEval(), newPredict(), newGenerate(), newChat(), newEmbed(), newSearch(), newRank(), newExplain(), newAttention(), newReport(), newServe(), newSweep(), newTokenize(), newExport(), newBench(group), newCompletion(), newVersion())
	return root
}

// exclusive turns cobra's error about mutually exclusive flags into a usageError. Cobra's error ends with the names of
// the flags, as in "; [count ids] were all set".
func exclusive(cmd *cobra.Command, _ []string) error {
	err := cmd.ValidateFlagGroups()
	if err == nil {
		return nil
	}
	_, names, _ := strings.Cut(err.Error(), "; [")
	names, _, _ = strings.Cut(names, "]")
	return usagef("--%s can't be used together", strings.ReplaceAll(names, " ", " and --"))
}

// noCommand returns the error for an unknown command. The argument call is its whole name, and unknown is the word in
// it that isn't a command of parent.
func noCommand(parent *cobra.Command, call, unknown string) error {
	var names []string
	for _, cmd := range parent.Commands() {
		names = append(names, cmd.Name())
	}
	return usagef("there is no command %q%s heed --help lists the commands", call, cmp.Or(text.DidYouMean(unknown, names), ":"))
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|tasks]",
		Short: "Explain a command, or list the tasks",
		Example: `  heed help train
  heed help tasks   # tasks, folders, and calls for them`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, sub := range cmd.Root().Commands() {
				if !sub.Hidden {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return append(names, cobra.CompletionWithDesc("tasks", "Tasks, folders, and calls for them")), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"tasks"}) {
				return printTasks(cmd)
			}
			sub, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noCommand(sub, strings.Join(args, " "), append(rest, args...)[0])
			}
			sub.InitDefaultHelpFlag()
			return sub.Help()
		},
	}
}

// nearestFlag returns words that continue an error about an unknown flag. They suggest a flag of cmd with a similar
// name or, if there is none, a flag of another command. Otherwise nearestFlag returns a colon.
func nearestFlag(cmd *cobra.Command, unknown *pflag.NotExistError) string {
	// pflag reads -lr=1 as the flags -l and -r.
	name, _, _ := strings.Cut(cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()), "=")
	nearest := func(commands ...*cobra.Command) string {
		var names []string
		for _, cmd := range commands {
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					names = append(names, f.Name)
				}
			})
		}
		return text.Nearest(name, names)
	}
	if flag := nearest(cmd); flag != "" {
		return fmt.Sprintf("; did you mean --%s?", flag)
	}
	commands := cmd.Root().Commands()
	flag := nearest(commands...)
	for _, other := range commands {
		if flag != "" && other.Flags().Lookup(flag) != nil {
			return fmt.Sprintf("; %s has --%s:", other.CommandPath(), flag)
		}
	}
	return ":"
}

// flagError returns a usageError that names the wrong flag and the values that it accepts.
func flagError(cmd *cobra.Command, err error) error {
	advice := cmd.CommandPath() + " --help lists the flags"
	if strings.Contains(cmd.Use, "INPUT") || strings.Contains(cmd.Use, "[TEXT") || strings.Contains(cmd.Use, "QUERY") {
		advice += "; put -- before an argument that begins with a dash"
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		return usagef("%w%s %s", err, nearestFlag(cmd, unknown), advice)
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%v: %s", err, advice)
	}
	if invalid.GetFlag().Value.Type() == kindName {
		return usagef("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(err))
	}
	want := cmp.Or(map[string]string{
		"int": "a whole number", "uint64": "a whole number, not negative", "float64": "a number",
		"duration": "a time, such as 30s or 10m", "bool": "true or false",
		kindInterval:  "a number of steps, such as 500, or a time, such as 10m",
		kindThreshold: "a label and the lowest probability at which it is answered, such as fraud=0.2",
	}[invalid.GetFlag().Value.Type()], "a list separated by commas")
	if errors.Is(err, strconv.ErrRange) {
		want = "a number in range"
	}
	return usagef("--%s must be %s, got %q", invalid.GetFlag().Name, want, invalid.GetValue())
}

// collectOften makes the garbage collector run more often. Training makes little garbage, so this saves a quarter of
// the memory and costs no time. Serving keeps large weights, which the collector needn't look into.
func collectOften(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
