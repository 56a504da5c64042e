package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

const benchHelp = `Measure the time per step of each configuration, in a new process for each. After a warm-up, heed
prints the median and the minimum of the measured steps.

  nanogpt  forward, backward and AdamW of a small GPT: B 12, T 64, D 128, H 4, 4 blocks, V 65
  tiny     the same for a smaller GPT: B 32, T 16, D 32, H 2, 1 block, V 12
  deep     the same for a deep GPT: B 2, T 64, D 64, H 4, 96 blocks, V 65
  baby     the same for a larger GPT: B 4, T 256, D 384, H 6, 6 blocks, V 65
  wide     the same for a wide GPT: B 8, T 128, D 512, H 8, 4 blocks, V 1,000
  gpt2     the same for GPT-2's shape: B 1, T 256, D 768, H 12, 12 blocks, V 50,257
  embed    vectors of texts, with MiniLM's shape: B 32, T 32, D 384, H 12, 6 blocks
  gemm     products of square matrices, with 64 to 1,024 rows
  decode   the next token after 128 to 255 tokens, with GPT-2's shape and a cache: B 1 and 8
  prompt   reading 512 tokens, with GPT-2's shape
  smollm2  both with SmolLM2's shape, B 1: forms prompt and token, and int8 for the next token with int8 weights
  long     only causal attention, forward and backward: H 4, K 64, T 1,024, 4,096 and 16,384

B is the batch size, T the length, D the model width, H the number of heads, K the width of a head and V
the vocabulary size. The form says how a configuration runs. In the fused form, attention is one
operation. In the composed form, which only nanogpt, tiny and long have, each stage of attention is an
operation, which keeps matrices of size T×T. The composed form of long has only T 1,024 and 4,096. The
form forward of a GPT computes only its logits. To measure one form, write it after a slash.

The first line has two limits of this machine, measured with all processors at once: products of float32
matrices that suit the caches, and reading from memory. The column share is GFLOP/s relative to the
first, also in bfloat16. For the next token, it is the rate of reading all weights once per step, relative
to the second.

With --precision bfloat16, the factors of linear layers' products are rounded to bfloat16, as heed train
does with this flag; gemm measures such a product. decode, prompt, smollm2 and long have only float32.`

func newBench(group train.Group) *cobra.Command {
	var asJSON, turns bool
	var procs int
	var precision layers.Precision
	cmd := &cobra.Command{
		Use:   "bench [CONFIG...]",
		Short: "Measure training steps, decoding, attention and matrix products",
		Long:  benchHelp,
		Example: `  heed bench nanogpt gpt2/forward decode
  heed bench gemm --procs 1 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if processors := runtime.NumCPU(); procs < 0 || procs > processors {
				return usagef("--procs must be from 1 to %d, the number of processors, or 0 for all, got %d", processors, procs)
			}
			if procs > 0 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			}
			chosen, err := chooseBenchmarks(args, precision)
			if err != nil {
				return err
			}
			switch out := cmd.OutOrStdout(); {
			case turns && len(args) == 0:
				return json.NewEncoder(out).Encode(bench.MeasureLimits())
			case turns:
				return chosen[0].TakeTurns(cmd.InOrStdin(), out)
			}
			return measureAll(cmd, chosen, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON per measurement")
	cmd.Flags().IntVar(&procs, "procs", 0, "number of processors to use (0: all)")
	choose(cmd.Flags(), "precision", &precision, "precision of the factors in linear layers' products: %s")
	cmd.Flags().BoolVar(&turns, "turns", false, "measure steps of the first configuration in this process, as many as each line of input says, or the limits without a configuration")
	cmd.Flags().MarkHidden("turns")
	cmd.AddCommand(newBenchDist(group))
	return cmd
}

// measureAll measures benchmarks, and prints a line for each: a row of a table, or JSON.
func measureAll(cmd *cobra.Command, chosen []bench.Benchmark, asJSON bool) error {
	out := cmd.OutOrStdout()
	var limits bench.Limits
	if err := measureApart(cmd, &limits, ""); err != nil {
		return err
	}
	if !asJSON {
		fmt.Fprintf(out, "limits: %.0f GFLOP/s in float32 products, %.1f GB/s from memory\n", limits.GFLOPS, limits.GBPerS)
		fmt.Fprintf(out, "%-10s %-8s %-9s %9s %9s %10s %8s %5s %8s %9s %12s\n", "config", "form", "precision", "median ms", "min ms", "tokens/s", "GFLOP/s", "share", "setup ms", "peak MB", "alloc B/step")
	}
	for _, b := range chosen {
		var m bench.Measurement
		err := measureApart(cmd, &m, fmt.Sprintln(b.Steps), b.ID())
		if err != nil {
			return err
		}
		m.Compare(limits)
		if asJSON {
			err = json.NewEncoder(out).Encode(m)
		} else {
			_, err = fmt.Fprintf(out, "%-10s %-8s %-9v %9.3f %9.3f %10.0f %8.1f %4.0f%% %8.1f %9.0f %12.0f\n",
				m.Config, m.Form, m.Precision, m.MedianMS, m.MinMS, m.TokensPerS, m.GFLOPS, 100*m.Share, m.SetupMS, m.PeakRSSMB, m.AllocPerStep)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chooseBenchmarks returns the benchmarks with a precision that the arguments choose by name, by ID or by the part of
// the name before a dash. Without arguments, it returns all with this precision.
func chooseBenchmarks(args []string, precision layers.Precision) ([]bench.Benchmark, error) {
	benchmarks := bench.All(precision)
	if len(args) == 0 {
		return benchmarks, nil
	}
	var chosen []bench.Benchmark
	for _, arg := range args {
		found := false
		names := []string{"dist"} // a command of its own
		for _, b := range benchmarks {
			names = append(names, b.Name)
			if arg == b.Name || arg == b.ID() || strings.HasPrefix(b.Name, arg+"-") {
				chosen, found = append(chosen, b), true
			}
		}
		if !found {
			return nil, usagef("there is no benchmark %q in %v%s heed bench --help lists the benchmarks", arg, precision, cmp.Or(text.DidYouMean(arg, names), ":"))
		}
	}
	return chosen, nil
}

// measureApart runs heed bench --turns with this call's flags, more arguments and a line of input in a new process, so
// that the peak memory is that process's alone, and sets result to what it prints.
func measureApart(cmd *cobra.Command, result any, line string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags := []string{"bench", "--turns"}
	for _, name := range []string{"procs", "precision"} {
		flags = append(flags, fmt.Sprintf("--%s=%v", name, cmd.Flag(name).Value))
	}
	child := exec.CommandContext(cmd.Context(), self, append(flags, args...)...)
	child.Stdin, child.Stderr = strings.NewReader(line), cmd.ErrOrStderr()
	printed, err := child.Output()
	if cmd.Context().Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return fmt.Errorf("measuring %s: %w", cmp.Or(strings.Join(args, " "), "limits"), err)
	}
	if err := json.Unmarshal(printed, result); err != nil {
		return fmt.Errorf("measuring %s: can't read the result: %w", cmp.Or(strings.Join(args, " "), "limits"), err)
	}
	return nil
}
