// Package setting has errors about the settings of a configuration. They name a setting by its path, which whoever
// holds the configuration completes, and which a command shows as its flag.
package setting

import (
	"errors"
	"fmt"
	"slices"
)

// A Path says where a configuration has a setting: "schedule.decay" is decay in schedule.
type Path string

// An Error says that a configuration has a setting that it can't have.
type Error struct {
	format string
	args   []any
}

// Errorf returns an Error with the text of fmt.Errorf. The arguments that are Paths are the settings that it names.
func Errorf(format string, args ...any) *Error { return &Error{format, args} }

// Error names the settings by their paths.
func (e *Error) Error() string { return e.Message(func(path string) string { return path }) }

// Message returns the error's text with name(path) in place of each path.
func (e *Error) Message(name func(path string) string) string {
	args := slices.Clone(e.args)
	for i, arg := range args {
		if p, ok := arg.(Path); ok {
			args[i] = name(string(p))
		}
	}
	return fmt.Errorf(e.format, args...).Error()
}

// Paths returns the paths that the error names, in the order of its text.
func (e *Error) Paths() []string {
	var paths []string
	for _, arg := range e.args {
		if p, ok := arg.(Path); ok {
			paths = append(paths, string(p))
		}
	}
	return paths
}

// Within returns the Error that err is or wraps, with prefix and a dot before each path. It returns any other error,
// and nil, unchanged.
func Within(prefix string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	args := slices.Clone(e.args)
	for i, arg := range args {
		if p, ok := arg.(Path); ok {
			args[i] = Path(prefix+".") + p
		}
	}
	return &Error{e.format, args}
}
