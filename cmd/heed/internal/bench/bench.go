// Package bench implements the measurements of heed bench. It imports package kernel to time single matrix products.
package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/heed-go/heed/layers"
)

// A Benchmark is one measurement.
type Benchmark struct {
	Name string
	Form string // such as fused, composed or forward; empty if there is only one form

	Precision layers.Precision // of the products of linear layers, or of the single product

	// Prepare builds the step.
	Prepare func() (Step, error)

	Steps int // number of steps to time; a fifth of this number runs first, untimed
}

// A Step is the timed operation.
type Step struct {
	Run    func() error
	Tokens int     // tokens per step; 0 if the step has no tokens
	Flops  float64 // floating-point operations per step
	Bytes  float64 // bytes of weights that a step must read, if that limits its speed; otherwise 0
}

// ID returns the name of a benchmark and its form.
func (b Benchmark) ID() string {
	if b.Form == "" {
		return b.Name
	}
	return b.Name + "/" + b.Form
}

// A Measurement is the result of a benchmark. heed bench --json prints it.
type Measurement struct {
	Config       string           `json:"config"`
	Form         string           `json:"form"`
	Precision    layers.Precision `json:"precision"`
	MedianMS     float64          `json:"median_ms"`
	MinMS        float64          `json:"min_ms"`
	TokensPerS   float64          `json:"tokens_per_s"`
	GFLOPS       float64          `json:"gflops"` // at the median time
	PeakRSSMB    float64          `json:"peak_rss_mb"`
	AllocPerStep float64          `json:"alloc_bytes_per_step"`
	SetupMS      float64          `json:"setup_ms"` // time to build the graph and the machine
	GBPerS       float64          `json:"gb_per_s"` // weights read at the median time; 0 if that doesn't limit the step
	Limits
	Share float64 `json:"share"` // of the limit that applies: GBPerS if it isn't 0, and otherwise GFLOPS
}

// Start prepares the benchmark in this process, runs its untimed steps, and returns a function that measures steps.
func (b Benchmark) Start() (measure func(steps int) (Measurement, error), err error) {
	start := time.Now()
	step, err := b.Prepare()
	if err != nil {
		return nil, err
	}
	setup := ms(time.Since(start))
	for range max(1, b.Steps/5) {
		if err := step.Run(); err != nil {
			return nil, err
		}
	}
	return func(steps int) (Measurement, error) {
		m := Measurement{Config: b.Name, Form: b.Form, Precision: b.Precision, SetupMS: setup}
		times := make([]float64, steps)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range times {
			start := time.Now()
			if err := step.Run(); err != nil {
				return m, err
			}
			times[i] = ms(time.Since(start))
		}
		runtime.ReadMemStats(&after)
		slices.Sort(times)
		m.MedianMS, m.MinMS = (times[(steps-1)/2]+times[steps/2])/2, times[0]
		m.GFLOPS = step.Flops / m.MedianMS / 1e6
		m.GBPerS = step.Bytes / m.MedianMS / 1e6
		m.TokensPerS = float64(step.Tokens) / m.MedianMS * 1e3
		m.AllocPerStep = float64(after.TotalAlloc-before.TotalAlloc) / float64(steps)
		m.PeakRSSMB = peakRSS()
		return m, nil
	}, nil
}

// TakeTurns starts the benchmark, reads a number of steps from each line of in, and writes the measurement of these
// steps to out as a line of JSON. It returns at the end of in.
func (b Benchmark) TakeTurns(in io.Reader, out io.Writer) error {
	measure, err := b.Start()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		steps, err := strconv.Atoi(lines.Text())
		if err != nil || steps < 1 {
			return fmt.Errorf("each line of standard input must be a number of steps, at least 1, got %q", lines.Text())
		}
		m, err := measure(steps)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(m); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Compare sets the limits of m and its share of the one that applies.
func (m *Measurement) Compare(l Limits) {
	m.Limits, m.Share = l, m.GFLOPS/l.GFLOPS
	if m.GBPerS > 0 {
		m.Share = m.GBPerS / l.GBPerS
	}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
