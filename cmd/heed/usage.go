package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/text"
)

// A usageError means that the call was wrong, not that something failed.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// takes returns a validator that runs check. Its error says that the command takes want, such as "one folder".
func takes(want string, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		got := strings.Trim(fmt.Sprintf("%q", args), "[]")
		return usagef("%s takes %s, got %s", cmd.CommandPath(), want, cmp.Or(got, "none"))
	}
}

var noArgs = takes("no argument", cobra.NoArgs)

// atLeastOne returns an error if the value of one of the flags is below 1.
func atLeastOne(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if n, err := flags.GetInt(name); err == nil && n < 1 {
			return usagef("--%s must be at least 1, got %d", name, n)
		}
	}
	return nil
}

// fileFlag returns an error if a flag is given, but isn't a file's name or, if there are endings, has none of them.
func fileFlag(flags *pflag.FlagSet, name string, endings ...string) error {
	path := flags.Lookup(name).Value.String()
	switch {
	case !flags.Changed(name):
	case len(endings) > 0 && !slices.Contains(endings, strings.ToLower(filepath.Ext(path))):
		return usagef("--%s must be a file's name that ends in %s, got %q", name, text.Either(endings), path)
	case path == "":
		return usagef("--%s must be a file's name, got none", name)
	}
	return nil
}

// argsOrData returns an error if inputs are given both as arguments and with --data, or if --data is empty. The errors
// call the inputs by the name what.
func argsOrData(flags *pflag.FlagSet, what string, args []string) error {
	if flags.Changed("data") && len(args) > 0 {
		return usagef("give the %s as arguments or with --data, not both, got %q", what, args[0])
	}
	return fileFlag(flags, "data")
}

var errNoFolder = usagef("the run folder's name is empty")

// errInterrupted and errNoticed are the errors of a call that a signal ended.
var (
	errInterrupted = errors.New("interrupted")
	errNoticed     = errors.New("ended by SIGUSR1")
)

// interrupted replaces context.Canceled with errInterrupted or errNoticed. It returns other errors unchanged. An error
// from another process of the job already names the process and the signal.
func interrupted(ctx context.Context, err error) error {
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errNoticed) {
		return errNoticed
	}
	return errInterrupted
}

// shell quotes s as one word for a shell. If s has characters that a terminal may act on, all unusual bytes are escaped
// in the form $'\x1b', which bash and zsh understand.
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

// advise sets the advice that lastWords adds to its own line. For other writers, it does nothing.
func advise(stderr io.Writer, advice string) {
	if line, ok := stderr.(*oneWrite); ok {
		line.advice.Store(": " + advice)
	}
}

// oneWrite passes on only the first Write.
type oneWrite struct {
	io.Writer
	once   sync.Once
	advice atomic.Value // a string
}

func (o *oneWrite) Write(b []byte) (n int, err error) {
	n = len(b)
	o.once.Do(func() { n, err = o.Writer.Write(b) })
	return n, err
}
