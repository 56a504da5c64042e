package train_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

// inBlocks is digits with parameters whose names contain "blocks.", which Muon steps.
func inBlocks(t *testing.T) train.Problem {
	t.Helper()
	p := must.Get(layers.NewParams(tensor.Float32, 1))(t)
	ff := must.Get(layers.NewFeedForward(p.Scope("blocks.0"), 4, layers.FeedForwardConfig{Hidden: 16, Dropout: 0.1}))(t)
	problem := digits(t, 1)
	problem.Params, problem.Loss = p, entropy(ff.Forward)
	return problem
}

// threeMeans is a user-defined rule with three tensors of memory.
type threeMeans struct{}

func (threeMeans) Memory() []string { return []string{"three.fast", "three.slow", "three.most"} }
func (threeMeans) Check(int) error  { return nil }

func (threeMeans) Update(s optim.Step) {
	w := s.Weight.Float32s()
	fast, slow, peak := s.Memory[0].Value.Float32s(), s.Memory[1].Value.Float32s(), s.Memory[2].Value.Float32s()
	for i, g := range s.Grad.Float32s() {
		fast[i] += (g - fast[i]) / 2
		slow[i] += (g - slow[i]) / 8
		peak[i] = max(peak[i], g*g)
		w[i] -= float32(s.Rate)*(fast[i]+slow[i])/(peak[i]+1e-3) + float32(s.Rate*s.Decay)*w[i]
	}
}

// TestEverySolverAndSchedule tries each solver and each schedule of the tables. Two workers, three processes, and a run
// that is stopped and resumed by three processes must give the same result, parameters and checkpoint as one worker.
func TestEverySolverAndSchedule(t *testing.T) {
	testseed.Slow(t)
	cases := map[string]func() setup{
		"own rule": func() setup {
			return setup{RunOptions: train.RunOptions{Solver: &optim.Solver{LearningRate: 0.003, ClipNorm: 0.5, Groups: []optim.Group{
				{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: threeMeans{}, WeightDecay: 0.1},
			}}}}
		},
		"bfloat16": func() setup {
			return setup{Config: train.Config{Precision: layers.BFloat16, Optimizer: optim.Config{Solver: optim.AdamW{}, LearningRate: 0.01}}}
		},
		"a group": func() setup { // with a solver made by hand
			return setup{RunOptions: train.RunOptions{Solver: &optim.Solver{LearningRate: 0.02, ClipNorm: 0.1, Groups: []optim.Group{
				{Match: func(_ string, rank int) bool { return rank == 2 }, Rule: optim.Muon{}},
			}}}}
		},
	}
	for flag, choice := range optim.Choices() {
		for name := range choice.All {
			c := optim.Config{Solver: optim.AdamW{}, LearningRate: 0.01, WeightDecay: 0.1, ClipNorm: 0.1, Schedule: optim.ScheduleConfig{WarmUp: 3, Decay: 20, Floor: 0.1}}
			if v, err := choice.Parse(name); err != nil {
				t.Fatal(err)
			} else if flag == "solver" {
				c.Solver = v.(optim.Rule)
			} else {
				c.Schedule.Kind = v.(string)
			}
			cases[flag+" "+name] = func() setup { return setup{Config: train.Config{Optimizer: c}} }
		}
	}
	for name, settings := range cases {
		t.Run(name, func(t *testing.T) {
			run := func(checkpoint string, processes, workers, steps int) ([]outcome, string) {
				t.Helper()
				outcomes := fitAll(t, newLocal(processes, 0), func(int) process {
					c := settings()
					c.BatchSize, c.MicroBatches, c.MaxEpochs, c.CheckEvery = 12, 6, 1, 6
					c.Checkpoint, c.Workers, c.MaxSteps, c.Resume = checkpoint, workers, steps, true
					return process{nil, inBlocks(t), c}
				})
				for rank, o := range outcomes {
					if o.err != nil {
						t.Fatalf("process %d of %d: %v", rank, processes, o.err)
					}
				}
				return outcomes, content(t, checkpoint)
			}
			path := func() string { return filepath.Join(t.TempDir(), "c") }
			want, wantFile := run(path(), 1, 1, 0)
			compare := func(what string, got []outcome, file string) {
				t.Helper()
				for rank, o := range got {
					if !same(o.values, want[0].values) || !reflect.DeepEqual(o.result, want[0].result) || file != wantFile {
						t.Errorf("%s: process %d has another result, other parameters or another checkpoint than one worker", what, rank)
					}
				}
			}
			got, file := run(path(), 1, 2, 0)
			compare("two workers", got, file)
			got, file = run(path(), 3, 1, 0)
			compare("three processes", got, file)
			stopped := path()
			run(stopped, 1, 2, 8)
			got, file = run(stopped, 3, 1, 0)
			compare("resumed", got, file)
		})
	}
}
