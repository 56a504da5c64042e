package linear

import (
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/internal/safetensors"
)

const (
	format = 2 // of the tensors, the first number of grams

	edgesFlag      = 2 // in the last number of grams; 1 were pairs with other similarities
	neighboursFlag = 4
	pairsFlag      = 8
)

// Tensors returns the model as tensors, for a file. They share the model's memory where they can.
//
//	grams    I64 (6)                  format 2, longest n-gram of words, shortest and longest of characters, flags,
//	                                  width of the text's vector
//	hashes   I64 (features)           hashes of n-grams in ascending order
//	idf      F32 (features)           their inverse document frequencies
//	weights  F32 (features+e, outputs)
//
// The e last rows of weights are for extra features: 8 similarities of pairs, the text's vector, and the intercept.
func (m *Model) Tensors() []safetensors.Tensor {
	flags, g := int64(0), m.grams
	if m.pairs {
		flags |= pairsFlag
	}
	if g.Edges {
		flags |= edgesFlag
	}
	if g.Neighbours {
		flags |= neighboursFlag
	}
	hashes := make([]int64, len(m.hashes))
	for i, h := range m.hashes {
		hashes[i] = int64(h)
	}
	return []safetensors.Tensor{
		{Name: "grams", Shape: []int{6}, Data: []int64{format, int64(g.Words), int64(g.Characters[0]), int64(g.Characters[1]), flags, int64(m.width)}},
		{Name: "hashes", Shape: []int{len(hashes)}, Data: hashes},
		{Name: "idf", Shape: []int{len(hashes)}, Data: m.idf},
		{Name: "weights", Shape: []int{m.Features(), m.outputs}, Data: m.weights},
	}
}

// FromTensors returns the model with the given tensors, as Tensors returns them. It checks them, because files may
// come from strangers; its errors wrap safetensors.ErrFormat. The model uses the memory of the tensors.
func FromTensors(tensors []safetensors.Tensor) (*Model, error) {
	if len(tensors) != 4 {
		return nil, formatError("expected 4 tensors, got %d", len(tensors))
	}
	named := make(map[string]safetensors.Tensor)
	for _, t := range tensors {
		named[t.Name] = t
	}
	numbers, ok := named["grams"].Data.([]int64)
	if !ok || len(numbers) != 6 || numbers[0] != format || numbers[4]&^(pairsFlag|edgesFlag|neighboursFlag) != 0 || numbers[5] < 0 || numbers[5] > widest {
		return nil, formatError("expected grams to have 6 integers, the first %d, the fifth an even number up to 14 and the last 0 to %d, got %.100v", format, widest, named["grams"].Data)
	}
	for _, n := range numbers[:4] {
		if n < 0 || n > longestGram {
			return nil, formatError("expected grams to have integers from 0 to %d, got %d", longestGram, n)
		}
	}
	m := &Model{}
	m.grams = Grams{
		Words: int(numbers[1]), Characters: [2]int{int(numbers[2]), int(numbers[3])},
		Edges: numbers[4]&edgesFlag != 0, Neighbours: numbers[4]&neighboursFlag != 0,
	}
	m.pairs, m.width = numbers[4]&pairsFlag != 0, int(numbers[5])
	if err := m.grams.Check(); err != nil && (m.width == 0 || m.grams != Grams{} || m.pairs) {
		return nil, formatError("%w", err)
	}

	hashes, ok := named["hashes"].Data.([]int64)
	if !ok || len(hashes) > MaxWeights {
		return nil, formatError("expected hashes to have up to %d integers, got %d of type %T", MaxWeights, len(hashes), named["hashes"].Data)
	}
	m.hashes = make([]uint64, len(hashes))
	for i, h := range hashes {
		m.hashes[i] = uint64(h)
		if i > 0 && m.hashes[i] <= m.hashes[i-1] {
			return nil, formatError("expected hashes in ascending order, got %d after %d", uint64(h), m.hashes[i-1])
		}
	}
	if n := len(hashes); n > 0 && m.hashes[n-1]>>groupShift >= groups {
		return nil, formatError("expected hashes of groups 0 to %d, got %d", groups-1, m.hashes[n-1])
	}
	if m.idf, ok = named["idf"].Data.([]float32); !ok || len(m.idf) != len(hashes) {
		return nil, formatError("expected idf to have %d float32, got %d of type %T", len(hashes), len(m.idf), named["idf"].Data)
	}
	weights := named["weights"]
	if m.weights, ok = weights.Data.([]float32); !ok || len(weights.Shape) != 2 || weights.Shape[0] != m.Features() ||
		len(m.weights)%m.Features() != 0 || len(m.weights)/m.Features() != weights.Shape[1] || weights.Shape[1] == 0 {
		return nil, formatError("expected weights of shape (%d, outputs), got %.100v with %d float32", m.Features(), weights.Shape, len(m.weights))
	}
	m.outputs = weights.Shape[1]
	for _, values := range [][]float32{m.idf, m.weights} {
		if i := slices.IndexFunc(values, func(x float32) bool { return !(math.Abs(float64(x)) <= Largest) }); i >= 0 {
			return nil, formatError("expected finite numbers up to %g, got %g", float64(Largest), values[i])
		}
	}
	if i := slices.IndexFunc(m.idf, func(x float32) bool { return x <= 0 }); i >= 0 {
		return nil, formatError("expected idf above 0, got %g", m.idf[i])
	}
	m.makeTable()
	return m, nil
}

func formatError(message string, args ...any) error {
	return fmt.Errorf("linear: %w: "+message, append([]any{safetensors.ErrFormat}, args...)...)
}
