// Package heatmap shows attention weights: as a picture (PNG, SVG), as a page (HTML) and as lines for a terminal. A
// cell is a weight, a row of cells is a query, a column is a key, and every row and every column has its label.
package heatmap

import "fmt"

// A Figure is the attention weights of some layers.
type Figure struct {
	Title  string // what all of it is of; may be empty
	Key    string // what the labels stand for that don't speak for themselves; may be empty
	Layers []Layer
}

// A Layer is the attention weights of one layer, a map for each head. Its maps have their labels in common.
type Layer struct {
	Heading string   // may be empty
	Rows    []string // a label for each query, from the top
	Columns []string // a label for each key, from the left
	Heads   []Head
}

// A Head is a map: the weights of one head.
type Head struct {
	Title   string
	Weights []float32 // (queries, keys), row-major
}

// check checks that there is something to show, and that the weights fit their labels.
func (f Figure) check() error {
	if len(f.Layers) == 0 {
		return fmt.Errorf("heat maps: there must be at least one layer to show, got none")
	}
	for _, l := range f.Layers {
		rows, columns := len(l.Rows), len(l.Columns)
		if rows == 0 || columns == 0 || len(l.Heads) == 0 {
			return fmt.Errorf("heat maps: a layer must have labels of rows and columns and at least one head, got %d, %d and %d", rows, columns, len(l.Heads))
		}
		for _, h := range l.Heads {
			if len(h.Weights) != rows*columns {
				return fmt.Errorf("heat maps: weights must have shape (rows, columns) = (%d, %d), got %d weights for %s %s", rows, columns, len(h.Weights), l.Heading, h.Title)
			}
		}
	}
	return nil
}
