package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// local is a train.Group of goroutines.
type local struct {
	rank   int
	pipes  [][]chan [][]byte // pipes[s][r] carries copies of the slices that process s sends to process r
	calls  *atomic.Int64     // number of calls of all processes
	failAt int64             // number of the call that fails, from 1; 0 if none fails
	ended  []chan struct{}   // by process; closed when the process ends
}

var errBroken = errors.New("the line is broken")

func newLocal(size int, failAt int64) (group []*local) {
	first := local{pipes: make([][]chan [][]byte, size), calls: new(atomic.Int64), failAt: failAt}
	for i := range size {
		first.ended = append(first.ended, make(chan struct{}))
		for range size {
			first.pipes[i] = append(first.pipes[i], make(chan [][]byte, 2)) // a process is at most one call ahead
		}
	}
	for rank := range size {
		l := first
		l.rank = rank
		group = append(group, &l)
	}
	return group
}

func (l *local) Rank() int { return l.rank }
func (l *local) Size() int { return len(l.pipes) }

func (l *local) Gather(mine, gathered []byte) error {
	if len(gathered) != len(mine)*l.Size() {
		return fmt.Errorf("Gather of %d bytes from %d processes into %d bytes", len(mine), l.Size(), len(gathered))
	}
	if l.calls.Add(1) == l.failAt {
		return errBroken
	}
	for peer := range l.Size() {
		l.send(peer, [][]byte{mine})
	}
	for peer := range l.Size() {
		if err := l.receive(peer, [][]byte{gathered[peer*len(mine):][:len(mine)]}); err != nil {
			return err
		}
	}
	return nil
}

func (l *local) Swap(peer int, send, receive [][]byte) error {
	if l.calls.Add(1) == l.failAt {
		return errBroken
	}
	l.send(peer, send)
	return l.receive(peer, receive)
}

func (l *local) send(peer int, list [][]byte) {
	var copies [][]byte
	for _, b := range list {
		copies = append(copies, bytes.Clone(b))
	}
	l.pipes[l.rank][peer] <- copies
}

// receive fills the slices of list with the next ones from a peer. It returns an error if the peer ends first.
func (l *local) receive(peer int, list [][]byte) error {
	var sent [][]byte
	select {
	case sent = <-l.pipes[peer][l.rank]:
	case <-l.ended[peer]:
		select {
		case sent = <-l.pipes[peer][l.rank]:
		default:
			return errBroken
		}
	}
	if !slices.EqualFunc(sent, list, func(a, b []byte) bool { return len(a) == len(b) }) {
		return fmt.Errorf("process %d sends other lengths to process %d than it expects", peer, l.rank)
	}
	for k, b := range sent {
		copy(list[k], b)
	}
	return nil
}

// process holds the arguments of Fit in one process.
type process struct {
	ctx     context.Context // t.Context() if nil
	problem train.Problem
	config  setup
}

// outcome holds the results of one process.
type outcome struct {
	result *train.Result
	err    error
	values [][]float32
	log    string
}

