package train_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

var errMine = errors.New("mine")

// recovered returns what do panics with, or its error.
func recovered(do func() error) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, do()
}

// A user's function may panic, or end its goroutine, on any goroutine: the panic is one of whoever called Fit or
// Evaluate, the end is an error, and no goroutine is left.
func TestUsersFunctionsMayPanic(t *testing.T) {
	fit := func(p train.Problem) error {
		_, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 2}, train.Call{Workers: 4})
		return err
	}
	evaluate := func(p train.Problem) error {
		_, err := train.Evaluate(context.Background(), p)
		return err
	}
	if err := fit(digits(t, 1)); err != nil { // the kernels' helpers stay
		t.Fatal(err)
	}
	later := func(examples []int) bool { return examples[0] > 50 } // not in the first batches, by which graphs are built
	for _, test := range []struct {
		name   string
		run    func(train.Problem) error
		change func(p *train.Problem, fail func())
	}{
		{"a batch to train on", fit, func(p *train.Problem, fail func()) {
			p.Train = changed(p.Train, func(examples []int, _ *train.Batch) {
				if later(examples) {
					fail()
				}
			})
		}},
		{"a batch to validate on", fit, func(p *train.Problem, fail func()) {
			p.ValidationSize = 10
			p.Validation = changed(p.Validation, func(examples []int, _ *train.Batch) {
				if later(examples) {
					fail()
				}
			})
		}},
		{"a batch to evaluate by", evaluate, func(p *train.Problem, fail func()) {
			p.ValidationSize = 10
			p.Validation = changed(p.Validation, func(examples []int, _ *train.Batch) {
				if later(examples) {
					fail()
				}
			})
		}},
		{"a worker's loss", fit, func(p *train.Problem, fail func()) {
			loss := p.Loss
			var mu sync.Mutex
			built := 0
			p.Loss = func(b *layers.Build, in G.Nodes) (*G.Node, []train.Metric, error) {
				mu.Lock()
				defer mu.Unlock()
				if built++; built > 2 { // one to train and one to validate, in the caller's goroutine
					fail()
				}
				return loss(b, in)
			}
		}},
	} {
		for how, fail := range map[string]func(){"panic": func() { panic(errMine) }, "Goexit": runtime.Goexit} {
			t.Run(test.name+"/"+how, func(t *testing.T) {
				before := runtime.NumGoroutine()
				p := digits(t, 1)
				test.change(&p, fail)
				panicked, err := recovered(func() error { return test.run(p) })
				if how == "panic" && err != nil { // building a graph makes errors of panics, as Gorgonia panics there
					panicked = err
				}
				switch passed, _ := panicked.(error); {
				case how == "panic" && !(errors.Is(passed, errMine) || strings.Contains(fmt.Sprint(panicked), "building the graph: mine")):
					t.Errorf("got %v and the panic %v", err, panicked)
				case how == "panic" && err == nil && !strings.Contains(passed.Error(), "panic_test.go"):
					t.Errorf("the panic doesn't say where: %v", passed)
				case how == "Goexit" && (panicked != nil || err == nil || !strings.Contains(err.Error(), "runtime.Goexit")):
					t.Errorf("got %v and the panic %v", err, panicked)
				}
				for range 100 { // machines' goroutines may take a moment
					if runtime.NumGoroutine() <= before {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if after := runtime.NumGoroutine(); after > before {
					t.Errorf("%d goroutines, %d before", after, before)
				}
			})
		}
	}
}

// Where one process of a group panics, the others end with an error that says so.
func TestPanicInAGroup(t *testing.T) {
	group := newLocal(2, 0)
	errs, panics := make([]error, 2), make([]any, 2)
	var wg sync.WaitGroup
	for rank, l := range group {
		p := digits(t, 1)
		if rank == 1 {
			p.Train = changed(p.Train, func(examples []int, _ *train.Batch) {
				if examples[0] > 50 {
					panic(errMine)
				}
			})
		}
		wg.Go(func() { // whose end isn't told to the others
			panics[rank], errs[rank] = recovered(func() error {
				_, err := train.Fit(context.Background(), p, train.Config{BatchSize: 16, MicroBatches: 2, MaxEpochs: 1}, train.Call{Group: l})
				return err
			})
		})
	}
	wg.Wait()
	if err, _ := panics[1].(error); !errors.Is(err, errMine) {
		t.Errorf("process 1 ends with %v and the panic %v", errs[1], panics[1])
	}
	if panics[0] != nil || errs[0] == nil || !strings.Contains(errs[0].Error(), "process 1 of the Group: batch of epoch 0, step 3: mine") {
		t.Errorf("process 0 ends with %v and the panic %v", errs[0], panics[0])
	}
}
