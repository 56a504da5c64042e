package kernel

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkVector times all elementwise functions at the sizes of two models: "nanogpt" has B 12, T 64, D 128, H 4, FF
// 512 and V 65; "tiny" has B 32, T 16, D 32, H 2, FF 128 and V 12.
func BenchmarkVector(b *testing.B) {
	for _, m := range []struct {
		name                                              string
		batch, time, width, heads, hidden, vocab, longest int
	}{
		{"nanogpt", 12, 64, 128, 4, 512, 65, 65536}, {"tiny", 32, 16, 32, 2, 128, 12, 4096},
	} {
		rows := m.batch * m.time
		n, wide, square := rows*m.width, rows*m.hidden, rows*m.heads*m.time
		x, y, out := normals[float32](1, wide), normals[float32](2, wide), make([]float32, wide)
		g, beta, dg, db := normals[float32](3, m.hidden), normals[float32](4, m.hidden), make([]float32, m.hidden), make([]float32, m.hidden)
		out2 := make([]float32, wide)
		turn := Rotary{Batch: m.batch, Outer: 1, Length: m.time, Inner: m.heads, Width: m.width / m.heads, Dim: m.width / m.heads}
		pairs := turn
		pairs.Interleaved = true
		angles := normals[float32](5, m.time*turn.Dim/2)
		shape, shared := [4]int{m.batch, m.heads, m.time, m.time}, [4]int{1, 1, m.time, m.time}
		sloped := Mask[float32]{Shape: shape, Slopes: make([]float32, m.heads)}
		biased := Mask[float32]{Shape: shape, Bias: make([]float32, m.time*m.time), BiasShape: shared}
		allowed := Mask[float32]{Shape: shape, Allow: make([]bool, m.time*m.time), AllowShape: shared}
		mask := Mask[float32]{Shape: [4]int{m.batch, m.heads, m.time, m.time}, Causal: true}
		w := make([]float32, square)
		MaskedSoftmax(0, w, x[:square], mask)
		ids, targets := make([]int, rows), make([]int, rows)
		for i := range ids {
			ids[i], targets[i] = i%m.vocab, i*7%m.vocab
		}
		losses, logSums := make([]float32, rows), make([]float64, rows)
		scales := slices.Repeat([]float32{0.5}, rows)
		// These means don't decay: after thousands of steps with gradient 0 they would become subnormal, and arithmetic
		// with subnormal numbers is slow.
		adam := AdamStep{Rate: 1e-4, Beta1: 1, Beta2: 1, Eps: 1e-8, Decay: 0.01, GradScale: 1, Correct1: 1, Correct2: 1}
		first, second := make([]float32, m.longest), make([]float32, m.longest)
		for _, k := range []struct {
			name     string
			elements int
			run      func()
		}{
			{"softmax", square, func() { MaskedSoftmax(0, out[:square], x, mask) }},
			{"score_grad", square, func() { bodyOf[float32]().scoreGrad(out[:square], w, 0.1, 0x1p-100) }},
			{"softmax_grad", square, func() { SoftmaxGrad(0, out[:square], w, y[:square], m.time) }},
			{"layernorm", n, func() { LayerNorm(0, out[:n], x[:n], g[:m.width], beta[:m.width], 1e-5) }},
			{"layernorm_grad", n, func() {
				LayerNormGrad(0, out[:n], dg[:m.width], db[:m.width], x[:n], g[:m.width], y[:n], nil, 1e-5)
			}},
			{"addrow", n, func() { AddRow(0, out[:n], g[:m.width]) }},
			{"addrow_wide", wide, func() { AddRow(0, out[:wide], g) }},
			{"sumrows", n, func() { SumRows(0, dg[:m.width], x[:n]) }},
			{"sumrows_wide", wide, func() { SumRows(0, dg, x[:wide]) }},
			{"relu", wide, func() { ReLU(0, out, x) }},
			{"relu_grad", wide, func() { ReLUGrad(0, out, x, y) }},
			{"gelu", wide, func() { GELU(0, out, x) }},
			{"gelu_grad", wide, func() { GELUGrad(0, out, x, y) }},
			{"gelutanh", wide, func() { GELUTanh(0, out, x) }},
			{"gelutanh_grad", wide, func() { GELUTanhGrad(0, out, x, y) }},
			{"silu", wide, func() { SiLU(0, out, x) }},
			{"silu_grad", wide, func() { SiLUGrad(0, out, x, y) }},
			{"swiglu", wide, func() { Gate(0, out, x, y, SiLU[float32]) }},
			{"swiglu_grad", wide, func() { GateGrad(0, out, out2, x, y, y, SiLU[float32], SiLUGrad[float32]) }},
			{"softcap", wide, func() { Softcap(0, out, x, 5) }},
			{"softcap_grad", wide, func() { SoftcapGrad(0, out, x, y, 5) }},
			{"rmsnorm", n, func() { RMSNorm(0, out[:n], x[:n], g[:m.width], 1e-5) }},
			{"rmsnorm_grad", n, func() { RMSNormGrad(0, out[:n], dg[:m.width], x[:n], g[:m.width], y[:n], nil, 1e-5) }},
			{"rotate", n, func() { Rotate(0, out[:n], x[:n], angles, angles, turn) }},
			{"rotate_pairs", n, func() { Rotate(0, out[:n], x[:n], angles, angles, pairs) }},
			{"slopes", square, func() { sloped.applyAll(out[:square]) }},
			{"bias", square, func() { biased.applyAll(out[:square]) }},
			{"allow", square, func() { allowed.applyAll(out[:square]) }},
			{"add", n, func() { Add(0, out[:n], x[:n], y[:n]) }},
			{"skipmul", n, func() { SkipMul(0, out[:n], x[:n], y[:n]) }},
			{"crossentropy", rows * m.vocab, func() { CrossEntropy(0, losses, logSums, x, targets, m.vocab, 0) }},
			{"crossentropy_grad", rows * m.vocab, func() { CrossEntropyGrad(0, out, logSums, x, targets, m.vocab, 0, scales) }},
			{"crossentropy_smooth", rows * m.vocab, func() { CrossEntropy(0, losses, logSums, x, targets, m.vocab, 0.1) }},
			{"crossentropy_smooth_grad", rows * m.vocab, func() { CrossEntropyGrad(0, out, logSums, x, targets, m.vocab, 0.1, scales) }},
			{"adamw", m.longest, func() { AdamW(0, out[:m.longest], y[:m.longest], first, second, adam) }},
			{"sumsquares", m.longest, func() { SumSquares(x[:m.longest]) }},
			{"gather", n, func() { Gather(out[:n], x, ids, m.width) }},
			{"scatter", n, func() { ScatterAdd(out[:n], x, ids, m.width) }},
			{"swapaxes", n, func() { SwapAxes(0, out[:n], x[:n], m.batch, m.time, m.heads, m.width/m.heads) }},
			{"swapaxes_back", n, func() { SwapAxes(0, out[:n], x[:n], m.batch, m.heads, m.time, m.width/m.heads) }},
			{"hasnan", n, func() { bodyOf[float32]().hasNaN(x) }},
			{"dropout", n, func() { DropoutMask(0, out[:n], 0.1, 1, 2, 3) }},
		} {
			b.Run(fmt.Sprintf("%s/%s", m.name, k.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					k.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(k.elements), "ns/element")
			})
		}
	}
}

// applyAll applies the mask to the scores of all queries.
func (m *Mask[F]) applyAll(scores []F) {
	for r := range len(scores) / m.Shape[3] {
		b, h, t := r/(m.Shape[1]*m.Shape[2]), r/m.Shape[2]%m.Shape[1], r%m.Shape[2]
		m.apply(scores[r*m.Shape[3]:][:m.Shape[3]], b, h, t, 0)
	}
}
