package bench

import "testing"

// BenchmarkStep runs steps of every configuration of heed bench, for profiles:
//
//	go test -run '^$' -bench Step/nanogpt/fused -cpuprofile cpu.prof ./cmd/heed/internal/bench
func BenchmarkStep(b *testing.B) {
	for _, c := range All() {
		b.Run(c.ID(), func(b *testing.B) {
			step, err := c.Prepare()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := step.Run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(step.Flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
