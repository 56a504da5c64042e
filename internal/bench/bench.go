// Package bench holds what heed bench measures. It reaches kernel, so that a matrix product can be timed
// alone.
package bench

import (
	"runtime"
	"slices"
	"time"
)

// A Benchmark is one thing to measure.
type Benchmark struct {
	Name string
	Form string // fused or composed; empty where there is one form

	// Prepare sets up a step.
	Prepare func() (Step, error)

	Steps int // counted steps, after a fifth as many that aren't
}

// A Step is what is timed.
type Step struct {
	Run    func() error
	Tokens int     // that it handles; 0 if there are none
	Flops  float64 // its arithmetic
}

// ID names a benchmark and its form.
func (b Benchmark) ID() string {
	if b.Form == "" {
		return b.Name
	}
	return b.Name + "/" + b.Form
}

// A Measurement is what a benchmark took. heed bench --json prints it.
type Measurement struct {
	Config       string  `json:"config"`
	Form         string  `json:"form"`
	MedianMS     float64 `json:"median_ms"`
	MinMS        float64 `json:"min_ms"`
	TokensPerS   float64 `json:"tokens_per_s"`
	GFLOPS       float64 `json:"gflops"` // at the median
	PeakRSSMB    float64 `json:"peak_rss_mb"`
	AllocPerStep float64 `json:"alloc_bytes_per_step"`
	SetupMS      float64 `json:"setup_ms"` // building graph and machine
}

// Measure runs the benchmark in this process.
func (b Benchmark) Measure() (Measurement, error) {
	start := time.Now()
	step, err := b.Prepare()
	if err != nil {
		return Measurement{}, err
	}
	m := Measurement{Config: b.Name, Form: b.Form, SetupMS: ms(time.Since(start))}
	for range max(1, b.Steps/5) {
		if err := step.Run(); err != nil {
			return m, err
		}
	}
	times := make([]float64, b.Steps)
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
	m.MedianMS, m.MinMS = times[len(times)/2], times[0]
	m.GFLOPS = step.Flops / m.MedianMS / 1e6
	m.TokensPerS = float64(step.Tokens) / m.MedianMS * 1e3
	m.AllocPerStep = float64(after.TotalAlloc-before.TotalAlloc) / float64(b.Steps)
	m.PeakRSSMB = peakRSS()
	return m, nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
