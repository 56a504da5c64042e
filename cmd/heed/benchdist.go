package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/bench"
	"github.com/heed-go/heed/train"
)

func newBenchDist(group train.Group) *cobra.Command {
	var asJSON bool
	var steps int
	var gbits, latency float64
	cmd := &cobra.Command{
		Use:   "dist",
		Short: "Measure training in several workers and processes",
		Long: `Measure training steps of nanogpt with 12 sequences for each process, in 1, 2 and 4 workers as far as there are cores:
in one process or, under mpirun, in all that it starts. Then calculate what larger numbers of processes would take on
a network, with a machine each as fast as this one.

  agree   milliseconds of a step in short exchanges: most of it is waiting for the slowest process
  swap    milliseconds of a step in exchanges of gradients and parameters
  share   of the step that both take
  model   milliseconds that are calculated for both from messages that were measured`,
		Example: `  heed bench dist --steps 20
  mpirun -n 2 heed bench dist --gbits 25 --latency 10`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if steps < 1 || !(gbits > 0) || !(latency >= 0) {
				return usagef("--steps must be at least 1, --gbits above 0 and --latency not negative, got %d, %v and %v", steps, gbits, latency)
			}
			table := first(group) && !asJSON
			out := cmd.OutOrStdout()
			if table {
				fmt.Fprintf(out, "%9s %7s %9s %8s %10s %8s %8s %6s %8s\n", "processes", "workers", "median ms", "min ms", "tokens/s", "agree ms", "swap ms", "share", "model ms")
			}
			fastest := 0.0
			var between bench.Network
			err := bench.Scale(cmd.Context(), group, steps, func(s bench.Scaling) error {
				fastest, between = max(fastest, s.Flops()), s.Network
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
			net := bench.Network{Latency: latency / 1e6, Bandwidth: gbits * 1e9 / 8}
			if table && between != (bench.Network{}) {
				fmt.Fprintf(out, "\nMeasured between processes: %v\n", between)
			}
			if table {
				fmt.Fprintf(out, "\nCalculated for %v, from %.1f GFLOP/s a process:\n", net, fastest/1e9)
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
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each, a line each")
	cmd.Flags().IntVar(&steps, "steps", 50, "counted steps, after a fifth as many that aren't")
	cmd.Flags().Float64Var(&gbits, "gbits", 10, "the network to calculate for: gigabits a second of a machine")
	cmd.Flags().Float64Var(&latency, "latency", 50, "the network to calculate for: microseconds that a message takes, however short")
	return cmd
}
