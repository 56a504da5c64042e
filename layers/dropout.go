package layers

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// Dropout sets each element to zero with probability P and multiplies the others by 1/(1−P), in a training graph alone:
// an evaluation graph holds no dropout node (Srivastava et al., 2014). P must be at least 0 and below 1.
type Dropout struct {
	P float64
}

// Forward adds dropout to x, of any shape, float32 or float64.
func (d Dropout) Forward(b *Build, x *G.Node) (*G.Node, error) { return ops.Dropout(b.Env(), x, d.P) }
