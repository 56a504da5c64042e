// Package setting has errors about the settings of a configuration. They name a setting by its path. An enclosing
// configuration adds its own prefix to the path, and a command can show a flag instead.
package setting

import (
	"errors"
	"fmt"
	"slices"
)

// A Path is the place of a setting in a configuration: "schedule.decay" is decay in schedule.
type Path string

// An Error says that a setting is invalid.
type Error struct {
	format string
	args   []any
}

// Errorf returns an Error with the text of fmt.Errorf. Each argument of type Path is a setting that the Error names.
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

// Paths returns the paths that the error names, in the order of the arguments.
func (e *Error) Paths() []string {
	var paths []string
	for _, arg := range e.args {
		if p, ok := arg.(Path); ok {
			paths = append(paths, string(p))
		}
	}
	return paths
}

// Within returns the Error that err is or wraps, with prefix and a dot before each path. If err is nil or another
// error, Within returns it unchanged.
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
