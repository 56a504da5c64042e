package task

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
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

// logit returns the logit of one label minus the logit of another, which is the difference of their log probabilities.
func logit(t testing.TB, m *Model, input, label, against string) float64 {
	t.Helper()
	answers, err := m.PredictAll(t.Context(), []string{input}, PredictOptions{Top: len(m.Config.Task.Classes)})
	if err != nil || answers[0].Err != nil {
		t.Fatal(err, answers[0].Err)
	}
	logProb := func(label string) float64 {
		return answers[0].Top[slices.IndexFunc(answers[0].Top, func(a Alternative) bool { return a.Text == label })].LogProb
	}
	return logProb(label) - logProb(against)
}

// linearModel makes the logits of a model linear in the mean of the embeddings: the model has no blocks and no norm.
func linearModel(t testing.TB, m *Model) (table, head []float32) {
	t.Helper()
	params, err := layers.NewParams(tensor.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	embedding, err := layers.NewEmbedding(params.Scope("table"), m.layout.Tokens, 6, layers.Init{})
	if err != nil {
		t.Fatal(err)
	}
	linear, err := layers.NewLinear(params.Scope("head"), 6, 2, layers.LinearConfig{})
	if err != nil {
		t.Fatal(err)
	}
	copy(linear.Bias.Value.Float32s(), []float32{0.5, -0.25})
	m.table = embedding.Weight
	m.network = classifier{reader: reader{m, func(b *layers.Build, inputs G.Nodes) (x *G.Node, err error) {
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
	m := ofRows(t, data.KindClassification, someRows(data.KindClassification)).Model
	table, head := linearModel(t, m)
	constant := 0.75 // difference of the biases, and then also of the average embedding's logits
	for i, x := range table {
		constant += float64(x*(head[i%6]-head[6+i%6])) * 6 / float64(len(table))
	}
	first, second := m.Config.Task.Classes[0], m.Config.Task.Classes[1]
	for _, input := range []string{"a", "a  b a ", " d c b a z"} {
		words, err := m.Explain(input, first, second)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := total(words), logit(t, m, input, first, second)-constant; math.Abs(got-want) > 1e-5 {
			t.Errorf("%q: the words' values add up to %g, want %g, the difference of the logits without the constant", input, got, want)
		}
		half, err := m.Explain(input, first, "")
		if err != nil {
			t.Fatal(err)
		}
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
		inputs = m.network.inputs(g, 1, data.Layout{Len: batch.Len})
		x := G.NewTensor(g, tensor.Float32, 3, G.WithShape(1, batch.Len, dim), G.WithName("embeddings"))
		output, err := m.network.forward(b, append(G.Nodes{x}, inputs[1:]...))
		return append(inputs, x), G.Nodes{output}, err
	})
	if err != nil {
		t.Fatal(err)
	}
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
			out, err := model.Call(append(m.network.values(batch), tensor.New(tensor.WithShape(1, batch.Len, dim), tensor.WithBacking(x)))...)
			if err != nil {
				t.Fatal(err)
			}
			for class, logit := range out[0].Float32s() {
				values[position] += sign * weights[class] * float64(logit) / (2 * step * explainSteps)
			}
		}
	}
	return values
}

// The values of tokens agree with finite differences. Padding has no effect.
func TestExplainAgreesWithFiniteDifferences(t *testing.T) {
	c := forRows(t, data.KindClassification, someRows(data.KindClassification))
	c.Data.SourceUnits, c.Data.Validation, c.Mix = tokenizer.Tokens, 20, false
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads, c.Training.MaxEpochs = 16, 1, 2, 3
	task := fitted(t, c)
	b, _ := task.encode("c a d")
	if b.Len == b.Lengths[0] {
		t.Fatalf("the batch has no padding: %+v", b)
	}
	padded, err := task.attribute(b, []float64{1, -1})
	if err != nil {
		t.Fatal(err)
	}
	b.Len, b.Inputs = b.Lengths[0], b.Inputs[:b.Lengths[0]]
	values, err := task.attribute(b, []float64{1, -1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range differences(t, task.Model, b, []float64{1, -1}) {
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

// If the linear model answers alone, the value of a word is what leaving it out changes.
func TestExplainBaseline(t *testing.T) {
	c := rowsConfig(t, data.KindClassification, someRows(data.KindClassification))
	c.Mix = true
	task := made(t, c)
	if err := task.fitBaseline(t.Context()); err != nil {
		t.Fatal(err)
	}
	task.mixture = mixture{linear: 1}
	const input = "c a d"
	first, second := task.Config.Task.Classes[0], task.Config.Task.Classes[1]
	words, err := task.Explain(input, first, second)
	if err != nil {
		t.Fatal(err)
	}
	whole := logit(t, task.Model, input, first, second)
	for i, rest := range []string{" a d", "c  d", "c a "} {
		want := whole - logit(t, task.Model, rest, first, second)
		if got := words[i].Value; math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) || want == 0 {
			t.Errorf("%q has the value %g, want %g, the difference without it", words[i].Word, got, want)
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

// In a pair, words have their places in the whole input, also if the longer text is cut.
func TestExplainPairs(t *testing.T) {
	c := forRows(t, data.KindClassification, strings.Repeat("a b\tc d\tyes\na c\td b\tno\n", 50))
	c.Data.Columns, c.Data.SourceUnits, c.Task.MaxLen = []string{"1", "2", "3"}, tokenizer.Tokens, 6
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads, c.Training.MaxEpochs = 16, 1, 2, 1
	m := made(t, c).Model
	const input = "a b a a a\tc  d"
	words, err := m.Explain(input, "yes", "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range words {
		got = append(got, w.Word)
		if input[w.Start:w.End] != w.Word {
			t.Errorf("the word %q is at %d to %d, where the input has %q", w.Word, w.Start, w.End, input[w.Start:w.End])
		}
	}
	if want := []string{"a", "b", "a", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("the words are %q, want %q", got, want)
	}
}

func TestExplainErrors(t *testing.T) {
	m := ofRows(t, data.KindClassification, someRows(data.KindClassification)).Model
	for _, c := range []struct{ label, against, want string }{
		{"vowle", "", `no label "vowle"; did you mean vowel?`}, {"", "", `no label ""`}, {"vowel", "x", `no label "x"`},
	} {
		if _, err := m.Explain("a b", c.label, c.against); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("labels %q and %q: got %v, want an error with %q", c.label, c.against, err, c.want)
		}
	}
	if _, err := m.Explain("", "vowel", ""); !errors.As(err, new(*InputError)) {
		t.Errorf("without an input, got %v, want an InputError", err)
	}
	tags := ofRows(t, data.KindTagging, someRows(data.KindTagging)).Model
	if _, err := tags.Explain("a b", "A", ""); err == nil || !strings.Contains(err.Error(), "classify whole inputs") {
		t.Errorf("for tagging, got %v, want an error that says which models Explain is for", err)
	}
}
