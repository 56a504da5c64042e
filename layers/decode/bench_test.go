package decode_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// BenchmarkStep measures the time to compute the next token's logits, for sequences of several lengths: with a Session,
// and by applying the model to the whole sequence.
func BenchmarkStep(b *testing.B) {
	d := newDecoder(b, tensor.Float32, layers.ModelConfig{Vocab: 65, Dim: 128, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}}, Layers: 4, Positions: layers.Rotary{}})
	for _, length := range []int{16, 256, 1024} {
		prompt := make([]int, length)
		for i := range prompt {
			prompt[i] = i % 65
		}
		b.Run(fmt.Sprintf("session/%d", length), func(b *testing.B) {
			const more = 256 // tokens generated before the session is reset
			s := newSession(b, d, decode.Config{Capacity: length + more})
			token := [][]int{{7}}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%more == 0 {
					b.StopTimer()
					s.Reset()
					must.Get(s.Step([][]int{prompt}))(b)
					b.StartTimer()
				}
				must.Get(s.Step(token))(b)
			}
		})
		b.Run(fmt.Sprintf("whole/%d", length), func(b *testing.B) {
			g := G.NewGraph()
			logits := must.Get(d.Forward(&layers.Build{}, ids(g, "ids", prompt), layers.Mask{}))(b)
			var v G.Value
			G.Read(logits, &v)
			vm := G.NewTapeMachine(g)
			defer vm.Close()
			b.ReportAllocs()
			for b.Loop() {
				must.Do(b, vm.RunAll())
				vm.Reset()
			}
		})
	}
}

// BenchmarkCapacity measures the next token after 10 tokens. It takes no longer if there is room for many more.
func BenchmarkCapacity(b *testing.B) {
	d := newDecoder(b, tensor.Float32, layers.ModelConfig{Vocab: 65, Dim: 256, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 8}}, Layers: 4, Positions: layers.Rotary{}})
	for _, capacity := range []int{16, 4096, 65536} {
		b.Run(fmt.Sprint(capacity), func(b *testing.B) {
			s := newSession(b, d, decode.Config{Capacity: capacity})
			for i := 0; b.Loop(); i++ {
				if i%4 == 0 {
					s.Reset()
					must.Get(s.Step([][]int{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}))(b)
				}
				must.Get(s.Step([][]int{{7}}))(b)
			}
		})
	}
}

// newGPT2 returns a model of GPT-2's shape with 124 million random weights.
func newGPT2(b *testing.B) (*layers.Params, *layers.Decoder) {
	const vocab, dim, blocks, context = 50_257, 768, 12, 1024
	p := must.Get(layers.NewParams(tensor.Float32, 1))(b)
	d := must.Get(layers.NewDecoder(p, layers.ModelConfig{
		Vocab: vocab, Dim: dim, Layers: blocks, Positions: layers.Learned{MaxLen: context}, Tied: true, EmbeddingScale: 1,
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 12}, FeedForward: layers.FeedForwardConfig{Hidden: 4 * dim, Activation: layers.GELUTanh}},
	}))(b)
	return p, d
}

// gpt2Prompt returns 512 tokens.
func gpt2Prompt() []int {
	tokens := make([]int, 512)
	for i := range tokens {
		tokens[i] = i * 97 % 50_257
	}
	return tokens
}