// fitAll calls Fit in every process of a group.
func fitAll(t *testing.T, group []*local, processes func(rank int) process) []outcome {
	t.Helper()
	outcomes := make([]outcome, len(group))
	var wg sync.WaitGroup
	for rank, l := range group {
		p, log := processes(rank), new(bytes.Buffer)
		c := p.config
		c.Log = log
		if c.Solver == nil && c.Optimizer.Solver == nil {
			c.Solver = &optim.Solver{LearningRate: 0.02, WeightDecay: 0.1, ClipNorm: 0.5, Schedule: optim.WarmUp(9)}
		}
		if len(group) > 1 {
			c.Group = l
		}
		if p.ctx == nil {
			p.ctx = t.Context()
		}
		wg.Go(func() {
			defer close(l.ended[rank])
			r, err := train.Fit(p.ctx, p.problem, c.Config, c.RunOptions)
			outcomes[rank] = outcome{r, err, values(p.problem.Params), log.String()}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the processes haven't ended within a minute")
	}
	return outcomes
}

// grouped is unevenDigits with metrics and two buckets. With a BatchSize of 32 and 16 MicroBatches, the last step of
// each bucket is short: it has 1 micro-batch in one bucket and 11 in the other.
func grouped(t *testing.T) train.Problem {
	p := unevenDigits(t, 0.1)
	last := func(sums []float64) float64 { return sums[len(sums)-1] / sums[0] }
	p.Loss = added(p.Loss, func(_ *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
		double := G.Must(G.Add(loss, loss))
		columns := G.Must(G.Sum(inputs[0], 0)) // a vector of rounded sums
		return loss, []train.Metric{{Name: "double", Sum: double}, {Name: "columns", Sum: columns, Value: last}, {Name: "half", Sum: loss, Count: double}}
	})
	p.Train.Order, p.Train.Len = train.Shuffled, 5*32+2+11*2
	p.Train.Bucket = func(example int) int { return min(example/(3*32+2), 1) }
	p.ValidationSize = 15 // 7 batches, the last one of 10
	return p
}

// stopped calls fitAll with the problem from grouped and with early stopping. Only the first process can access its
// checkpoint.
func stopped(t *testing.T, size, workers, epochs int, checkpoint string, resume bool) []outcome {
	t.Helper()
	return fitAll(t, newLocal(size, 0), func(rank int) process {
		c := setup{train.Config{BatchSize: 32, MicroBatches: 16, Stopping: train.StoppingConfig{Monitor: "val_double", Mode: "min", Patience: 2, MinDelta: 0.05}, MaxEpochs: epochs}, train.RunOptions{Seed: 5, Workers: workers, Checkpoint: checkpoint, Resume: resume}}
		if rank > 0 {
			c.Checkpoint = filepath.Join(checkpoint, "not here")
		}
		return process{nil, grouped(t), c}
	})
}

func TestGroupChangesNoBit(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	checkpoint := filepath.Join(t.TempDir(), "c")
	want := stopped(t, 1, 1, 0, checkpoint, false)[0]
	if want.err != nil || !want.result.StoppedEarly || len(want.result.History) < 4 {
		t.Fatalf("with one process: got %+v, %v, want an early stop after at least 4 checks", want.result, want.err)
	}
	wantFile := must.Get(os.ReadFile(checkpoint))(t)
	check := func(t *testing.T, got []outcome, checkpoint string) {
		t.Helper()
		for rank, o := range got {
			if o.err != nil {
				t.Fatalf("process %d: %v", rank, o.err)
			}
			if !reflect.DeepEqual(o.result, want.result) {
				t.Errorf("process %d: the result is %+v, want %+v", rank, o.result, want.result)
			}
			if !same(o.values, want.values) {
				t.Errorf("process %d has other parameters than a run with one process", rank)
			}
			if rank > 0 && o.log != "" {
				t.Errorf("process %d wrote %q to the log, want nothing", rank, o.log)
			}
		}
		if file, err := os.ReadFile(checkpoint); err != nil || !bytes.Equal(file, wantFile) {
			t.Errorf("the checkpoint differs from the checkpoint of a run with one process: %v", err)
		}
	}
	for _, size := range []int{2, 8, 16} {
		for _, workers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d processes with %d workers", size, workers), func(t *testing.T) {
				checkpoint := filepath.Join(t.TempDir(), "c")
				got := stopped(t, size, workers, 0, checkpoint, false)
				check(t, got, checkpoint)
				if got[0].log != want.log {
					t.Errorf("the log is %q, want %q", got[0].log, want.log)
				}
			})
		}
	}
	for _, sizes := range [][2]int{{4, 1}, {1, 2}, {2, 8}} {
		t.Run(fmt.Sprintf("%d processes, then %d", sizes[0], sizes[1]), func(t *testing.T) {
			checkpoint := filepath.Join(t.TempDir(), "c")
			for rank, o := range stopped(t, sizes[0], 1, 2, checkpoint, false) {
				if o.err != nil {
					t.Fatalf("process %d: %v", rank, o.err)
				}
			}
			check(t, stopped(t, sizes[1], 1, 0, checkpoint, true), checkpoint)
		})
	}
}

