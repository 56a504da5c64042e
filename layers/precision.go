package layers

import (
	"fmt"

	"github.com/heed-go/heed/internal/choices"
)

// A Precision says how precise the factors are in the matrix products of a graph's linear layers: projections,
// feed-forward layers, heads and low-rank adapters, forward and for both gradients. It concerns nothing else. The
// weights, the sums of the products, attention's scores, norms, activations, losses and the solver keep their dtype.
type Precision int

const (
	// Float32 leaves the factors as they are: float32 or, if the parameters are float64, float64.
	Float32 Precision = iota

	// BFloat16 rounds the factors to bfloat16, which has the range of a float32 but only 8 significant bits. Products
	// are added up in float32. The parameters must be float32. Processors with matrix units for bfloat16 need less time
	// for these products; on other processors they take longer than float32.
	//
	// The bits of such a product are the same on all processors. Subnormal numbers count as 0.
	BFloat16
)

// precisions are the names in JSON and flags, in the order of the constants.
var precisions = choices.Table[struct{}]{
	{Name: "float32", About: "float32 factors"},
	{Name: "bfloat16", About: "factors of linear layers' products rounded to 8 significant bits; everything else in float32"},
}

var precisionChoice = choices.Choice{
	All: precisions.All(),
	Parse: func(text string) (any, error) {
		var p Precision
		err := p.UnmarshalText([]byte(text))
		return p, err
	},
	Text: func(v any) string { return v.(Precision).String() },
}

// String returns the precision's name, such as bfloat16.
func (p Precision) String() string {
	if p.check() != nil {
		return fmt.Sprintf("precision %d", int(p))
	}
	return precisions[p].Name
}

// check returns an error if p is not a defined precision.
func (p Precision) check() error {
	if p < 0 || int(p) >= len(precisions) {
		return fmt.Errorf("there is no precision %d: use one of %s", int(p), precisions)
	}
	return nil
}

// MarshalText returns the precision's name, or an error if p is not a defined precision.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), p.check() }

// UnmarshalText sets the precision by name. It returns an error if no precision has that name.
func (p *Precision) UnmarshalText(name []byte) error {
	i, err := precisions.Index("precision", string(name))
	if err == nil {
		*p = Precision(i)
	}
	return err
}
