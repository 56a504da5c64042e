package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/ops"
)

// A Pooling says how Pool makes one vector of a sequence.
type Pooling int

const (
	MeanPooling  Pooling = Pooling(ops.MeanPooling)  // the mean of all valid positions
	FirstPooling Pooling = Pooling(ops.FirstPooling) // the first position, which may be a special token (Devlin et al., 2018)
	LastPooling  Pooling = Pooling(ops.LastPooling)  // the last valid position
)

var poolings = choices.NumbersOf[Pooling]("pooling", ops.Poolings)

// String returns the pooling's name: mean, first or last.
func (p Pooling) String() string { return poolings.Name(p) }

func (p Pooling) check() error { return poolings.Check(p) }

// MarshalText returns the pooling's name, or an error if p is not a defined pooling.
func (p Pooling) MarshalText() ([]byte, error) { return []byte(p.String()), p.check() }

// UnmarshalText sets the pooling by name. It returns an error if no pooling has that name.
func (p *Pooling) UnmarshalText(name []byte) error { return poolings.Set(p, string(name)) }

// Pool makes one vector of each sequence: (B, T, D) -> (B, D). Without a batch axis, (T, D) gives (1, D). The node
// lengths, of shape (B) and dtype tensor.Int, holds the number of valid positions of each sequence, from 0 to T; nil
// means T. Positions after these may hold any values, and their gradient is zero. A sequence of length 0 gives zeros.
func Pool(b *Build, x, lengths *G.Node, p Pooling) (*G.Node, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return ops.Pool(b.Env(), x, lengths, ops.Pooling(p))
}

// Normalize divides each vector of the last axis of x, of shape (…, D), by its Euclidean length. The dot product of two
// results is then the cosine of their angle. A vector of zeros stays zero, with a gradient of zero.
func Normalize(b *Build, x *G.Node) (*G.Node, error) { return ops.Normalize(b.Env(), x) }
