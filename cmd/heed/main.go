// Command heed trains transformers on sequence tasks and text, evaluates them, predicts and writes with them, and shows
// what they attended to.
//
//	heed train                      # the default task, reverse, to the end
//	heed eval runs/reverse
//	heed predict runs/reverse gorgonia
//	heed generate runs/text --prompt "To be" --tokens 300
//	heed attention runs/reverse gorgonia --out attention.png
//	heed report runs/reverse runs/copy --out runs.html
//	heed serve runs/reverse         # over HTTP, until it is told to end
//
// It exits with status 0 when it is done, as a service is that was told to end, 1 when something failed, 2 when the
// call was wrong and 3 when SIGUSR1 ended a training that can go on. Progress goes to standard error, and only to a
// terminal.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/mpi"
)

func main() {
	ctx := listen(context.Background())
	if rank, _ := mpi.Rank(); rank > 0 {
		os.Exit(follow(ctx, os.Args[1:]))
	}
	os.Exit(launched(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// launched is run, where an MPI launcher may have started several processes, of which a training takes all, as does its
// measurement.
func launched(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if !(len(args) > 0 && args[0] == "train" || len(args) > 1 && args[0] == "bench" && args[1] == "dist") {
		return run(ctx, args, stdout, stderr)
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
	code := runIn(ctx, group, args, stdout, stderr)
	if code == 0 { // or else the launcher ends the others
		leave()
	}
	return code
}

// alike checks that all processes of a group are called alike.
func alike(group train.Group, args []string) error {
	mine := fmt.Sprintf("%q", args)
	firsts, err := train.Share(group, []byte(mine), nil)
	if err == nil && string(firsts) != mine {
		err = usagef("it is called with other arguments than process 0, %s: give all the same", mine)
	}
	_, err = train.Share(group, nil, err)
	return err
}

// follow is launched in a process that isn't the first, which speaks for all. What it has to say itself it says where
// the first one hasn't ended the job for the same reason.
func follow(ctx context.Context, args []string) int {
	var said bytes.Buffer
	code := launched(ctx, args, io.Discard, &said)
	if code == 0 {
		return 0
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		os.Stderr.Write(said.Bytes())
	}
	return code
}

// lastWords returns standard error for the first process of a job, which says in one line why it ends. If a signal has
// ended ctx and that line hasn't come soon, it is written here: once a process has ended, the others may wait for it
// for good, and mpirun tells them to end and kills them a second later.
func lastWords(ctx context.Context, stderr io.Writer) io.Writer {
	line := &oneWrite{Writer: stderr}
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errInterrupted) {
			time.Sleep(500 * time.Millisecond)
			fmt.Fprintln(line, "heed: interrupted, or another process of the job has ended: heed train --resume goes on from the last checkpoint")
		}
	})
	return line
}

// oneWrite passes on the first Write of all.
type oneWrite struct {
	io.Writer
	once sync.Once
}

func (o *oneWrite) Write(b []byte) (n int, err error) {
	n = len(b)
	o.once.Do(func() { n, err = o.Writer.Write(b) })
	return n, err
}

// listen returns a context that the first signal ends, with errInterrupted or errNoticed for a cause. A second one ends
// the process at once, unless it is notice again.
func listen(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append(notice, os.Interrupt, syscall.SIGTERM)...)
	go func() {
		got := <-signals
		signal.Stop(signals)
		if len(notice) > 0 { // no signal would be all
			signal.Ignore(notice...)
		}
		cause := errInterrupted
		if slices.Contains(notice, got) {
			cause = errNoticed
		}
		cancel(cause)
		if terminal(os.Stderr) != nil {
			fmt.Fprintf(os.Stderr, "\nheed: %v: ending what is under way\n", cause)
		}
	}()
	return ctx
}

// run carries out one call and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runIn(ctx, nil, args, stdout, stderr)
}

// runIn is run in one process of a group.
func runIn(ctx context.Context, group train.Group, args []string, stdout, stderr io.Writer) int {
	root := newRoot(group)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		complete(root) // cobra keeps a flag's completion, and so the command, as long as the process lives
	}
	root.SetArgs(args)
	out := &output{Writer: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := interrupted(ctx, root.ExecuteContext(ctx))
	if err == nil && out.err != nil { // what printed it went on all the same
		err = fmt.Errorf("all is done, but not all of it could be printed: %w", out.err)
	}
	if err == nil {
		return 0
	}
	return failed(stderr, err)
}

// failed says what went wrong and returns the exit status.
func failed(stderr io.Writer, err error) int {
	fmt.Fprintln(stderr, "heed:", oneLine(err))
	switch {
	case errors.As(err, new(*usageError)):
		return 2
	case errors.Is(err, errNoticed):
		return 3
	}
	return 1
}

// output is standard output. It keeps the first error of writing to it.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func newRoot(group train.Group) *cobra.Command {
	root := &cobra.Command{
		Use:           "heed",
		Short:         "Train transformers on sequence tasks and text, in pure Go",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q: heed --help lists them", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newTrain(group), newEval(), newPredict(), newGenerate(), newAttention(), newReport(), newServe(), newBench(group), newCompletion(), newVersion())
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: `  heed help train`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, of := range cmd.Root().Commands() {
				if !of.Hidden {
					names = append(names, cobra.CompletionWithDesc(of.Name(), of.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q: heed --help lists them", strings.Join(args, " "))
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// flagError says what is wrong with a flag, and what it takes.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%v: %s --help lists the flags", err, cmd.CommandPath())
	}
	if kinds.Choices[invalid.GetFlag().Name].Parse != nil {
		return usagef("--%s: %w", invalid.GetFlag().Name, errors.Unwrap(err))
	}
	want := "of another type"
	switch t := invalid.GetFlag().Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		want = "a number in range"
	case t == "int":
		want = "a whole number"
	case t == "uint64":
		want = "a whole number, not negative"
	case t == "float64":
		want = "a number"
	case t == "duration":
		want = "a time, as 30s or 10m"
	case t == "bool":
		want = "true or false"
	case t == often{}.Type():
		want = "steps, as 500, or a time, as 10m"
	}
	return usagef("--%s must be %s, got %q", invalid.GetFlag().Name, want, invalid.GetValue())
}

// errInterrupted and errNoticed say that a signal ended the call.
var (
	errInterrupted = errors.New("interrupted")
	errNoticed     = errors.New("ended on notice, by SIGUSR1")
)

// interrupted returns an error that says so if a signal ended the call.
func interrupted(ctx context.Context, err error) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(context.Cause(ctx), errNoticed) {
		return errNoticed
	}
	return errInterrupted
}

// A usageError says that the call was wrong, not that something failed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// shell returns s as a shell takes it for one word. What a terminal shouldn't get is written as bash and zsh read it.
func shell(s string) string {
	if text.Escape(s) != s {
		var word strings.Builder
		for i := range len(s) {
			switch b := s[i]; {
			case b < ' ' || b > '~':
				fmt.Fprintf(&word, `\x%02x`, b)
			case b == '\'' || b == '\\':
				word.WriteByte('\\')
				fallthrough
			default:
				word.WriteByte(b)
			}
		}
		return "$'" + word.String() + "'"
	}
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./_-+=:,@%"+string(os.PathSeparator), r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
