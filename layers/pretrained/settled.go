package pretrained

import (
	"cmp"
	"math"
	"slices"

	"github.com/heed-go/heed/layers"
)

// settled returns a model's configuration with the values that zeros stand for, in one form of several that mean the
// same.
func settled(m layers.ModelConfig, head string) layers.ModelConfig {
	a, f, n := &m.Block.Attention, &m.Block.FeedForward, &m.Block.Norm
	a.Heads = max(a.Heads, 1)
	a.KeyValueHeads = cmp.Or(a.KeyValueHeads, a.Heads)
	a.HeadDim, _ = a.HeadWidth(m.Dim)
	a.ValueDim = cmp.Or(a.ValueDim, a.HeadDim)
	products, width := 1, a.HeadDim // of a score, and of a head
	if d := distancesOf(m); d != nil {
		for _, left := range []bool{d.NoKeys, d.NoQueries} {
			if !left {
				products++
			}
		}
	}
	if a.Latent != nil {
		width += a.Latent.RotaryDim
	}
	a.Scale = cmp.Or(a.Scale, 1/math.Sqrt(float64(products*width)))
	if a.QKNorm || a.Latent != nil {
		a.NormEps = cmp.Or(a.NormEps, 1e-6)
	}
	if a.OutputBias == nil {
		bias := !a.NoBias
		a.OutputBias = &bias
	}
	settleFeedForward(f, m.Dim)
	if n.Kind == "rms" {
		n.NoBias, n.Eps = false, cmp.Or(n.Eps, 1e-6)
	} else {
		n.Kind, n.Eps = "layer", cmp.Or(n.Eps, 1e-5)
	}
	m.FinalNorm = m.FinalNorm || !m.Block.PostNorm
	m.Shared = cmp.Or(m.Shared, m.Layers)
	if m.EmbeddingScale == 0 {
		m.EmbeddingScale = 1
		if m.Tied {
			m.EmbeddingScale = math.Sqrt(float64(m.EmbeddingWidth()))
		}
	}
	if m.Tied || (head == "text" || head == "sequence") && m.Outputs == 0 {
		m.Outputs = m.Vocab
	}
	m.NoBias = m.NoBias || m.Tied || m.Outputs == 0
	m.Block.ResidualScale = cmp.Or(m.Block.ResidualScale, 1)
	if m.Outputs > 0 {
		m.HeadScale = cmp.Or(m.HeadScale, 1)
	}
	rotated, _ := a.PositionWidth(m.Dim)
	m.Positions = settledPositions(m.Positions, rotated)
	m.Variants = slices.Clone(m.Variants)
	for i, v := range m.Variants {
		m.Variants[i].Positions = settledPositions(v.Positions, rotated)
		if v.FeedForward != nil {
			own := *v.FeedForward
			own.Dropout = 0
			settleFeedForward(&own, m.Dim)
			m.Variants[i].FeedForward = &own
		}
	}
	m.Init, m.EmbeddingInit, a.Init, a.OutputInit = layers.Init{}, layers.Init{}, layers.Init{}, layers.Init{}
	return m
}

func settleFeedForward(f *layers.FeedForwardConfig, dim int) {
	f.Hidden = cmp.Or(f.Hidden, 4*dim)
	if f.Experts != nil {
		x := *f.Experts
		x.Top, x.Scale = cmp.Or(x.Top, min(2, x.Count)), cmp.Or(x.Scale, 1)
		if x.Groups == 1 {
			x.Groups, x.TopGroups = 0, 0
		}
		f.Experts = &x
	}
	f.Init, f.OutputInit = layers.Init{}, layers.Init{}
}

func settledPositions(p layers.PositionsConfig, head int) layers.PositionsConfig {
	switch p := p.(type) {
	case layers.Learned:
		p.Init = layers.Init{}
		return p
	case layers.RelativeBias:
		return layers.RelativeBias{Buckets: cmp.Or(p.Buckets, 32), MaxDistance: cmp.Or(p.MaxDistance, 128), PerBlock: p.PerBlock}
	case layers.Disentangled:
		p.MaxDistance, p.Init, p.Dropout = cmp.Or(p.MaxDistance, 128), layers.Init{}, 0
		if p.Norm != nil {
			p.Norm = &layers.NormConfig{Kind: cmp.Or(p.Norm.Kind, "layer"), Eps: cmp.Or(p.Norm.Eps, 1e-5), NoBias: p.Norm.NoBias}
		}
		return p
	case layers.PositionsList:
		p.Schemes = slices.Clone(p.Schemes)
		for i, scheme := range p.Schemes {
			p.Schemes[i] = settledPositions(scheme, head)
		}
		return p
	case layers.Rotary:
		p.Base, p.Dim = cmp.Or(p.Base, 10000), cmp.Or(p.Dim, head)
		if s := &p.Scaling; s.Kind == "yarn" || s.Kind == "llama3" {
			s.Low = cmp.Or(s.Low, 1)
			s.High = cmp.Or(s.High, map[string]float64{"yarn": 32, "llama3": 4}[s.Kind])
			if s.Kind == "yarn" {
				s.Magnitude = cmp.Or(s.Magnitude, 0.1*math.Log(s.Factor)+1)
			}
		}
		return p
	}
	return p
}
