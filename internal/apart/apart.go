// Package apart calls functions that may be a user's for goroutines that nobody can recover: a panic there would end
// the program, and a call of runtime.Goexit leave others waiting.
package apart

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrGoexit is the error of a function that ended its goroutine.
var ErrGoexit = errors.New("a function ended its goroutine with runtime.Goexit, as FailNow of package testing does: have it return an error")

// A Panic is a panic as an error.
type Panic struct {
	Value any // what the function panicked with
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the Value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Call calls f in a goroutine of its own and returns its error when it has ended: a *Panic if f panics, and ErrGoexit
// if it calls runtime.Goexit.
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

// Repanic panics with the *Panic that err is or wraps. It does nothing if there is none.
func Repanic(err error) {
	if p := (*Panic)(nil); errors.As(err, &p) {
		panic(p)
	}
}
