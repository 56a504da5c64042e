package layers

import "github.com/heed-go/heed/internal/choices"

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

var precisions = choices.NumbersOf[Precision]("precision", choices.Table[struct{}]{
	{Name: "float32", About: "float32 factors"},
	{Name: "bfloat16", About: "factors of linear layers' products rounded to 8 significant bits; everything else in float32"},
})

// String returns the precision's name, such as bfloat16.
func (p Precision) String() string { return precisions.Name(p) }

func (p Precision) check() error { return precisions.Check(p) }

// MarshalText returns the precision's name, or an error if p is not a defined precision.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), p.check() }

// UnmarshalText sets the precision by name. It returns an error if no precision has that name.
func (p *Precision) UnmarshalText(name []byte) error { return precisions.Set(p, string(name)) }
