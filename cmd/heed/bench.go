package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// A benchmark is one thing that heed bench measures.
type benchmark struct {
	name string
	form string // fused or composed; empty where there is one form

	// prepare sets up and returns one step, the tokens that it handles (0 if there are none), and its arithmetic.
	prepare func() (step func() error, tokens int, flops float64, err error)

	steps int // counted steps, after a fifth as many that aren't
}

// measurement is what heed bench prints of a benchmark, a JSON object a line.
type measurement struct {
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

func newBench() *cobra.Command {
	var asJSON, here bool
	var procs int
	cmd := &cobra.Command{
		Use:   "bench [CONFIG...]",
		Short: "Measure training steps, attention and matrix products",
		Long: `Measure one step of each configuration, each in a process of its own: a warm-up, then the median and the
minimum of the counted steps.

  nanogpt  forward, backward and AdamW of a small GPT: B 12, T 64, D 128, H 4, 4 blocks, V 65
  tiny     the same of a smaller one: B 32, T 16, D 32, H 2, 1 block, V 12
  long     causal attention alone, forward and backward: H 4, K 64, T 1,024, 4,096 and 16,384
  gemm     square matrix products: 64 to 1,024

Each but gemm runs in both forms: fused, where attention is one operation, and composed, where it is one for each stage.
The composed form keeps matrices of size T×T, so long has it for T 1,024 and 4,096 alone.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if procs < 0 {
				return usagef("--procs must be at least 1, or 0 for all, got %d", procs)
			}
			if procs > 0 {
				runtime.GOMAXPROCS(procs)
			}
			chosen, err := chooseBenchmarks(args)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if here {
				m, err := chosen[0].measure()
				if err != nil {
					return err
				}
				return json.NewEncoder(out).Encode(m)
			}
			if !asJSON {
				fmt.Fprintf(out, "%-12s %-9s %10s %10s %12s %8s %9s %12s\n", "config", "form", "median ms", "min ms", "tokens/s", "GFLOP/s", "peak MB", "alloc B/step")
			}
			for _, b := range chosen {
				m, err := b.measureApart(cmd, procs)
				if err != nil {
					return err
				}
				if err := m.print(out, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each, a line each")
	cmd.Flags().IntVar(&procs, "procs", 0, "processors to use; 0 for all")
	cmd.Flags().BoolVar(&here, "here", false, "measure the first chosen in this process")
	cmd.Flags().MarkHidden("here")
	return cmd
}

// chooseBenchmarks are those whose name is an argument or begins with one; all without arguments.
func chooseBenchmarks(args []string) ([]benchmark, error) {
	all := benchmarks()
	if len(args) == 0 {
		return all, nil
	}
	var chosen []benchmark
	for _, arg := range args {
		found := false
		for _, b := range all {
			if arg == b.name || arg == b.id() || strings.HasPrefix(b.name, arg+"-") {
				chosen, found = append(chosen, b), true
			}
		}
		if !found {
			return nil, usagef("there is no benchmark %q: heed bench --help lists them", arg)
		}
	}
	return chosen, nil
}

// id names a benchmark and its form.
func (b benchmark) id() string {
	if b.form == "" {
		return b.name
	}
	return b.name + "/" + b.form
}

// measureApart measures in a new process, so that the peak of memory is this benchmark's.
func (b benchmark) measureApart(cmd *cobra.Command, procs int) (measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return measurement{}, err
	}
	child := exec.CommandContext(cmd.Context(), self, "bench", "--here", fmt.Sprintf("--procs=%d", procs), b.id())
	child.Stderr = cmd.ErrOrStderr()
	line, err := child.Output()
	if cmd.Context().Err() != nil {
		return measurement{}, errInterrupted
	}
	if err != nil {
		return measurement{}, fmt.Errorf("measuring %s: %w", b.id(), err)
	}
	var m measurement
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("measuring %s: its result can't be read: %w", b.id(), err)
	}
	return m, nil
}

// measure runs the benchmark in this process.
func (b benchmark) measure() (measurement, error) {
	start := time.Now()
	step, tokens, flops, err := b.prepare()
	if err != nil {
		return measurement{}, err
	}
	m := measurement{Config: b.name, Form: b.form, SetupMS: ms(time.Since(start))}
	for range max(1, b.steps/5) {
		if err := step(); err != nil {
			return m, err
		}
	}
	times := make([]float64, b.steps)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range times {
		start := time.Now()
		if err := step(); err != nil {
			return m, err
		}
		times[i] = ms(time.Since(start))
	}
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	m.MedianMS, m.MinMS = times[len(times)/2], times[0]
	m.GFLOPS = flops / m.MedianMS / 1e6
	m.TokensPerS = float64(tokens) / m.MedianMS * 1e3
	m.AllocPerStep = float64(after.TotalAlloc-before.TotalAlloc) / float64(b.steps)
	m.PeakRSSMB = peakRSS()
	return m, nil
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func (m measurement) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(m)
	}
	_, err := fmt.Fprintf(w, "%-12s %-9s %10.3f %10.3f %12.0f %8.1f %9.0f %12.0f\n",
		m.Config, m.Form, m.MedianMS, m.MinMS, m.TokensPerS, m.GFLOPS, m.PeakRSSMB, m.AllocPerStep)
	return err
}
