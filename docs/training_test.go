package docs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/report"
)

// larger is a small problem: which of two numbers is larger?
func larger() train.Problem {
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	linear, err := layers.NewLinear(params, 2, 2, layers.LinearConfig{})
	check(err)
	pairs := func(seed uint64, n int) train.Dataset {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, y := make([]float32, 2*n), make([]int, n)
		for i := range n {
			x[2*i], x[2*i+1] = rng.Float32(), rng.Float32()
			if x[2*i+1] > x[2*i] {
				y[i] = 1
			}
		}
		d, err := train.Tensors(tensor.New(tensor.WithShape(n, 2), tensor.WithBacking(x)), tensor.New(tensor.WithShape(n), tensor.WithBacking(y)))
		check(err)
		return d
	}
	return train.Problem{
		Params: params, Train: pairs(1, 640), Validation: pairs(2, 200),
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			logits, err := linear.Forward(b, inputs[0])
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
			return loss, nil, err
		},
	}
}

// Training that is interrupted and resumed ends with the same bytes as training without a break.
func Example_resume() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "checkpoint.safetensors")

	config := train.Config{
		BatchSize: 32,
		MaxEpochs: 30,
		Optimizer: optim.Config{
			LearningRate: 0.05, WeightDecay: 0.01, ClipNorm: 1,
			Schedule: optim.ScheduleConfig{WarmUp: 20, Decay: 400, Floor: 0.1},
			Average:  0.98, // validate and keep a moving average of the weights
		},
		Stopping: train.StoppingConfig{Patience: 3, MinDelta: 0.001}, // stop if the validation loss hasn't fallen by 0.001 for 3 epochs
	}
	options := func(checkpoint string, maxSteps int) train.RunOptions {
		return train.RunOptions{
			Seed:       1,
			MaxSteps:   maxSteps, // 0 is no limit
			Checkpoint: checkpoint,
			Resume:     true, // start from the Checkpoint, if there is one
		}
	}
	whole, parts := larger(), larger()
	_, err = train.Fit(ctx, whole, config, options(filepath.Join(dir, "other"), 0))
	check(err)

	first, err := train.Fit(ctx, parts, config, options(file, 77)) // 20 steps make an epoch
	check(err)
	fmt.Println(first.Unfinished, first.StoppedBecause)
	parts = larger() // as in a new process
	last, err := train.Fit(ctx, parts, config, options(file, 0))
	check(err)
	fmt.Println(last.Unfinished, len(last.History) > 4)

	bytes := func(p train.Problem) []float32 { return p.Params.Get("weight").Value.Float32s() }
	fmt.Println("the same:", slices.Equal(bytes(whole), bytes(parts)))
	// Output:
	// true the limit of 77 steps is reached
	// false true
	// the same: true
}

// The live page and the report of a program's own training.
func Example_pages() {
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	ctx, problem, config := context.Background(), larger(), train.Config{BatchSize: 32, MaxEpochs: 3, Optimizer: optim.Config{LearningRate: 0.05}}
	var options train.RunOptions
	listener, err := net.Listen("tcp", "localhost:0")
	check(err)
	defer listener.Close()

	live := report.NewLive(problem.Train.Steps(config.BatchSize), config, options)
	options.OnStep, options.OnCheck = live.Step, live.Check
	page, err := live.Handler("larger", "Which of two numbers is larger?")
	check(err)
	go http.Serve(listener, page)

	result, err := train.Fit(ctx, problem, config, options)
	check(err)
	live.End(result.StoppedBecause)

	run := report.Run{Title: "larger", Result: result, Config: config}
	check(run.Save(filepath.Join(dir, "report.html")))

	saved, err := os.ReadFile(filepath.Join(dir, "report.html"))
	check(err)
	fmt.Println(strings.Contains(string(saved), "Training stopped because the limit of 3 epochs is reached."))
	served, err := http.Get("http://" + listener.Addr().String())
	check(err)
	check(served.Body.Close())
	fmt.Println(served.Status)
	// Output:
	// true
	// 200 OK
}

// Early stopping in a loop of your own.
func Example_earlyStopping() {
	losses := []float64{0.9, 0.5, 0.4, 0.42, 0.41, 0.43}
	epoch := -1
	trainEpoch := func() { epoch++ }
	validate := func() float64 { return losses[epoch] }
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)

	stopping := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: 2}}
	best := params.Snapshot()
	for stop := false; !stop; {
		trainEpoch()
		var improved bool
		if improved, stop = stopping.Observe(validate()); improved {
			best = params.Snapshot()
		}
	}
	check(params.Restore(best))
	fmt.Println(stopping.Because())
	// Output:
	// val_loss has not improved for 2 epochs: the best is 0.4, of epoch 2
}

// Muon for a model's matrices, AdamW for the rest, and a separate learning rate for embeddings.
func Example_groups() {
	solver := optim.NewAdamW(0.002)
	solver.Groups = []optim.Group{
		{Match: func(name string, rank int) bool { return name == "embedding.weight" }, LearningRate: 0.0005},
		{Match: func(name string, rank int) bool { return rank == 2 }, Rule: optim.Muon{OutIn: true}, LearningRate: 0.02},
	}
	solver.Schedule = optim.WarmUp(100).Then(100, optim.Linear(900, 1, 0))
	fmt.Printf("%.2f %.2f %.2f\n", solver.Schedule(0), solver.Schedule(99), solver.Schedule(550))
	// Output:
	// 0.01 1.00 0.50
}
