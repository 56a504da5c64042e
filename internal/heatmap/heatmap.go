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

// A Layer is the attention weights of one layer, a map for each head. Its maps have their labels in common. Package
// task's AttentionLayer converts to it.
type Layer struct {
	Name    string
	Meaning string      // what the rows and the columns are; may be empty
	Rows    []string    // a label for each query, from the top
	Columns []string    // a label for each key, from the left
	Heads   [][]float32 // of each head: (rows, columns), row-major
}

// Heading returns the layer's name and what its maps mean.
func (l Layer) Heading() string {
	if l.Meaning == "" {
		return l.Name
	}
	return l.Name + ": " + l.Meaning
}

// A head is the map of one head, with its title.
type head struct {
	Title   string
	Weights []float32
}

// Titled returns the layer's maps with their titles.
func (l Layer) Titled() []head {
	heads := make([]head, len(l.Heads))
	for i, weights := range l.Heads {
		heads[i] = head{fmt.Sprintf("head %d", i), weights}
	}
	return heads
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
		for i, weights := range l.Heads {
			if len(weights) != rows*columns {
				return fmt.Errorf("heat maps: weights must have shape (rows, columns) = (%d, %d), got %d weights for %s head %d", rows, columns, len(weights), l.Name, i)
			}
		}
	}
	return nil
}
