package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

// Dropout sets each element to zero with probability P and multiplies the others by 1/(1−P), in a training graph alone:
// an evaluation graph holds no dropout node (Srivastava et al., 2014). P must be at least 0 and below 1.
type Dropout struct {
	P float64
}

// Forward adds dropout to x, of any shape, float32 or float64.
func (d Dropout) Forward(b *Build, x *G.Node) (*G.Node, error) {
	if err := checkRate("dropout", d.P); err != nil {
		return nil, err
	}
	if err := checkFloat("dropout", "the input", x); err != nil {
		return nil, err
	}
	return b.dropout(x, d.P)
}

func checkRate(layer string, p float64) error {
	if !(p >= 0 && p < 1) {
		return fmt.Errorf("%s: the dropout probability must be at least 0 and below 1, got %v", layer, p)
	}
	return nil
}
