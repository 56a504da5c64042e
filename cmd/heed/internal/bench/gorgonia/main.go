// Gorgonia measures one training step of a small GPT made only of Gorgonia's own ops, with Gorgonia's Adam. The
// results are in docs/performance.md, in the column "Gorgonia's own ops and Adam". The program measures like heed
// bench, and prints one JSON object per configuration.
//
//	go run ./cmd/heed/internal/bench/gorgonia [nanogpt|tiny ...]
//
// Some of Gorgonia's ops give wrong numbers unless they are used with care. Here:
//   - Reshape's output shares its input's memory; see reshape;
//   - SoftMax and LogSoftMax subtract one number, the array's first, from every row. Results are right only if all
//     numbers are near it; the scores and logits of a model at the start of training are;
//   - gradients add up over runs until the solver steps, and a second run without Reset does nothing.
//
// A test compares its loss and gradients with Heed's model, for the same weights. Each measurement also
// prints the loss of the first and the last step.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
)

func main() {
	names := os.Args[1:]
	if len(names) == 0 {
		names = []string{"nanogpt"}
	}
	configs := map[string]bench.GPT{"nanogpt": bench.NanoGPT, "tiny": bench.Tiny}
	for _, name := range names {
		if _, ok := configs[name]; !ok {
			fmt.Fprintf(os.Stderr, "gorgonia: there is no configuration %q: want nanogpt or tiny\n", name)
			os.Exit(2)
		}
	}
	for _, name := range names {
		if err := measure(configs[name]); err != nil {
			fmt.Fprintln(os.Stderr, "gorgonia:", err)
			os.Exit(1)
		}
	}
}

// measure prints the time of a step, and the loss of the first and the last step.
func measure(c bench.GPT) error {
	var losses []float32
	b := bench.Benchmark{Name: c.Name, Form: "gorgonia", Steps: 25, Prepare: func() (bench.Step, error) {
		step, err := prepare(c)
		return bench.Step{Tokens: c.Batch * c.Length, Flops: c.Flops(), Run: func() error {
			loss, err := step()
			losses = append(losses, loss)
			return err
		}}, err
	}}
	run, err := b.Start()
	if err != nil {
		return err
	}
	m, err := run(b.Steps)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(struct {
		bench.Measurement
		FirstLoss float32 `json:"first_loss"`
		LastLoss  float32 `json:"last_loss"`
	}{m, losses[0], losses[len(losses)-1]})
}

// prepare returns a function for a training step (forward, backward, Adam) on one batch of random tokens. The function
// returns the loss.
func prepare(c bench.GPT) (step func() (float32, error), err error) {
	rng := rand.New(rand.NewPCG(1, 1))
	ids, targets := c.Tokens(rng, c.Batch), c.Tokens(rng, c.Batch)
	n, err := newNetwork(c, ids.Data().([]int), targets.Data().([]int), initial(rng))
	if err != nil {
		return nil, err
	}
	vm := G.NewTapeMachine(n.graph, G.BindDualValues(n.params...))
	solver := G.NewAdamSolver(G.WithLearnRate(1e-3))
	return func() (float32, error) {
		if err := vm.RunAll(); err != nil {
			return 0, err
		}
		loss := n.value.Data().(float32)
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			return loss, fmt.Errorf("%s: the loss is %v", c.Name, loss)
		}
		if err := solver.Step(G.NodesToValueGrads(n.params)); err != nil {
			return loss, err
		}
		vm.Reset()
		return loss, nil
	}, nil
}

// initial draws parameters: biases are 0, weights of norms are 1, all others have a standard deviation of 0.02.
// Gorgonia's own initialisers are seeded by the clock.
func initial(rng *rand.Rand) func(name string, shape ...int) *tensor.Dense {
	return func(name string, shape ...int) *tensor.Dense {
		t := tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(shape...))
		values := t.Data().([]float32)
		for i := range values {
			switch {
			case strings.HasSuffix(name, "bias"):
			case strings.Contains(name, "norm"):
				values[i] = 1
			default:
				values[i] = float32(0.02 * rng.NormFloat64())
			}
		}
		return t
	}
}