// The processes exchange long vectors several times in a validation.
func TestGroupOfLongVectors(t *testing.T) {
	testseed.Slow(t)
	const long = 1 << 18
	evaluated := func(size int) []outcome {
		return fitAll(t, newLocal(size, 0), func(int) process {
			p := grouped(t)
			p.Loss = added(p.Loss, func(b *layers.Build, inputs G.Nodes, loss *G.Node) (*G.Node, []train.Metric) {
				parts := G.NewVector(inputs[0].Graph(), tensor.Float32, G.WithName("parts"), G.WithShape(long), G.WithInit(G.RangedFrom(1)))
				b.Fixed = append(b.Fixed, parts)
				scaled := G.Must(G.Mul(loss, parts))
				return loss, []train.Metric{{Name: "long", Sum: scaled, Value: func(sums []float64) float64 { return sums[0] + sums[long-1] }}}
			})
			p.Train.Len = 40
			return process{nil, p, setup{train.Config{BatchSize: 32, MicroBatches: 2, MaxEpochs: 1}, train.RunOptions{}}}
		})
	}
	want := evaluated(1)[0]
	for rank, o := range evaluated(2) {
		if o.err != nil || want.err != nil || !reflect.DeepEqual(o.result, want.result) {
			t.Errorf("process %d of 2: got %+v, %v; want %+v, %v", rank, o.result, o.err, want.result, want.err)
		}
	}
}

// If process 2 fails, all processes end with an error at the same step.
func TestGroupEndsTogether(t *testing.T) {
	fails := func(d *train.Dataset, first int) { // makes the batch that starts with the example first fail
		batch := d.Batch
		d.Batch = func(examples []int) ([]*tensor.Dense, error) {
			if examples[0] == first {
				return nil, errors.New("no such file")
			}
			return batch(examples)
		}
	}
	edit := func(d *train.Dataset, first int, change func(values []*tensor.Dense)) { // edits the batch that starts with the example first
		*d = changed(*d, func(examples []int, values []*tensor.Dense) {
			if examples[0] == first {
				change(values)
			}
		})
	}
	toNaN := func(values []*tensor.Dense) { values[0].Float32s()[0] = float32(math.NaN()) }
	for _, c := range []struct {
		name   string
		change func(p *process) // changes process 2
		want   string           // start of the other processes' errors
	}{
		{"no batch", func(p *process) { fails(&p.problem.Train, 320+3*16+8) }, "train: process 2 of the Group: batch of epoch 1, step 3: no such file"},
		{"a graph that fails", func(p *process) {
			edit(&p.problem.Train, 16+9, func(values []*tensor.Dense) { values[1].Ints()[0] = 99 })
		}, "train: process 2 of the Group: epoch 0, step 1: micro-batch 9: "},
		{"a loss that isn't finite", func(p *process) { edit(&p.problem.Train, 16+9, toNaN) }, "the training loss is NaN at epoch 0, step 1"},
		{"validation that fails", func(p *process) { fails(&p.problem.Validation, 50) }, "train: process 2 of the Group: validation batch 2: no such file"},
		{"validation that isn't finite", func(p *process) { edit(&p.problem.Validation, 50, toNaN) }, "the validation loss is NaN at epoch 0, step 2"},
		{"a check", func(p *process) {
			p.config.OnCheck = failAt(1, errors.New("no room"))
		}, "process 2 of the Group: no room"},
		{"a wrong setting", func(p *process) { p.config.Workers = -1 }, "train: process 2 of the Group: workers must be at least 0, got -1"},
		{"another solver", func(p *process) { p.config.Solver, p.config.Checkpoint = G.NewAdamSolver(), "" }, "train: process 2 of the Group: a Group needs an *optim.Solver"},
		{"another seed", func(p *process) { p.config.Seed++ }, "train: process 2 of the Group and process 0 have different settings or data"},
		{"more data", func(p *process) { p.problem.Train.Len += 16 }, "train: process 2 of the Group and process 0 have different settings or data"},
		{"another learning rate", func(p *process) { p.config.Solver = optim.NewAdamW(0.03) }, "train: process 2 of the Group and process 0 have different settings or data"},
		{"other parameters", func(p *process) { p.problem.Params.All()[1].Value.Float32s()[0]++ }, "train: process 2 of the Group and process 0 have different parameters"},
	} {
		t.Run(c.name, func(t *testing.T) {
			outcomes := fitAll(t, newLocal(4, 0), func(rank int) process {
				p := digits(t, 1)
				p.ValidationSize = 25
				process := process{nil, p, setup{train.Config{BatchSize: 16, MicroBatches: 16, MaxEpochs: 3}, train.RunOptions{Seed: 3, Solver: optim.NewAdamW(0.02), Checkpoint: filepath.Join(t.TempDir(), "c")}}}
				if rank == 2 {
					c.change(&process)
				}
				return process
			})
			for rank, o := range outcomes {
				if o.err == nil || rank != 2 && !strings.HasPrefix(o.err.Error(), c.want) {
					t.Errorf("process %d ends with %v, want an error that begins with %q", rank, o.err, c.want)
				}
				if c.name != "other parameters" && !same(o.values, outcomes[0].values) {
					t.Errorf("process %d has other parameters than process 0", rank)
				}
			}
		})
	}
}