// BenchmarkGPT2 measures a model of GPT-2's shape. It alternates with the work that bounds it: a prompt with a matrix
// product, and a token with reading all weights from memory. All times are the shortest of several runs.
func BenchmarkGPT2(b *testing.B) {
	const dim, blocks, prompt = 768, 12, 512
	p, d := newGPT2(b)
	p.KeepPanels(true)
	s, tokens := newSession(b, d, decode.Config{}), gpt2Prompt()
	read := func() { s.Reset(); must.Get(s.Step([][]int{tokens}))(b) }
	b.Run("prompt", func(b *testing.B) {
		x, w, y := make([]float32, prompt*dim), make([]float32, 4*dim*dim), make([]float32, prompt*4*dim)
		product := func() { // as large as the products of a block
			for range 3 * blocks {
				kernel.Gemm(0, false, true, prompt, 4*dim, dim, 1, x, dim, w, dim, 0, y, 4*dim) // (T, D) x (4D, D)ᵀ
			}
		}
		took := fastest(b, read, product)
		b.ReportMetric(took[0].Seconds()*1e3, "ms/prompt")
		b.ReportMetric(2*3*blocks*prompt*4*dim*dim/1e9/took[1].Seconds(), "GFLOP/s")
		b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "of-product")
	})
	b.Run("token", func(b *testing.B) {
		var pieces [][]uint64 // of the weights
		for _, param := range p.All() {
			x := param.Value.Float32s()
			for piece := range slices.Chunk(unsafe.Slice((*uint64)(unsafe.Pointer(&x[0])), len(x)/2), 1<<18) {
				pieces = append(pieces, piece)
			}
		}
		read()
		s.Step([][]int{{1}})
		took := fastest(b, func() { must.Get(s.Step([][]int{{7}}))(b) }, func() { sum(pieces) })
		b.ReportMetric(took[0].Seconds()*1e3, "ms/token")
		b.ReportMetric(took[1].Seconds()*1e3, "ms/read")
		b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-read")
	})
}

// BenchmarkInt8 measures the same model with float32 and int8 weights in turn: a token of one sequence and of each of 8
// sequences after 16 to 123 others, and a prompt of 512. All times are the shortest of several runs.
func BenchmarkInt8(b *testing.B) {
	p, d := newGPT2(b)
	steps := map[string][]func(){}
	for range 2 {
		for _, c := range []struct {
			name           string
			batch, context int
		}{{"token/1", 1, 16}, {"token/8", 8, 16}, {"prompt", 1, 512}} {
			s, tokens := newSession(b, d, decode.Config{Batch: c.batch}), gpt2Prompt()[:c.context]
			step := func(row []int) { must.Get(s.Step(slices.Repeat([][]int{row}, c.batch)))(b) }
			read := func() { s.Reset(); step(tokens) }
			next := func() {
				if s.Room(0) < 900 {
					read()
				}
				step(tokens[:1])
			}
			read() // builds the graphs
			next()
			if c.name == "prompt" {
				next = read
			}
			steps[c.name] = append(steps[c.name], next)
		}
		must.Do(b, p.Quantize()) // the graphs built so far keep the float32 weights
	}
	for _, name := range []string{"token/1", "token/8", "prompt"} {
		b.Run(name, func(b *testing.B) {
			took := fastest(b, steps[name]...)
			b.ReportMetric(took[0].Seconds()*1e3, "float32-ms")
			b.ReportMetric(took[1].Seconds()*1e3, "int8-ms")
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "times")
		})
	}
}

// fastest runs functions in turn and returns the shortest time of each, because other programs only slow them down.
func fastest(b *testing.B, functions ...func()) []time.Duration {
	times := slices.Repeat([]time.Duration{math.MaxInt64}, len(functions))
	for b.Loop() {
		for i, f := range functions {
			start := time.Now()
			f()
			times[i] = min(times[i], time.Since(start))
		}
	}
	return times
}

// sum adds up numbers on all cores, in two places of a piece at once, because that is faster. It takes as long as the
// memory takes to deliver the numbers.
func sum(pieces [][]uint64) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(pieces); i = next.Add(1) - 1 {
				var s0, s1, s2, s3 uint64
				half := len(pieces[i]) / 2
				x, y := pieces[i][:half], pieces[i][half:]
				for ; len(x) >= 8 && len(y) >= 8; x, y = x[8:], y[8:] {
					p, q := (*[8]uint64)(x), (*[8]uint64)(y)
					s0 += p[0] + p[4] + q[0] + q[4]
					s1 += p[1] + p[5] + q[1] + q[5]
					s2 += p[2] + p[6] + q[2] + q[6]
					s3 += p[3] + p[7] + q[3] + q[7]
				}
				total.Add(s0 + s1 + s2 + s3)
			}
		})
	}
	group.Wait()
}

var total atomic.Uint64 // the sums, so that the compiler can't leave them out
