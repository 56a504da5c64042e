package train_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

var errMine = errors.New("mine")

// recovered calls do. It returns the value that do panics with, or its error.
func recovered(do func() error) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, do()
}

// A user's function may panic or call runtime.Goexit in any goroutine. A panic is passed on to the caller of Fit or
// Evaluate, Goexit becomes an error, and no goroutine is left.
func TestUsersFunctionsMayPanic(t *testing.T) {
	fit := func(p train.Problem) error {
		return failure(train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 2}, train.RunOptions{Workers: 4}))
	}
	evaluate := func(p train.Problem) error {
		return failure(train.Evaluate(context.Background(), p))
	}
	if err := fit(digits(t, 1)); err != nil { // starts the kernels' goroutines, which stay
		t.Fatal(err)
	}
	later := func(fail func()) func([]int, []*tensor.Dense) {
		return func(examples []int, _ []*tensor.Dense) {
			if examples[0] > 50 { // false for the first batches, which are used to build graphs
				fail()
			}
		}
	}
	for _, test := range []struct {
		name   string
		run    func(train.Problem) error
		change func(p *train.Problem, fail func())
	}{
		{"a training batch", fit, func(p *train.Problem, fail func()) {
			p.Train = changed(p.Train, later(fail))
		}},
		{"a validation batch", fit, func(p *train.Problem, fail func()) {
			p.ValidationSize = 10
			p.Validation = changed(p.Validation, later(fail))
		}},
		{"a batch of Evaluate", evaluate, func(p *train.Problem, fail func()) {
			p.ValidationSize = 10
			p.Validation = changed(p.Validation, later(fail))
		}},
		{"a worker's loss", fit, func(p *train.Problem, fail func()) {
			var built atomic.Int32
			beforeLoss(p, func(*layers.Build, G.Nodes) {
				if built.Add(1) > 2 { // the first two calls are in the caller's goroutine, one for training and one for validation
					fail()
				}
			})
		}},
	} {
		for way, fail := range map[string]func(){"panic": func() { panic(errMine) }, "Goexit": runtime.Goexit} {
			t.Run(test.name+"/"+way, func(t *testing.T) {
				before := runtime.NumGoroutine()
				p := digits(t, 1)
				test.change(&p, fail)
				panicked, err := recovered(func() error { return test.run(p) })
				if way == "panic" && err != nil { // a panic while a graph is built becomes an error
					panicked = err
				}
				switch passed, _ := panicked.(error); {
				case way == "panic" && !(errors.Is(passed, errMine) || strings.Contains(fmt.Sprint(panicked), "building the graph: mine")):
					t.Errorf("got the error %v and the panic %v, want a panic with errMine", err, panicked)
				case way == "panic" && err == nil && !strings.Contains(passed.Error(), "panic_test.go"):
					t.Errorf("the panic has no stack with panic_test.go: %v", passed)
				case way == "Goexit" && (panicked != nil || err == nil || !strings.Contains(err.Error(), "runtime.Goexit")):
					t.Errorf("got the error %v and the panic %v, want an error about runtime.Goexit", err, panicked)
				}
				wantGoroutines(t, way, before)
			})
		}
	}
}

// If one process of a Group panics, the others end with an error that contains the panic's value.
func TestPanicInAGroup(t *testing.T) {
	group := newLocal(2, 0)
	errs, panics := make([]error, 2), make([]any, 2)
	var wg sync.WaitGroup
	for rank, l := range group {
		p := digits(t, 1)
		if rank == 1 {
			p.Train = changed(p.Train, func(examples []int, _ []*tensor.Dense) {
				if examples[0] > 50 {
					panic(errMine)
				}
			})
		}
		wg.Go(func() { // the others don't notice the end of the goroutine
			panics[rank], errs[rank] = recovered(func() error {
				return failure(train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 2, MaxEpochs: 1}, train.RunOptions{Group: l}))
			})
		})
	}
	wg.Wait()
	if err, _ := panics[1].(error); !errors.Is(err, errMine) {
		t.Errorf("process 1 ends with the error %v and the panic %v, want a panic with errMine", errs[1], panics[1])
	}
	if panics[0] != nil || errs[0] == nil || !strings.Contains(errs[0].Error(), "process 1 of the Group: batch of epoch 0, step 3: mine") {
		t.Errorf("process 0 ends with the error %v and the panic %v, want the error of process 1", errs[0], panics[0])
	}
}
