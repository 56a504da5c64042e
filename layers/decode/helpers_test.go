package decode_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// generate and beam call Generate and Beam, and end the test if there is an error.
func generate(t testing.TB, m decode.Model, prompts [][]int, o decode.Options) []decode.Result {
	t.Helper()
	return must.Get(decode.Generate(t.Context(), m, prompts, o))(t)
}

func beam(t testing.TB, m decode.Model, prompts [][]int, o decode.BeamOptions) [][]decode.Hypothesis {
	t.Helper()
	return must.Get(decode.Beam(t.Context(), m, prompts, o))(t)
}

const sessionVocab, sessionCapacity = 7, 14

// sessionConfigs returns decoders with every position scheme in the table, and with other options.
func sessionConfigs() map[string]layers.ModelConfig {
	base := layers.ModelConfig{Vocab: sessionVocab, Dim: 8, Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 4}, FeedForward: layers.FeedForwardConfig{Hidden: 12}}, Layers: 2}
	configs := map[string]layers.ModelConfig{}
	table := layers.Choices()["positions"]
	for name := range table.All {
		scheme, err := table.Parse(fmt.Sprintf("%s,max_len=%d", name, sessionCapacity))
		if err != nil { // the scheme has no limit
			scheme, _ = table.Parse(name)
		}
		base.Positions, _ = scheme.(layers.PositionsConfig)
		configs[name] = base
	}
	tied, grouped := configs["alibi"], configs["rotary"]
	tied.Tied, tied.Block.Attention.KeyValueHeads = true, 1
	grouped.Block.Attention.KeyValueHeads = 2
	configs["tied"], configs["grouped heads"] = tied, grouped
	return configs
}

func newDecoder(t testing.TB, dt tensor.Dtype, c layers.ModelConfig) *layers.Decoder {
	t.Helper()
	return must.Get(layers.NewDecoder(must.Get(layers.NewParams(dt, 5))(t), c))(t)
}

func newSession(t testing.TB, d *layers.Decoder, c decode.Config) *decode.Session {
	t.Helper()
	s := must.Get(decode.New(d, c))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// ids returns an input node of shape (1, T) that uses the memory of tokens.
func ids(g *G.ExprGraph, name string, tokens []int) *G.Node {
	v := tensor.New(tensor.WithShape(1, len(tokens)), tensor.WithBacking(tokens))
	return G.NewTensor(g, tensor.Int, 2, G.WithShape(v.Shape()...), G.WithName(name), G.WithValue(v))
}

// whole returns a function that applies a model to a whole sequence and returns the logits of the next token. The model
// maps tokens (1, T) to logits (1, T, V). The input has tokens of earlier calls after the sequence; the model is
// causal, so these tokens don't matter. A sequence has at most capacity tokens.
func whole(t testing.TB, capacity int, model func(tokens *G.Node) (*G.Node, error)) func(sequence []int) []float64 {
	tokens := make([]int, capacity)
	var value G.Value
	var vm G.VM
	return func(sequence []int) []float64 {
		t.Helper()
		if vm == nil {
			logits := must.Get(model(ids(G.NewGraph(), "tokens", tokens)))(t)
			G.Read(logits, &value)
			vm = G.NewTapeMachine(logits.Graph())
			t.Cleanup(func() { vm.Close() })
		}
		copy(tokens, sequence)
		must.Do(t, vm.RunAll())
		defer vm.Reset()
		var last []float64
		end := len(sequence) * sessionVocab
		switch x := value.Data().(type) {
		case []float64:
			last = slices.Clone(x[end-sessionVocab : end])
		case []float32:
			for _, x := range x[end-sessionVocab : end] {
				last = append(last, float64(x))
			}
		}
		return last
	}
}

// wholeDecoder runs a decoder without a cache.
func wholeDecoder(t testing.TB, d *layers.Decoder, mask layers.Mask) func(sequence []int) []float64 {
	return whole(t, sessionCapacity, func(tokens *G.Node) (*G.Node, error) { return d.Forward(&layers.Build{Composed: true}, tokens, mask) })
}

// cacheless returns a Model without a cache. It computes its logits with whole(sequence).
func cacheless(batch int, whole func(sequence []int) []float64) *fake {
	m := newFake(batch, sessionVocab)
	m.capacity, m.logits = sessionCapacity, whole
	return m
}

func tolerance(dt tensor.Dtype) float64 {
	if dt == tensor.Float32 {
		return 1e-5
	}
	return 1e-10
}

// wantLogits compares logits and their likeliest tokens.
func wantLogits(t *testing.T, what string, got, want [][]float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d rows, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if len(got[i]) != len(w) {
			t.Fatalf("%s: sequence %d has %d logits, want %d", what, i, len(got[i]), len(w))
		}
		for j, x := range w {
			if !(math.Abs(got[i][j]-x) <= tol*max(1, math.Abs(x))) {
				t.Fatalf("%s: sequence %d: got %v, want %v", what, i, got[i], w)
			}
		}
		if len(w) > 0 && slices.Index(got[i], slices.Max(got[i])) != slices.Index(w, slices.Max(w)) {
			t.Fatalf("%s: sequence %d: the likeliest tokens differ: got %v, want %v", what, i, got[i], w)
		}
	}
}

var bothDtypes = []tensor.Dtype{tensor.Float32, tensor.Float64}

// usual returns its argument, or with -short only the last element.
func usual[T any](list []T) []T {
	if testing.Short() {
		return list[len(list)-1:]
	}
	return list
}

// eachDecoder runs a test for every configuration and dtype.
func eachDecoder(t *testing.T, dtypes []tensor.Dtype, test func(t *testing.T, d *layers.Decoder, mask layers.Mask, tol float64)) {
	for name, config := range sessionConfigs() {
		for _, dt := range usual(dtypes) {
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				mask := layers.Mask{}
				if name == "grouped heads" || name == "learned" && dt == tensor.Float64 {
					mask.Window = &layers.Window{Left: 2, Right: -1}
				}
				test(t, newDecoder(t, dt, config), mask, tolerance(dt))
			})
		}
	}
}
