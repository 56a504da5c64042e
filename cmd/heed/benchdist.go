package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/train"
)

func newBenchDist(group train.Group) *cobra.Command {
	var asJSON bool
	var steps int
	var gbits, latency float64
	cmd := &cobra.Command{
		Use:   "dist",
		Short: "Measure training with several workers and processes",
		Long: `Measure training steps of nanogpt, with 12 sequences per process and with 1, 2 and 4 workers, up to the
number of cores. Under mpirun, all processes that it starts train together. From the measurements, heed
also calculates the time per step for more processes on a network, each on a machine as fast as this one.

  agree   milliseconds per step in short exchanges, mostly waiting for the slowest process
  swap    milliseconds per step in exchanges of gradients and parameters
  share   share of the step that agree and swap take
  model   milliseconds per step for agree and swap, calculated from the measured network`,
		Example: `  heed bench dist --steps 20
  mpirun -n 2 heed bench dist --gbits 25 --latency 10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 || !(gbits > 0) || !(latency >= 0) {
				return usagef("--steps must be at least 1, --gbits above 0 and --latency not negative, got %d, %v and %v", steps, gbits, latency)
			}
			return benchDist(cmd, group, steps, bench.Network{Latency: latency / 1e6, Bandwidth: gbits * 1e9 / 8}, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON per measurement")
	cmd.Flags().IntVar(&steps, "steps", 50, "number of measured steps, after a warm-up of a fifth of this number")
	cmd.Flags().Float64Var(&gbits, "gbits", 10, "bandwidth of the calculated network, in gigabits per second per machine")
	cmd.Flags().Float64Var(&latency, "latency", 50, "latency of the calculated network, in microseconds per message")
	return cmd
}

// benchDist measures training with the processes of group, and calculates it for more processes on the network net.
func benchDist(cmd *cobra.Command, group train.Group, steps int, net bench.Network, asJSON bool) error {
	out, table := cmd.OutOrStdout(), first(group) && !asJSON
	if table {
		fmt.Fprintf(out, "%9s %7s %9s %8s %10s %8s %8s %6s %8s\n", "processes", "workers", "median ms", "min ms", "tokens/s", "agree ms", "swap ms", "share", "model ms")
	}
	fastest := 0.0
	var measured bench.Network
	err := bench.Scale(cmd.Context(), group, steps, func(s bench.Scaling) error {
		fastest, measured = max(fastest, s.Flops()), s.Network
		if asJSON {
			return json.NewEncoder(out).Encode(s)
		}
		_, err := fmt.Fprintf(out, "%9d %7d %9.3f %8.3f %10.0f %8.3f %8.3f %5.1f%% %8.3f\n",
			s.Processes, s.Workers, s.MedianMS, s.MinMS, s.TokensPerS, s.AgreeMS, s.SwapMS, 100*s.Share, s.ModelMS)
		return err
	})
	if err != nil {
		return err
	}
	if table && measured != (bench.Network{}) {
		fmt.Fprintf(out, "\nMeasured between processes: %v\n", measured)
	}
	if table {
		fmt.Fprintf(out, "\nCalculated for %v, from %.1f GFLOP/s per process:\n", net, fastest/1e9)
		fmt.Fprintf(out, "%-8s %10s %9s %10s %6s %8s %9s\n", "model", "parameters", "processes", "step ms", "share", "speed-up", "state MB")
	}
	for _, f := range bench.Forecasts(fastest, net) {
		if asJSON {
			err = json.NewEncoder(out).Encode(f)
		} else {
			_, err = fmt.Fprintf(out, "%-8s %10d %9d %10.1f %5.1f%% %8.1f %9.2f\n", f.Model, f.Parameters, f.Processes, f.StepMS, 100*f.Share, f.Speedup, f.StateMB)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
