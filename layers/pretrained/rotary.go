package pretrained

import (
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

// rotation copies rotary positions with the parameters p.
func (k *keys) rotation(c *Config, positions layers.PositionsConfig, p *keys, theta, share string) layers.PositionsConfig {
	r, _ := positions.(layers.Rotary)
	head, _ := c.Model.Block.Attention.HeadWidth(max(c.Model.Dim, 1))
	rotated := 1.0
	if k.writing {
		rotated = float64(r.Dim) / float64(head)
	}
	k.float(theta, &r.Base)
	k.float(share, &rotated)
	p.float("rope_theta", &r.Base)
	p.float("partial_rotary_factor", &rotated)
	p.scaling(&r.Scaling, c.MaxLen)
	if r.Dim = int(float64(head) * rotated); r.Dim != head && share != "rotary_pct" {
		k.fail(unsupported("partial_rotary_factor", rotated, "1"))
	}
	return r
}

// object returns the first of the named members that is an object with members. If there is none, the result is empty.
func (k *keys) object(names ...string) *keys {
	for _, name := range names {
		switch value := k.values[name].(type) {
		case nil:
		case map[string]any:
			if len(value) > 0 {
				return &keys{values: value}
			}
		default:
			k.invalid(name, "an object")
		}
	}
	return &keys{values: map[string]any{}, writing: k.writing}
}

// put takes over the error of p. If k is writing, p becomes a member of it.
func (k *keys) put(name string, p *keys) {
	k.fail(p.err)
	if k.writing {
		k.values[name] = p.values
	}
}

// scaling copies the parameters of a rotary embedding, except its base and the share that is rotated.
func (k *keys) scaling(s *layers.RotaryScaling, maxLen int) {
	if s.Kind == "" {
		s.Kind = "default"
	}
	k.text("type", &s.Kind)
	k.text("rope_type", &s.Kind)
	switch s.Kind {
	case "default", "dynamic": // "dynamic" slows only sequences that are longer than max_position_embeddings
		s.Kind = ""
		return
	case "linear":
		k.float("factor", &s.Factor)
		return
	case "llama3":
		k.float("low_freq_factor", &s.Low)
		k.float("high_freq_factor", &s.High)
	case "yarn":
		k.float("beta_slow", &s.Low)
		k.float("beta_fast", &s.High)
		k.not("truncate", &s.Unrounded)
	default:
		k.fail(unsupported("rope_type", s.Kind, "default, linear, dynamic, llama3 or yarn"))
	}
	if s.OriginalLen == 0 {
		s.OriginalLen = maxLen
	}
	k.int("original_max_position_embeddings", &s.OriginalLen)
	if s.Factor == 0 {
		s.Factor = float64(maxLen) / float64(max(s.OriginalLen, 1))
	}
	k.float("factor", &s.Factor)
	if s.Kind == "yarn" {
		k.magnitude(s)
	}
}

// magnitude copies the factor of "yarn" for rotated vectors.
func (k *keys) magnitude(s *layers.RotaryScaling) {
	if !k.writing {
		var one, other float64
		k.float("mscale", &one)
		k.float("mscale_all_dim", &other)
		if one != 0 && other != 0 {
			s.Magnitude = (0.1*one*math.Log(s.Factor) + 1) / (0.1*other*math.Log(s.Factor) + 1)
		}
	}
	k.optional("attention_factor", &s.Magnitude)
}
