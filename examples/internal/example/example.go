// Package example has the flags and exit statuses of the examples' main functions.
package example

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Main runs an example with the command line's arguments. It exits with status 0 if run succeeds or the call asks for
// help, 2 if the call is wrong, and 1 if run fails.
func Main(run func(w io.Writer, args []string) error) {
	os.Exit(Status(run(os.Stdout, os.Args[1:]), os.Stdout, os.Stderr))
}

// Status writes the message of an error and returns the exit status for it.
func Status(err error, stdout, stderr io.Writer) int {
	var call *CallError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &call) && errors.Is(call.Err, flag.ErrHelp):
		fmt.Fprintln(stdout, call.Flags)
		return 0
	case call != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintln(stderr, err)
	return 1
}

// Must returns v. It panics if err isn't nil. Like gorgonia.Must, it is for calls that can't fail, because the flags
// bound all sizes.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A CallError says what is wrong with the arguments of a call. Its message lists the flags.
type CallError struct {
	Err   error
	Flags string // list of the example's flags
}

func (e *CallError) Error() string { return fmt.Sprintf("%v\n%s", e.Err, e.Flags) }

// Flags are the flags of one example.
type Flags struct{ *flag.FlagSet }

// New returns flags with --seed, which every example has.
func New(name string) (f Flags, seed *uint64) {
	f = Flags{flag.NewFlagSet(name, flag.ContinueOnError)}
	f.SetOutput(io.Discard)
	return f, f.Uint64("seed", 1, "seed of the random numbers: a whole number `N`")
}

// Size adds a flag for a whole number, at least 1. The argument limit is the largest allowed value.
func (f Flags) Size(name string, value, limit int, usage string) *int {
	f.Var(&size{&value, limit}, name, fmt.Sprintf("%s: a whole number `N` from 1 to %d", usage, limit))
	return &value
}

// Picture adds a flag for the file of a picture, without a default.
func (f Flags) Picture(subject string) *string {
	return f.String("out", "", "draw "+subject+" as a PNG in this `FILE`")
}

// Parse reads the arguments of a call. It returns a *CallError for an unknown flag, an invalid value, or an argument
// without a flag.
func (f Flags) Parse(args []string) error {
	err := f.FlagSet.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("%s takes flags only, got the argument %q: quote a value that has spaces", f.Name(), f.Arg(0))
	}
	if err != nil {
		return f.Wrong(err)
	}
	return nil
}

// Wrong returns err as a *CallError. Use it for a value that is valid for the flag but not for the example.
func (f Flags) Wrong(err error) error {
	var list bytes.Buffer
	fmt.Fprintf(&list, "Flags of %s:\n", f.Name())
	f.SetOutput(&list)
	f.PrintDefaults()
	f.SetOutput(io.Discard)
	return &CallError{Err: err, Flags: strings.TrimSuffix(list.String(), "\n")}
}

// Own reports whether the call set any flag except out. If Own is true, the example draws random numbers. Otherwise it
// shows the numbers of its notebook.
func (f Flags) Own() (own bool) {
	f.Visit(func(set *flag.Flag) { own = own || set.Name != "out" })
	return own
}

// size is a flag.Value.
type size struct {
	n     *int
	limit int
}

func (s *size) String() string {
	if s.n == nil { // package flag calls String on the zero value
		return ""
	}
	return strconv.Itoa(*s.n)
}

func (s *size) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > s.limit {
		return fmt.Errorf("want a whole number from 1 to %d", s.limit)
	}
	*s.n = n
	return nil
}
