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
	head, _ := c.Model.Block.Attention.HeadWidth(max(c.Model.Dim, 1))
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
	case share != "rotary_pct":
		k.fail(unsupported("partial_rotary_factor", rotated, "1"))
	case r.Dim < 2 || r.Dim > head || r.Dim%2 != 0: // a Dim of 0 would mean all
		if p.values["partial_rotary_factor"] != nil {
			share = "partial_rotary_factor"
		}
		k.fail(unsupported(share, rotated, fmt.Sprintf("a share that makes an even number, at least 2, of the %d numbers of a head", head)))
	}
	return r
}

// object returns the first of the named members that is an object with members. If there is none, the result is empty.
func (k *keys) object(names ...string) *keys {
	for _, name := range names {
		k.know(name, true)
	}
	for _, name := range names {
		if value, ok := k.values[name].(map[string]any); ok && len(value) > 0 {
			return &keys{values: value}
		} else if !ok && k.values[name] != nil {
			k.invalid(name, "an object")
		}
	}
	return &keys{values: map[string]any{}, writing: k.writing}
}

// put takes over the error of p. If k is writing, p becomes a member of it.
func (k *keys) put(name string, p *keys) {
	if k.fail(p.err); k.writing {
		k.values[name] = p.values
	}
}

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
