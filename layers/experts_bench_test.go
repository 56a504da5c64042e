package layers_test

import (
	"fmt"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// BenchmarkExperts compares training steps of a mixture of experts and of a dense layer with the same active size.
func BenchmarkExperts(b *testing.B) {
	for _, tokens := range []int{512, 2048} {
		for name, c := range map[string]layers.FeedForwardConfig{
			"dense":   {Hidden: 1024, Gated: true, Activation: layers.SiLU, NoBias: true},
			"experts": {Hidden: 512, Gated: true, Activation: layers.SiLU, NoBias: true, Experts: &layers.ExpertsConfig{Count: 8}},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, tokens), func(b *testing.B) {
				p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
				f := must.Get(layers.NewFeedForward(p, 384, c))(b)
				g, build := G.NewGraph(), &layers.Build{Training: true}
				x := input(g, "x", as(tensor.Float32, random(1, tokens, 384)))
				y := must.Get(f.Forward(build, x))(b)
				cost := must.Get(G.Mean(must.Get(G.Square(y))(b)))(b)
				must.Get(G.Grad(cost, append(build.Learnables(), x)...))(b)
				vm := G.NewTapeMachine(g, G.BindDualValues(build.Learnables()...))
				defer vm.Close()
				solver := &optim.Solver{LearningRate: 1e-4}
				for b.Loop() {
					must.Do(b, vm.RunAll())
					must.Do(b, solver.Step(G.NodesToValueGrads(build.Learnables())))
					vm.Reset()
				}
			})
		}
	}
}
