package model

import (
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// total returns the sum of the values of some words.
func total(words []Contribution) float64 {
	sum := 0.0
	for _, w := range words {
		sum += w.Value
	}
	return sum
}

// logitOf returns the logit of one label minus the logit of another: the difference of their log probabilities.
func logitOf(t testing.TB, m *Model, input, label, against string) float64 {
	t.Helper()
	answers := must.Get(m.PredictAll(t.Context(), []string{input}, PredictOptions{Top: len(m.Config.Task.Classes)}))(t)
	must.Do(t, answers[0].Err)
	logProb := func(label string) float64 {
		return answers[0].Top[slices.IndexFunc(answers[0].Top, func(a Alternative) bool { return a.Text == label })].LogProb
	}
	return logProb(label) - logProb(against)
}

// linearModel makes the logits of a model linear in the mean of the embeddings: the model has no blocks and no norm.
func linearModel(t testing.TB, m *Model) (table, head []float32) {
	t.Helper()
	params := must.Get(layers.NewParams(tensor.Float32, 3))(t)
	embedding := must.Get(layers.NewEmbedding(params.Scope("table"), m.layout.Tokens, 6, layers.Init{}))(t)
	linear := must.Get(layers.NewLinear(params.Scope("head"), 6, 2, layers.LinearConfig{}))(t)
	copy(linear.Bias.Value.Float32s(), []float32{0.5, -0.25})
	m.table = embedding.Weight
	m.Network = classifier{reader: reader{m, func(b *layers.Build, inputs G.Nodes) (x *G.Node, err error) {
		if x = inputs[0]; x.Dtype() == tensor.Int {
			if x, err = embedding.Forward(b, x); err != nil {
				return nil, err
			}
		}
		if x, err = ops.Pool(b.Env(), x, inputs[1], ops.MeanPooling); err != nil {
			return nil, err
		}
		return linear.Forward(b, x)
	}}}
	return embedding.Weight.Value.Float32s(), linear.Weight.Value.Float32s()
}

// If the logits are linear in the embeddings, the values of the words add up to the difference of two logits, without
// the biases and what average embeddings give.
func TestExplainIsComplete(t *testing.T) {
	m := labelModel(t)
	table, head := linearModel(t, m)
	constant := 0.75 // difference of the biases, and then also of the average embedding's logits
	for i, x := range table {
		constant += float64(x*(head[i%6]-head[6+i%6])) * 6 / float64(len(table))
	}
	first, second := m.Config.Task.Classes[0], m.Config.Task.Classes[1]
	for _, input := range []string{"a", "a  b a ", " d c b a z"} {
		words := must.Get(m.Explain(input, first, second))(t)
		if got, want := total(words), logitOf(t, m, input, first, second)-constant; math.Abs(got-want) > 1e-5 {
			t.Errorf("%q: the words' values add up to %g, want %g, the difference of the logits without the constant", input, got, want)
		}
		half := must.Get(m.Explain(input, first, ""))(t)
		if got, want := total(half), total(words)/2; math.Abs(got-want) > 1e-6 {
			t.Errorf("%q: against the mean of two logits, the values add up to %g, want half of the difference, %g", input, got, want)
		}
	}
}

// differences returns what Explain computes, for a batch of one row, with finite differences in place of gradients.
func differences(t testing.TB, m *Model, batch data.Batch, weights []float64) []float64 {
	t.Helper()
	const step = 1e-2
	start, way := m.way(batch.Inputs)
	dim := len(start)
	model, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		inputs = m.Network.Inputs(g, 1, data.Layout{Len: batch.Len})
		x := G.NewTensor(g, tensor.Float32, 3, G.WithShape(1, batch.Len, dim), G.WithName("embeddings"))
		output, err := m.Network.Forward(b, append(G.Nodes{x}, inputs[1:]...))
		return append(inputs, x), G.Nodes{output}, err
	})
	must.Do(t, err)
	values := make([]float64, batch.Len)
	for position := range values {
		for k := range 2 * explainSteps {
			sign := float64(1 - 2*(k%2))
			part := (float32(k/2) + 0.5) / explainSteps
			x := make([]float32, len(way))
			for i := range x {
				x[i] = start[i%dim] + part*way[i]
				if i/dim == position {
					x[i] += float32(sign*step) * way[i]
				}
			}
			out := must.Get(model.Call(append(m.Network.Values(batch), tensor.New(tensor.WithShape(1, batch.Len, dim), tensor.WithBacking(x)))...))(t)
			for class, logit := range out[0].Float32s() {
				values[position] += sign * weights[class] * float64(logit) / (2 * step * explainSteps)
			}
		}
	}
	return values
}

// The values of tokens agree with finite differences. Padding has no effect.
func TestExplainAgreesWithFiniteDifferences(t *testing.T) {
	m := labelModel(t)
	b, _ := m.encode("c a d")
	if b.Len == b.Lengths[0] {
		t.Fatalf("the batch has no padding: %+v", b)
	}
	padded := must.Get(m.attribute(b, []float64{1, -1}))(t)
	b.Len, b.Inputs = b.Lengths[0], b.Inputs[:b.Lengths[0]]
	values := must.Get(m.attribute(b, []float64{1, -1}))(t)
	for i, want := range differences(t, m, b, []float64{1, -1}) {
		if math.Abs(values[i]-want) > 1e-3+0.02*math.Abs(want) || math.Abs(want) < 5e-3 {
			t.Errorf("token %d has the value %g, want %g, as finite differences say", i, values[i], want)
		}
	}
	for i, value := range padded {
		want := 0.0
		if i < len(values) {
			want = values[i]
		}
		if math.Abs(value-want) > 1e-6 {
			t.Errorf("with padding, token %d has the value %g, want %g", i, value, want)
		}
	}
}

func TestContributions(t *testing.T) {
	token := func(start, end int) tokenizer.Token { return tokenizer.Token{Start: start, End: end} }
	for name, c := range map[string]struct {
		input  string
		tokens []tokenizer.Token
		want   []Contribution
	}{
		"tokens":                 {"ab  é", []tokenizer.Token{token(0, 2), token(4, 6)}, []Contribution{{"ab", 0, 2, 1}, {"é", 4, 6, 2}}},
		"characters":             {"a b\u00a0", []tokenizer.Token{token(0, 1), token(1, 2), token(2, 3), token(3, 5)}, []Contribution{{"a", 0, 1, 1}, {"b", 2, 3, 2 + 4 + 8}}},
		"pieces with spaces":     {"abc de", []tokenizer.Token{token(0, 2), token(2, 3), token(3, 6)}, []Contribution{{"abc", 0, 3, 3}, {"de", 4, 6, 4}}},
		"bytes of a character":   {"é", []tokenizer.Token{token(0, 2), token(0, 2)}, []Contribution{{"é", 0, 2, 3}}},
		"begins with a no-break": {"\u00a0a", []tokenizer.Token{token(0, 2), token(2, 3)}, []Contribution{{"a", 2, 3, 3}}},
		"cut":                    {"a bcd e", []tokenizer.Token{token(0, 1), token(2, 3)}, []Contribution{{"a", 0, 1, 1}, {"bcd", 2, 5, 2}}},
		"only space":             {" ", []tokenizer.Token{token(0, 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			values := []float64{1, 2, 4, 8}[:len(c.tokens)]
			if got := contributions(c.input, c.tokens, values); !slices.Equal(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