// If the first process can't access the checkpoint, all processes end with its error.
func TestGroupWithoutCheckpoint(t *testing.T) {
	for _, resume := range []bool{false, true} {
		outcomes := stopped(t, 2, 1, 0, filepath.Join(t.TempDir(), "no", "such", "folder"), resume)
		want := map[bool]string{false: "train: writing the checkpoint: process 0 of the Group: ", true: "train: process 0 of the Group: reading "}[resume]
		if err := outcomes[1].err; err == nil || !strings.Contains(err.Error(), "process 0 of the Group: ") {
			t.Errorf("process 1 ends with %v, want an error like %q", err, want)
		}
		if err := outcomes[0].err; !errors.Is(err, os.ErrNotExist) {
			t.Errorf("process 0 ends with %v, want os.ErrNotExist", err)
		}
	}
}

// If one process is interrupted, all processes end at the same step. Another number of processes can then resume.
func TestGroupInterrupted(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	run := func(size int, checkpoint string, resume bool, change func(p *process, rank int)) []outcome {
		return fitAll(t, newLocal(size, 0), func(rank int) process {
			p := process{nil, grouped(t), setup{train.Config{BatchSize: 32, MicroBatches: 16, MaxEpochs: 2, Optimizer: optim.Config{Average: 0.9}}, train.RunOptions{Checkpoint: checkpoint, Resume: resume}}}
			if checkpoint != "" {
				p.config.CheckpointTime = time.Nanosecond
			}
			change(&p, rank)
			return p
		})
	}
	cancelled := func(last int, cause error) func(p *process) { // after the step number last, from 0
		return func(p *process) {
			ctx, cancel := context.WithCancelCause(t.Context())
			p.ctx = ctx
			p.config.OnStep = at(last, func() { cancel(cause) })
		}
	}
	begin := time.Now()
	want := run(1, "", false, func(*process, int) {})[0]
	long := time.Second + 10*time.Since(begin) // three steps take less, also on a busy machine
	for _, c := range []struct {
		name  string
		after int // number of steps taken; an epoch has 6
		cause error
		limit func(p *process) // sets the limit
	}{
		{"steps", 3, nil, func(p *process) { p.config.MaxSteps = 3 }},
		{"time in one process", 4, nil, func(p *process) {
			p.config.MaxTime = long
			p.config.OnStep = at(3, func() { time.Sleep(long) })
		}},
		{"OnStep in one process", 2, nil, func(p *process) {
			p.config.OnStep = func(_, step int, _ float64) bool { return step == 1 }
		}},
		{"context of one process", 2, context.Canceled, cancelled(1, errors.New("ended by a test"))},
		{"context of one process, in validation", 6, context.Canceled, cancelled(5, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkpoint := filepath.Join(t.TempDir(), "c")
			steps := make([]int, 4)
			got := run(4, checkpoint, false, func(p *process, rank int) {
				if rank == 2 || p.config.MaxSteps > 0 || c.name == "steps" {
					c.limit(p)
				}
				onStep := p.config.OnStep
				p.config.OnStep = func(epoch, step int, loss float64) bool {
					steps[rank]++
					return onStep != nil && onStep(epoch, step, loss)
				}
			})
			for rank, o := range got {
				if c.name == "context of one process" && rank != 2 && o.err.Error() != "process 2 of the Group: ended by a test" {
					t.Errorf("process %d: got the error %v, want the cause in process 2", rank, o.err)
				}
				if steps[rank] != c.after || !errors.Is(o.err, c.cause) || c.cause == nil && !o.result.Unfinished {
					t.Errorf("process %d ends after %d steps with the error %v, want %d and %v, and an unfinished result if there is no error", rank, steps[rank], o.err, c.after, c.cause)
				}
			}
			for rank, o := range run(2, checkpoint, true, func(*process, int) {}) {
				if o.err != nil || !same(o.values, want.values) || !reflect.DeepEqual(o.result, want.result) {
					t.Errorf("process %d, resumed: got error %v, want the result of the uninterrupted run", rank, o.err)
				}
			}
		})
	}
}

