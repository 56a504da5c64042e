package layers_test

import (
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// BenchmarkLatentCache computes attention of one new token to 1,000 tokens in a Cache: with latent vectors; with keys
// and values computed from them, which an adapter needs; and with keys and values in the Cache.
func BenchmarkLatentCache(b *testing.B) {
	for _, name := range []string{"latent", "computed", "multi-head"} {
		b.Run(name, func(b *testing.B) {
			p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
			c := layers.AttentionConfig{Heads: 16, HeadDim: 128, NoBias: true, Latent: &layers.LatentConfig{Rank: 512, RotaryDim: 64}}
			if name == "multi-head" {
				c.Latent, c.HeadDim, c.ValueDim = nil, 128+64, 128
			}
			a := must.Get(layers.NewMultiHeadAttention(p, 1024, c))(b)
			cache := must.Get(layers.NewCache(1, 1024))(b)
			step := func(tokens int, build layers.Build) func() {
				g := G.NewGraph()
				build.Cache = cache
				must.Get(a.Cached(&build, input(g, "x", as(tensor.Float32, random(1, 1, tokens, 1024))), layers.Mask{}))(b)
				vm := G.NewTapeMachine(g)
				b.Cleanup(func() { vm.Close() })
				return func() {
					must.Do(b, cache.Extend(tokens))
					must.Do(b, vm.RunAll())
					vm.Reset()
				}
			}
			step(1000, layers.Build{})()
			cache.Commit()
			build := layers.Build{}
			if name == "computed" {
				build.Adapter = must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 1, Targets: []string{"value"}}, 1))(b)
			}
			next := step(1, build)
			for b.Loop() {
				next()
				cache.Cancel()
			}
			b.ReportMetric(float64(cache.Bytes())/(1<<20), "MiB")
		})
	}
}
