package notebook

import (
	"math"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
)

// Attend computes scaled dot-product attention and returns its stages: Q, K, V, the scores, their variances, the
// weights as "Attention", and the output as "New V". With a causal mask, the stages also have the mask, where 1 is
// visible and 0 hidden, the matrix M that has the same effect, and the scores plus M.
func Attend(queries, keys, values *tensor.Dense, o layers.AttentionOptions) (*Stages, error) {
	g := G.NewGraph()
	q := Input(g, "Q", queries) // (L, dK)
	k := Input(g, "K", keys)    // (S, dK)
	v := Input(g, "V", values)  // (S, dV)
	attention, err := layers.ScaledDotProductStages(&layers.Build{}, q, k, v, o)
	if err != nil {
		return nil, err
	}
	product := G.Must(G.Mul(q, G.Must(G.Transpose(k)))) // (L, dK) x (S, dK)ᵀ -> (L, S)

	var s Stages
	s.Add("Q", q)
	s.Add("K", k)
	s.Add("V", v)
	s.Add("Q·Kᵀ", product)
	s.Add("var(Q)", Variance(q))
	s.Add("var(K)", Variance(k))
	s.Add("var(Q·Kᵀ)", Variance(product))
	s.Add("var(Q·Kᵀ/√d_k)", Variance(attention.Scores))
	s.Add("Q·Kᵀ/√d_k", attention.Scores) // (L, S)
	if o.Mask.Causal {
		n := queries.Shape()[0]
		s.Add("mask", Input(g, "mask", Causal(n, 1, 0)))
		s.Add("M", Input(g, "M", Causal(n, 0, math.Inf(-1))))
		s.Add("Q·Kᵀ/√d_k + M", attention.Masked)
	}
	s.Add("Attention", attention.Weights) // (L, S)
	s.Add("New V", attention.Output)      // (L, S) x (S, dV) -> (L, dV)
	return &s, s.Run()
}

// AttendScores computes attention weights from scores, (L, S), times scale. It uses the scores as queries, and I as
// keys and values.
func AttendScores(scores *tensor.Dense, scale float64) (*Stages, error) {
	eye := Eye(scores.Shape()[1])
	return Attend(scores, eye, eye, layers.AttentionOptions{Scale: scale})
}

// AddProjections adds the queries, keys and values of self-attention over x as the stages Q, K and V.
func (s *Stages) AddProjections(b *layers.Build, a *layers.MultiHeadAttention, x *G.Node) {
	for i, l := range []*layers.Linear{a.Query, a.Key, a.Value} {
		s.Add(string("QKV"[i]), G.Must(l.Forward(b, x))) // (n, D) x (H·K, D)ᵀ -> (n, H·K)
	}
}