// If any call of a Group fails, all processes end with an error, and none waits forever.
func TestGroupBreaks(t *testing.T) {
	testseed.Proof(t)
	t.Parallel()
	run := func(failAt int64) (*local, []outcome) {
		group := newLocal(4, failAt)
		checkpoint := filepath.Join(t.TempDir(), "c")
		return group[0], fitAll(t, group, func(int) process {
			p := digits(t, 1)
			p.Train.Len = 24
			return process{nil, p, setup{train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 2}, train.RunOptions{Checkpoint: checkpoint}}}
		})
	}
	whole, outcomes := run(0)
	if outcomes[0].err != nil {
		t.Fatal(outcomes[0].err)
	}
	calls := whole.calls.Load()
	if calls < 100 {
		t.Fatalf("got %d calls, want at least 100", calls)
	}
	step := int64(3)
	if testing.Short() {
		step = 11
	}
	for failAt := int64(1); failAt <= calls; failAt += step {
		_, outcomes := run(failAt)
		var failed int
		for rank, o := range outcomes {
			if o.err != nil {
				failed++
				if !errors.Is(o.err, errBroken) {
					t.Errorf("call %d of %d fails: process %d ends with %v, want errBroken", failAt, calls, rank, o.err)
				}
			}
		}
		// A process that has made its last call doesn't notice that another one fails.
		if failed == 0 || failed < len(outcomes) && failAt <= calls-int64(len(outcomes)) {
			t.Errorf("call %d of %d fails: %d processes end with an error, want all of them", failAt, calls, failed)
		}
	}
}

func TestBroadcast(t *testing.T) {
	errOurs := errors.New("no such file")
	for _, c := range []struct {
		name       string
		data       string // data of the first process
		err, wrong error  // errors of the first and of the last process
	}{
		{"data", "what it has read", nil, nil},
		{"nothing", "", nil, nil},
		{"an error of the first", "data", errOurs, nil},
		{"an error of another", "data", nil, errOurs},
	} {
		t.Run(c.name, func(t *testing.T) {
			var wg sync.WaitGroup
			for rank, l := range newLocal(3, 0) {
				data, err := []byte(c.data), c.err
				switch rank {
				case 1:
					data, err = nil, nil
				case 2:
					data, err = []byte("something else that is longer"), c.wrong
				}
				wg.Go(func() {
					defer close(l.ended[rank])
					got, gotErr := train.Broadcast(l, data, err)
					if (gotErr != nil) != (c.err != nil || c.wrong != nil) || gotErr == nil && string(got) != c.data {
						t.Errorf("process %d gets %q, %v, want %q, or an error if a process has one", rank, got, gotErr, c.data)
					}
					if gotErr != nil && !strings.Contains(gotErr.Error(), "no such file") {
						t.Errorf("process %d gets the error %v, want one about no such file", rank, gotErr)
					}
				})
			}
			wg.Wait()
		})
	}
	if got, err := train.Broadcast(nil, []byte("alone"), errOurs); string(got) != "alone" || err != errOurs {
		t.Errorf("without a Group: got %q, %v, want the arguments", got, err)
	}
}

