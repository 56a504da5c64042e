package main

import "testing"

// BenchmarkStep is a step of each of heed bench's configurations, for profiles:
//
//	go test -run '^$' -bench Step/nanogpt/fused -cpuprofile cpu.prof ./cmd/heed
func BenchmarkStep(b *testing.B) {
	for _, c := range benchmarks() {
		b.Run(c.id(), func(b *testing.B) {
			step, _, flops, err := c.prepare()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
