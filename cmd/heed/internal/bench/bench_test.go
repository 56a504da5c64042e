package bench

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// BenchmarkStep runs steps of every configuration of heed bench, for profiles:
//
//	go test -run '^$' -bench Step/nanogpt/fused -cpuprofile cpu.prof ./cmd/heed/internal/bench
func BenchmarkStep(b *testing.B) {
	for _, c := range All(layers.Float32) {
		b.Run(c.ID(), func(b *testing.B) {
			step := must.Get(c.Prepare())(b)
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, step.Run())
			}
			b.ReportMetric(step.Flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