func TestGroupErrors(t *testing.T) {
	for _, c := range []struct {
		name       string
		rank, size int
		micro      int
		want       string
	}{
		{"rank too large", 2, 2, 16, "the Rank of a Group must be from 0 to Size − 1, got Rank 2 and Size 2"},
		{"no processes", 0, 0, 16, "got Rank 0 and Size 0"},
		{"no divisor", 0, 3, 16, "micro_batches must be 1, 2, 4, 8, … times the number of processes, got 16 for 3 processes"},
		{"shares of three", 0, 2, 6, "got 6 for 2 processes"},
		{"more processes than micro-batches", 1, 4, 2, "got 2 for 4 processes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantError(t, "Fit", failure(train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 3 * c.micro, MicroBatches: c.micro, MaxEpochs: 1}, train.RunOptions{Group: deaf{c.rank, c.size}})), c.want)
		})
	}
}

// deaf is a Group in which the other processes send only zeros.
type deaf struct{ rank, size int }

func (d deaf) Rank() int { return d.rank }
func (d deaf) Size() int { return d.size }
func (d deaf) Gather(mine, gathered []byte) error {
	copy(gathered[d.rank*len(mine):], mine)
	return nil
}
func (d deaf) Swap(int, [][]byte, [][]byte) error { return nil }

// liar is a Group of two processes. It changes the data that this process gets.
type liar struct {
	deaf
	lie func(mine, gathered []byte)
}

func (l liar) Gather(mine, gathered []byte) error {
	for rank := range 2 {
		copy(gathered[rank*len(mine):], mine)
	}
	l.lie(mine, gathered)
	return nil
}

// A Group that returns random data doesn't make Fit panic or hang. Training ends with an error, unless the data is a
// valid message.
func TestGroupOfGarbage(t *testing.T) {
	lies := map[string]func(mine, gathered []byte){
		"nothing":        func(_, gathered []byte) { clear(gathered) },
		"ones":           func(_, gathered []byte) { fill(gathered, 0xff) },
		"other's ones":   func(mine, gathered []byte) { fill(gathered[len(mine):], 0xff) },
		"other's zeros":  func(mine, gathered []byte) { clear(gathered[len(mine):]) },
		"a text":         func(mine, gathered []byte) { fill(gathered[len(mine):], 'x') },
		"a severity":     func(mine, gathered []byte) { gathered[len(mine)] = 200 },
		"a long text":    func(mine, gathered []byte) { gathered[len(mine)] = 4; fill(gathered[len(mine)+8:][:7], 0xff) },
		"a negative one": func(mine, gathered []byte) { gathered[len(mine)] = 4; fill(gathered[len(mine)+8:][:8], 0xff) },
		"its own":        func(mine, gathered []byte) { gathered[0]++ },
	}
	for name, lie := range lies {
		for first := range 12 { // number of correct calls of Gather before the lie
			t.Run(fmt.Sprintf("%s/%d", name, first), func(t *testing.T) {
				calls := 0
				r, err := train.Fit(t.Context(), digits(t, 1), train.Config{BatchSize: 16, MicroBatches: 4, MaxEpochs: 1}, train.RunOptions{Workers: 1, Group: liar{deaf{0, 2}, func(mine, gathered []byte) {
					if calls++; calls > first && len(mine) > 0 {
						lie(mine, gathered)
					}
				}}})
				if err == nil && name != "other's zeros" {
					t.Errorf("Fit returns %+v, want an error", r)
				}
				calls = 0
				data, err := train.Broadcast(liar{deaf{1, 2}, func(mine, gathered []byte) {
					if calls++; calls > first {
						lie(mine, gathered)
					}
				}}, []byte("data"), nil)
				if err == nil && len(data) > 4 {
					t.Errorf("Broadcast returns %d bytes, want at most 4 or an error", len(data))
				}
			})
		}
	}
	for _, size := range []int{-1, math.MinInt, math.MaxInt, min(1<<40, math.MaxInt)} {
		for _, rank := range []int{0, 1, -1, size - 1, size} {
			p := digits(t, 1)
			_, err := train.Fit(t.Context(), p, train.Config{BatchSize: 16, MaxEpochs: 1}, train.RunOptions{Group: deaf{rank, size}})
			_, shared := train.Broadcast(deaf{rank, size}, nil, nil)
			if err == nil || shared == nil || err.Error() != shared.Error() {
				t.Errorf("rank %d of size %d: Fit returns %v and Broadcast %v, want the same error", rank, size, err, shared)
			}
		}
	}
}

func fill(b []byte, x byte) { copy(b, bytes.Repeat([]byte{x}, len(b))) }
