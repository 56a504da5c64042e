package layers

import (
	"encoding/json"
	"fmt"
	"strconv"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
)

// PositionsList combines several position schemes: each hook of each scheme applies, in the list's order. MPNet, for
// example, has a Learned vector for each position and a RelativeBias (Song et al., 2020). An empty list adds no
// position information. In JSON, a list can't hold another list.
type PositionsList struct {
	Schemes []PositionsConfig `json:"schemes,omitzero"`
}

// New makes the schemes in the scopes 0, 1, ….
func (c PositionsList) New(p *Params, dim int, a AttentionConfig) (Positions, error) {
	list := make(positionsList, len(c.Schemes))
	for i, scheme := range c.Schemes {
		p := p.Scope(strconv.Itoa(i))
		if scheme == nil {
			return nil, fmt.Errorf("%s: the scheme must not be nil: use NoPositions for none", p.scopeName("positions"))
		}
		var err error
		if list[i], err = scheme.New(p, dim, a); err != nil {
			return nil, err
		}
		if list[i] == nil {
			return nil, fmt.Errorf("%s: New of the scheme, a %T, returned nil: return NoPositions{} for none", p.scopeName("positions"), scheme)
		}
	}
	return list, nil
}

// schemeJSON is a scheme of a list that can be written to JSON and read back.
type schemeJSON struct{ PositionsConfig }

func (s schemeJSON) MarshalJSON() ([]byte, error) { return singleSchemes.Marshal(s.PositionsConfig) }

func (s *schemeJSON) UnmarshalJSON(data []byte) (err error) {
	s.PositionsConfig, err = singleSchemes.Unmarshal(data)
	return err
}

// listJSON is a PositionsList in JSON.
type listJSON struct {
	Schemes []schemeJSON `json:"schemes,omitzero"`
}

// MarshalJSON returns the list as JSON. It returns an error if a scheme isn't one of this package's, or is a list.
func (c PositionsList) MarshalJSON() ([]byte, error) {
	var list listJSON
	for _, scheme := range c.Schemes {
		list.Schemes = append(list.Schemes, schemeJSON{scheme})
	}
	return json.Marshal(list)
}

// UnmarshalJSON replaces the list with the one in data. It returns an error if a scheme or a field is unknown, or if a
// scheme is a list.
func (c *PositionsList) UnmarshalJSON(data []byte) error {
	var list listJSON
	if err := choices.Decode(data, &list); err != nil {
		return err
	}
	*c = PositionsList{}
	for _, scheme := range list.Schemes {
		c.Schemes = append(c.Schemes, scheme.PositionsConfig)
	}
	return nil
}

type positionsList []Positions

// Embed calls the Embed of every scheme.
func (l positionsList) Embed(b *Build, x, positions *G.Node) (*G.Node, error) {
	for _, scheme := range l {
		var err error
		if x, err = scheme.Embed(b, x, positions); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Rotate calls the Rotate of every scheme.
func (l positionsList) Rotate(b *Build, x *G.Node, heads int, positions *G.Node) (*G.Node, error) {
	for _, scheme := range l {
		var err error
		if x, err = scheme.Rotate(b, x, heads, positions); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Score calls the Score of every scheme.
func (l positionsList) Score(b *Build, q, k, positions *G.Node, m Mask) (Mask, error) {
	for _, scheme := range l {
		var err error
		if m, err = scheme.Score(b, q, k, positions, m); err != nil {
			return m, err
		}
	}
	return m, nil
}

// MaxLen returns the smallest limit of the schemes.
func (l positionsList) MaxLen() (limit int) {
	for _, scheme := range l {
		if n := scheme.MaxLen(); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
