package layers

import (
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// checkInput checks that a layer's input has the parameters' dtype and that its last axis has the given width.
func checkInput(layer, what string, n *G.Node, dtype tensor.Dtype, width int) error {
	if dt := n.Dtype(); dt != dtype {
		return fmt.Errorf("%s: %s must be %v, like the parameters, got %v", layer, what, dtype, dt)
	}
	if s := n.Shape(); len(s) < 1 || s[len(s)-1] != width {
		return fmt.Errorf("%s: %s must have shape (…, %d), got %v", layer, what, width, s)
	}
	return nil
}

// checkSequence is like checkInput, but the input must have shape (T, width) or (B, T, width).
func checkSequence(layer, what string, n *G.Node, dtype tensor.Dtype, width int) error {
	if err := checkInput(layer, what, n, dtype, width); err != nil {
		return err
	}
	if d := n.Dims(); d != 2 && d != 3 {
		return fmt.Errorf("%s: %s must have shape (T, %d) or (B, T, %d), got %v", layer, what, width, width, n.Shape())
	}
	return nil
}

// positive returns an error if a size is below 1.
func positive(layer string, sizes ...size) error {
	for _, s := range sizes {
		if s.value < 1 {
			return fmt.Errorf("%s: %s must be at least 1, got %d", layer, s.name, s.value)
		}
	}
	return nil
}

type size struct {
	name  string
	value int
}
