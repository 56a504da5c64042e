// Package apart calls a user's functions in their own goroutines and turns panics and runtime.Goexit into errors. In a
// worker's goroutine, a panic would end the program, and Goexit would leave other goroutines waiting.
package apart

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrGoexit is the error of a function that ended its goroutine.
var ErrGoexit = errors.New("a function ended its goroutine with runtime.Goexit, for example by t.FailNow: return an error instead")

// A Panic is the error of a function that panicked.
type Panic struct {
	Value any // argument of panic
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the Value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call calls f in a new goroutine, waits for it, and returns its error. The error is a *Panic if f panics, and
// ErrGoexit if f calls runtime.Goexit.
func Call(f func() error) error {
	err := ErrGoexit // unless f returns or panics
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if x := recover(); x != nil {
				err = &Panic{x, debug.Stack()}
			}
		}()
		err = f()
	}()
	<-done
	return err
}

// Repanic panics with the *Panic that err is or wraps, if there is one.
func Repanic(err error) {
	if p := (*Panic)(nil); errors.As(err, &p) {
		panic(p)
	}
}
