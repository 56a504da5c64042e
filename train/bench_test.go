package train_test

import (
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// BenchmarkGPT2 measures a training step of a model of GPT-2's shape with 124 million random weights: one row of 256
// tokens, with all weights or with an adapter of rank 8 on the projections of attention. It also reports the memory of
// the graph's values and gradients, without the weights and the solver's.
func BenchmarkGPT2(b *testing.B) {
	const vocab, dim, length = 50_257, 768, 256
	for _, tune := range []string{"all", "lora"} {
		b.Run(tune, func(b *testing.B) {
			p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
			model := must.Get(layers.NewDecoder(p, layers.ModelConfig{
				Vocab: vocab, Dim: dim, Layers: 12, Positions: layers.Learned{MaxLen: 1024}, Tied: true, EmbeddingScale: 1, Dropout: 0.1,
				Block: layers.BlockConfig{Dropout: 0.1,
					Attention:   layers.AttentionConfig{Heads: 12, Dropout: 0.1},
					FeedForward: layers.FeedForwardConfig{Hidden: 4 * dim, Activation: layers.GELUTanh}},
			}))(b)
			build := &layers.Build{Training: true, Buffers: &layers.Buffers{}}
			if tune == "lora" {
				build.Adapter = must.Get(layers.NewAdapter(p, layers.LowRank{Rank: 8, Alpha: 16, Targets: []string{"query", "key", "value"}, Joint: [][]string{{"query", "key", "value"}}}, 1))(b)
				must.Do(b, p.Freeze())
			}
			ids := make([]int, length)
			for i := range ids {
				ids[i] = i * 97 % vocab
			}
			g := G.NewGraph()
			x := G.NewMatrix(g, tensor.Int, G.WithShape(1, length), G.WithName("ids"), G.WithValue(tensor.New(tensor.WithShape(1, length), tensor.WithBacking(ids))))
			states := must.Get(model.States(build, x, layers.Mask{}))(b) // (1, T, D)
			loss, _, err := model.CrossEntropy(build, states, x, layers.CrossEntropyOptions{})
			must.Do(b, err)
			learnables := slices.DeleteFunc(slices.Clone(build.Learnables()), func(n *G.Node) bool { return slices.Contains(build.Fixed, n) })
			step := optim.Gradients(learnables, must.Get(G.Grad(loss.Mean, learnables...))(b))
			shared, own, err := ops.Plan(g)
			must.Do(b, err)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			solver := optim.NewAdamW(1e-4)
			for b.Loop() {
				vm.Reset()
				must.Do(b, vm.RunAll())
				must.Do(b, solver.Step(step))
			}
			b.ReportMetric(float64(shared+own)/(1<<20), "MiB")
		})
	}
}
