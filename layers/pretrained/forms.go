package pretrained

import (
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
)

// forms returns configurations of models for text that can compute the same as a model of c, up to rounding. The first
// is c itself. The others have fewer settings that published architectures lack:
//
//   - The embedding table holds the factor of the embeddings, and the head has a table of its own.
//   - The head has no bias. The output of a LayerNorm before its scale and shift, x, has the mean 0, so a matrix with
//     equal numbers in a row maps it to 0. Therefore W·(γ∘x+β) + b = V·(x+1), where each row of V has the mean 0 plus
//     the row's constant divided by D.
//   - Layers without biases have biases of 0.
func forms(c Config) []Config {
	list := []Config{c}
	if c.Head != "text" {
		return list
	}
	m := settled(c.Model, c.Head)
	if m.EmbeddingScale != 1 || m.TiedBias {
		m.NoBias = m.NoBias && !m.TiedBias
		m.Tied, m.TiedBias, m.EmbeddingScale = false, false, 1
	}
	norm := &m.Block.Norm
	layerNorm := norm.Kind == "layer"
	if !m.NoBias && layerNorm && m.FinalNorm && m.Transform == nil {
		m.NoBias, norm.NoBias = true, false
	}
	c.Model = m
	list = append(list, c)
	if layerNorm {
		yes := true
		m.Block.Attention.NoBias, m.Block.Attention.OutputBias, m.Block.FeedForward.NoBias, norm.NoBias = false, &yes, false, false
		c.Model = m
		list = append(list, c)
	}
	return list
}

// inForm returns parameters for the form to with which a model for text computes the same as the model from with p.
func inForm(p *layers.Params, from, to layers.ModelConfig) (*layers.Params, error) {
	q, err := layers.NewParams(p.Dtype(), 0)
	if err == nil {
		_, err = layers.NewDecoder(q.Blank(), to)
	}
	if err != nil {
		return nil, err
	}
	ops.ByDtype(p, convert[float32], convert[float64])(q, p, settled(from, "text"), to)
	return q, nil
}

// convert sets the parameters q, which are 0, as forms says.
func convert[T float32 | float64](q, p *layers.Params, from, to layers.ModelConfig) {
	data := func(p *layers.Params, name string) []T {
		if x := p.Get(name); x != nil {
			return x.Value.Data().([]T)
		}
		return nil
	}
	for _, x := range q.All() {
		copy(x.Value.Data().([]T), data(p, x.Name))
	}
	table, head, dim := data(q, "embedding.weight"), data(q, "head.weight"), to.Dim
	if from.Tied {
		copy(head, table)
	}
	if factor := T(from.EmbeddingScale); to.EmbeddingScale != from.EmbeddingScale {
		for i := range table {
			table[i] *= factor
		}
	}
	bias := data(p, "head.bias")
	if bias == nil || !to.NoBias {
		return
	}
	scale, shift := data(q, "norm.weight"), data(q, "norm.bias")
	for i, b := range bias {
		row, constant, mean := head[i*dim:][:dim], float64(b), 0.0
		for j, w := range row {
			constant += float64(w) * float64(shift[j])
			mean += float64(w) * float64(scale[j]) / float64(dim)
		}
		for j, w := range row {
			row[j] = T(float64(w)*float64(scale[j]) - mean + constant/float64(dim))
		}
	}
	for j := range scale {
		scale[j], shift[j] = 1, 1
	}
}
