// Command heed trains transformers on sequence tasks and text, evaluates them, and predicts with them.
//
//	heed train                      # the default task, reverse, to the end
//	heed eval runs/reverse
//	heed predict runs/reverse gorgonia
//
// It exits with status 0 when it is done, 1 when something failed and 2 when the call was wrong. Progress goes to
// standard error, and only to a terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// run carries out one call and returns its exit status.
func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "heed:", oneLine(err))
	var usage *usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func newRoot() *cobra.Command {
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
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v: %s --help lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newTrain(), newEval(), newPredict())
	return root
}

// A usageError says that the call was wrong, not that something failed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// oneLine is an error's text on one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
