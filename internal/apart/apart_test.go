package apart

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

var errOwn = errors.New("own")

func TestCall(t *testing.T) {
	for _, test := range []struct {
		name string
		f    func() error
		want error
	}{
		{"nothing", func() error { return nil }, nil},
		{"an error", func() error { return errOwn }, errOwn},
		{"a panic", func() error { panic(errOwn) }, errOwn},
		{"Goexit", func() error { runtime.Goexit(); return nil }, ErrGoexit},
		{"Goexit after a panic", func() error {
			defer func() { recover(); runtime.Goexit() }()
			panic(errOwn)
		}, ErrGoexit},
	} {
		if err := Call(test.f); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// TestRepanic checks that Repanic keeps the value and the stack of a panic, even if other errors wrap it.
func TestRepanic(t *testing.T) {
	Repanic(nil)
	Repanic(errOwn)
	defer func() {
		p, _ := recover().(*Panic)
		if p == nil || p.Value != 7 || !strings.HasPrefix(p.Error(), "7\n\n") || !strings.Contains(p.Error(), "apart_test.go") {
			t.Errorf("got %v, want a *Panic with the value 7 and its stack", p)
		}
	}()
	Repanic(fmt.Errorf("step 3: %w", errors.Join(errOwn, Call(func() error { panic(7) }))))
	t.Error("Repanic returned, want a panic")
}
