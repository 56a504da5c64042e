package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Dropout sets each element to zero with probability P and multiplies the others by 1/(1−P) (Srivastava et al., 2014).
// It acts only in training graphs; evaluation graphs have no dropout nodes. P must be at least 0 and below 1.
type Dropout struct {
	P float64
}

// Forward applies dropout to x, which is float32 or float64 and may have any shape.
func (d Dropout) Forward(b *Build, x *G.Node) (*G.Node, error) { return ops.Dropout(b.Env(), x, d.P) }
