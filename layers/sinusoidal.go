package layers

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Sinusoidal adds fixed waves to the embeddings (Vaswani et al., 2017, section 3.5): at position t, each even element i
// gets sin(t/Base^(i/D)), and element i+1 gets the cosine of the same angle. It has no parameters and no limit on the
// length. Sinusoidal is its own configuration: New validates and returns it.
type Sinusoidal struct {
	NoPositions

	Base float64 `json:"base,omitzero"` // 10,000 if 0

	// Halves puts the sines of all even i in front of all cosines, as in Marian. Otherwise they alternate.
	Halves bool `json:"halves,omitzero"`
}

// New returns s, or an error if Base is neither 0 nor from 1e-15 to 1e15.
func (s Sinusoidal) New(*Params, int, AttentionConfig) (Positions, error) { return s, s.check() }

const sinusoidalName = "sinusoidal positions"

func (s Sinusoidal) check() error {
	if s.Base != 0 && !(s.Base >= 1/ops.Largest && s.Base <= ops.Largest) {
		return fmt.Errorf("%s: Base must be from %v to %v, or 0 for 10,000, got %v", sinusoidalName, 1/ops.Largest, ops.Largest, s.Base)
	}
	return nil
}

// Embed adds the waves to x, of shape (T, D) or (B, T, D), float32 or float64.
func (s Sinusoidal) Embed(b *Build, x, positions *G.Node) (*G.Node, error) {
	if err := ops.CheckFloat(sinusoidalName, "the input", x); err != nil {
		return nil, err
	}
	if d := x.Dims(); d != 2 && d != 3 {
		return nil, fmt.Errorf("%s: the input must have shape (T, D) or (B, T, D), got %v", sinusoidalName, x.Shape())
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if positions != nil {
		var err error
		if positions, err = positionIDs(b, sinusoidalName, x, positions, 0); err != nil {
			return nil, err
		}
	}
	return ops.AddWaves(b.Env(), x, positions, cmp.Or(s.Base, 10000), s.Halves)
}
