package pretrained

import (
	"fmt"
	"math"

	"github.com/heed-go/heed/layers"
)

// rotary copies rotary positions. Dim, Heads, HeadDim and MaxLen must be known. The arguments theta and share are the
// keys of the base and of the share of a head that is rotated. Values among the parameters come before those of these
// keys.
func (k *keys) rotary(c *Config, theta, share string) {
	p := k.object("rope_scaling", "rope_parameters")
	c.Model.Positions = k.rotation(c, c.Model.Positions, p, theta, share)
	k.put("rope_scaling", p)
}

// rotation copies rotary positions with the parameters p. Other positions, and none, aren't written.
func (k *keys) rotation(c *Config, positions layers.PositionsConfig, p *keys, theta, share string) layers.PositionsConfig {
	r, ok := positions.(layers.Rotary)
	if k.writing && !ok {
		return positions
	}
	head, _ := c.Model.Block.Attention.PositionWidth(max(c.Model.Dim, 1))
	rotated := 1.0
	if k.writing {
		rotated = float64(r.Dim) / float64(head)
	}
	k.copy(theta, &r.Base, share, &rotated)
	p.copy("rope_theta", &r.Base, "partial_rotary_factor", &rotated)
	p.scaling(&r.Scaling, c.MaxLen)
	p.refuse("rope_parameters")
	switch r.Dim = int(float64(head) * rotated); {
	case r.Dim == head:
	case share != "rotary_pct" && !rotatesPart[c.Type]:
		k.fail(unsupported("partial_rotary_factor", rotated, "1"))
	case r.Dim < 2 || r.Dim > head || r.Dim%2 != 0: // a Dim of 0 would mean all
		if p.values["partial_rotary_factor"] != nil {
			share = "partial_rotary_factor"
		}
		k.fail(unsupported(share, rotated, fmt.Sprintf("a share that makes an even number, at least 2, of the %d numbers of a head", head)))
	}
	return r
}

// rotatesPart has the architectures, besides those with a key of their own, whose heads may be rotated in part.
var rotatesPart = map[string]bool{"phi3": true, "glm4": true, "stablelm": true}

// scaling copies the parameters of a rotary embedding, except its base and the share that is rotated.
func (k *keys) scaling(s *layers.RotaryScaling, maxLen int) {
	if s.Kind == "" {
		s.Kind = "default"
	}
	k.copy("type", &s.Kind, "rope_type", &s.Kind)
	if !k.writing {
		s.OriginalLen = maxLen
	}
	original := func() {
		k.copy("original_max_position_embeddings", &s.OriginalLen)
		if !k.writing {
			s.Factor = float64(maxLen) / float64(max(s.OriginalLen, 1))
		}
		k.copy("factor", &s.Factor)
	}
	switch s.Kind {
	case "default", "dynamic": // "dynamic" slows only sequences that are longer than max_position_embeddings
		*s = layers.RotaryScaling{}
	case "linear":
		s.OriginalLen = 0
		k.copy("factor", &s.Factor)
	case "llama3":
		original()
		k.copy("low_freq_factor", &s.Low, "high_freq_factor", &s.High)
	case "yarn":
		original()
		k.copy("beta_slow", &s.Low, "beta_fast", &s.High, "truncate", (*not)(&s.Unrounded))
		one, other := 0.0, 0.0
		if !k.writing {
			k.copy("mscale", &one, "mscale_all_dim", &other)
		}
		if one != 0 && other != 0 {
			s.Magnitude = (0.1*one*math.Log(s.Factor) + 1) / (0.1*other*math.Log(s.Factor) + 1)
		}
		k.copy("attention_factor", (*none)(&s.Magnitude))
	default:
		k.fail(unsupported("rope_type", s.Kind, "default, linear, dynamic, llama3 or yarn"))
	}
}

// learned copies the length of a table of learned positions. The key counts the rows that no token has, too; there are
// skipped of them.
func (k *keys) learned(name string, c *Config, skipped int) {
	rows := skipped + learnedLen(c.Model)
	k.copy(name, &rows)
	c.MaxLen = max(0, rows-skipped)
	c.Model.Positions = layers.Learned{MaxLen: c.MaxLen}
}

// learnedLen returns the length of a model's table of learned positions, or 0. In a list, the table comes first.
func learnedLen(m layers.ModelConfig) int {
	p := m.Positions
	if list, ok := p.(layers.PositionsList); ok && len(list.Schemes) > 0 {
		p = list.Schemes[0]
	}
	table, _ := p.(layers.Learned)
	return table.MaxLen
}
