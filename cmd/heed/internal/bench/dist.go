package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

// A Scaling holds the times of training steps of nanogpt, with one batch per process. All times except MinMS are
// medians.
type Scaling struct {
	Processes  int              `json:"processes"`
	Workers    int              `json:"workers"` // number per process
	MedianMS   float64          `json:"median_ms"`
	MinMS      float64          `json:"min_ms"`
	TokensPerS float64          `json:"tokens_per_s"` // of all processes
	AgreeMS    float64          `json:"agree_ms"`     // in short exchanges, mostly waiting for the slowest process
	SwapMS     float64          `json:"swap_ms"`      // in exchanges of gradients and parameters
	Share      float64          `json:"share"`        // share of the step's time spent on both exchanges
	ModelMS    float64          `json:"model_ms"`     // time of both exchanges, calculated for this Network
	Network    `json:"network"` // measured between the processes; zero for one process
}

// timed is a group that measures how long its exchanges take.
type timed struct {
	train.Group
	agree, swap time.Duration
}

func (t *timed) Gather(mine, all []byte) error {
	defer func(start time.Time) { t.agree += time.Since(start) }(time.Now())
	return t.Group.Gather(mine, all)
}

func (t *timed) Swap(peer int, send, receive [][]byte) error {
	defer func(start time.Time) { t.swap += time.Since(start) }(time.Now())
	return t.Group.Swap(peer, send, receive)
}

// Scale measures training with 1, 2 and 4 workers, but with no more workers than the first process has cores. It calls
// each(result) for every result. All processes of a group must call Scale together. They use the same numbers of
// workers. If group is nil, only this process trains.
func Scale(ctx context.Context, group train.Group, steps int, each func(Scaling) error) error {
	cores, err := train.Broadcast(group, []byte{byte(min(runtime.GOMAXPROCS(0), 4))}, nil)
	if err != nil {
		return err
	}
	net, err := measureNetwork(group)
	if err != nil {
		return err
	}
	for w := 1; w <= int(cores[0]); w *= 2 {
		s, err := measureScaling(ctx, group, w, steps)
		if err != nil {
			return err
		}
		s.Network = net
		s.ModelMS = 1e3 * exchange(NanoGPT.sizes(), s.Processes, net)
		if err := each(s); err != nil {
			return err
		}
	}
	return nil
}

