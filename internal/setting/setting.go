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
	return fmt.Errorf(e.format, e.mapped(func(p Path) any { return name(string(p)) })...).Error()
}

// mapped returns the arguments with change(p) in place of each path p, also in arguments that are Errors.
func (e *Error) mapped(change func(p Path) any) []any {
	args := slices.Clone(e.args)
	for i, arg := range args {
		switch arg := arg.(type) {
		case Path:
			args[i] = change(arg)
		case *Error:
			args[i] = &Error{arg.format, arg.mapped(change)}
		}
	}
	return args
}

// Paths returns the paths that the error names, in the order of the arguments.
func (e *Error) Paths() []string {
	var paths []string
	e.mapped(func(p Path) any {
		paths = append(paths, string(p))
		return p
	})
	return paths
}

// Within returns the Error that err is or wraps, with prefix and a dot before each path. If err is nil or another
// error, Within returns it unchanged.
func Within(prefix string, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	return &Error{e.format, e.mapped(func(p Path) any { return Path(prefix+".") + p })}
}

// In returns an Error unless ok. It says that the setting must be in the range that want names, such as "above 0".
func In(path Path, got any, ok bool, want string) error {
	if ok {
		return nil
	}
	return Errorf("%s must be %s, got %v", path, want, got)
}

// Between returns an Error unless a count is from low to high.
func Between(path Path, got, low, high int) error {
	if low <= got && got <= high {
		return nil
	}
	return Errorf("%s must be from %d to %d, got %d", path, low, high, got)
}

// As returns err as an *Error, wrapping it if necessary.
func As(err error) *Error {
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	return Errorf("%w", err)
}