func measureScaling(ctx context.Context, group train.Group, workers, steps int) (Scaling, error) {
	s := Scaling{Processes: 1, Workers: workers}
	model, p, err := NanoGPT.model()
	if err != nil {
		return s, err
	}
	options := train.RunOptions{Seed: 1, Workers: workers}
	t := &timed{Group: group}
	if group != nil {
		s.Processes, options.Group = group.Size(), t
	}
	examples := s.Processes * NanoGPT.Batch
	tokens := NanoGPT.Tokens(rand.New(rand.NewPCG(1, 1)), examples)
	config := train.Config{BatchSize: examples, MicroBatches: s.Processes * workers, CheckEvery: 1 << 30}
	problem := train.Problem{Params: p}
	if problem.Train, err = train.Tensors(tokens, tokens); err != nil {
		return s, err
	}
	problem.Loss = func(b *layers.Build, in G.Nodes) (layers.Loss, []train.Metric, error) {
		logits, err := model.Forward(b, in[0], layers.Mask{})
		if err != nil {
			return layers.Loss{}, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, in[1], layers.CrossEntropyOptions{})
		return loss, nil, err
	}
	warm := max(1, steps/5)
	options.MaxSteps = warm + steps
	var times, agree, swap, share []float64
	last := time.Now()
	options.OnStep = func(int, int, float64) bool {
		now := time.Now()
		if warm--; warm < 0 {
			step := now.Sub(last)
			times, share = append(times, ms(step)), append(share, float64(t.agree+t.swap)/float64(step))
			agree, swap = append(agree, ms(t.agree)), append(swap, ms(t.swap))
		}
		last, t.agree, t.swap = now, 0, 0
		return false
	}
	if _, err := train.Fit(ctx, problem, config, options); err != nil {
		return s, err
	}
	s.MedianMS, s.MinMS = median(times), slices.Min(times)
	s.AgreeMS, s.SwapMS, s.Share = median(agree), median(swap), median(share)
	s.TokensPerS = float64(examples*NanoGPT.Length) / s.MedianMS * 1e3
	return s, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// A Network describes a connection. Latency is the time of the shortest message in seconds, and Bandwidth is in bytes
// per second.
type Network struct {
	Latency   float64 `json:"latency"`
	Bandwidth float64 `json:"bandwidth"`
}

// measureNetwork measures the connection between the processes of a group. They must all call it together.
func measureNetwork(group train.Group) (Network, error) {
	if group == nil || group.Size() == 1 {
		return Network{}, nil
	}
	size, rank := group.Size(), group.Rank()
	least := func(bytes int) (seconds float64, err error) {
		send, receive := make([]byte, bytes), make([]byte, bytes)
		best := time.Hour
		for range 50 {
			for round := range size {
				peer := (round - rank + size) % size
				if peer == rank {
					continue
				}
				start := time.Now()
				if err := group.Swap(peer, [][]byte{send}, [][]byte{receive}); err != nil {
					return 0, err
				}
				best = min(best, time.Since(start))
			}
		}
		return best.Seconds(), nil
	}
	const large = 1 << 20
	short, err := least(8)
	if err != nil {
		return Network{}, err
	}
	long, err := least(large)
	// short has one message in each direction. long has bytes in both directions at once.
	return Network{short / 2, large / long}, err
}

// exchange returns the seconds per step for the exchanges among n processes on separate machines, for a model whose
// tensors have these numbers of 4-byte elements. It calculates the time of the process with the largest part. Each pair
// of processes sends in both directions at once, and every message adds its latency. For the gradients, this process
// receives its part from every other process, and sends a part that is no larger to each. For the parameters, the
// directions are reversed. The processes also agree four times: before, between and after these exchanges.
func exchange(sizes []int, n int, net Network) float64 {
	if n == 1 {
		return 0
	}
	part, tensors := largestPart(sizes, n)
	bytes := 4 * float64((n-1)*part)
	messages := float64(len(sizes) - tensors + (n-1)*tensors)
	agree := 0.0
	for reached := 1; reached < n; reached *= 2 { // each message doubles the number of reached processes
		agree += net.Latency
	}
	numbers := 8 * float64(n*len(sizes)) // one norm per tensor and process
	return 2*(bytes/net.Bandwidth+messages*net.Latency) + 4*agree + numbers/net.Bandwidth
}

// largestPart returns the number of elements in the largest of n parts of the tensors, and the number of tensors in it.
// It divides them like package train: from the largest tensor to the smallest, each goes to the part with the fewest
// elements.
func largestPart(sizes []int, n int) (elements, tensors int) {
	elementsOf, tensorsOf := make([]int, n), make([]int, n)
	for _, size := range slices.Backward(slices.Sorted(slices.Values(sizes))) {
		smallest := slices.Index(elementsOf, slices.Min(elementsOf))
		elementsOf[smallest] += size
		tensorsOf[smallest]++
	}
	largest := slices.Index(elementsOf, slices.Max(elementsOf))
	return elementsOf[largest], tensorsOf[largest]
}

// A Forecast is the calculated performance of a model's steps on several processes, each on its own machine.
type Forecast struct {
	Model      string  `json:"model"`
	Parameters int     `json:"parameters"`
	Processes  int     `json:"processes"`
	StepMS     float64 `json:"step_ms"`
	Share      float64 `json:"share"`    // share of the step's time spent on exchanges
	Speedup    float64 `json:"speedup"`  // tokens per second, relative to one process
	StateMB    float64 `json:"state_mb"` // size of AdamW's state in the process with the largest part
}

// Forecasts calculates steps on 1, 8, 64 and 512 processes for models of three sizes, with 12 sequences per process.
// The argument flops is the speed of one process in floating-point operations per second.
func Forecasts(flops float64, net Network) (forecasts []Forecast) {
	for _, c := range []GPT{NanoGPT, {"10m", 12, 256, 384, 6, 6, 65}, {"124m", 12, 1024, 768, 12, 12, 50257}} {
		sizes := c.sizes()
		parameters := 0
		for _, size := range sizes {
			parameters += size
		}
		compute := c.Flops() / flops
		for _, n := range []int{1, 8, 64, 512} {
			exchange := exchange(sizes, n, net)
			part, _ := largestPart(sizes, n)
			forecasts = append(forecasts, Forecast{c.Name, parameters, n, 1e3 * (compute + exchange), exchange / (compute + exchange),
				float64(n) * compute / (compute + exchange), 8 * float64(part) / 1e6})
		}
	}
	return forecasts
}

// Flops returns one process's speed in floating-point operations per second, without the exchanges.
func (s Scaling) Flops() float64 {
	return NanoGPT.Flops() / (s.MedianMS / 1e3 * (1 - s.Share))
}

// String returns the bandwidth and the latency.
func (n Network) String() string {
	return fmt.Sprintf("%.3g Gbit/s and %.3g µs per message", 8*n.Bandwidth/1e9, 1e6*n.Latency)
}
