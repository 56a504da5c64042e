// Package heatmap shows attention weights as a picture (PNG, SVG), a page (HTML) or text for a terminal. A map has a
// row for each query, a column for each key, and a cell for each weight. Rows and columns have labels.
package heatmap

import "fmt"

// A Figure has the attention weights of some layers.
type Figure struct {
	Title  string // optional
	Key    string // explanation of unusual labels; optional
	Layers []Layer
}

// A Layer has the attention weights of one layer: a map for each head, all with the same labels. A model.AttentionLayer
// can be converted to a Layer.
type Layer struct {
	Name    string      `json:"name"`
	Meaning string      `json:"meaning"` // meaning of rows and columns; optional
	Rows    []string    `json:"rows"`    // labels of queries, from the top
	Columns []string    `json:"columns"` // labels of keys, from the left
	Heads   [][]float32 `json:"-"`       // weights of each head: (rows, columns), row-major
}

// Heading returns the layer's name and meaning.
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

// check returns an error if there is nothing to show, or if the number of weights doesn't fit the labels.
func (f Figure) check() error {
	if len(f.Layers) == 0 {
		return fmt.Errorf("heat maps: expected at least one layer, got none")
	}
	for _, l := range f.Layers {
		rows, columns := len(l.Rows), len(l.Columns)
		if rows == 0 || columns == 0 || len(l.Heads) == 0 {
			return fmt.Errorf("heat maps: a layer must have at least one row label, column label and head, got %d, %d and %d", rows, columns, len(l.Heads))
		}
		for i, weights := range l.Heads {
			if len(weights) != rows*columns {
				return fmt.Errorf("heat maps: weights must have shape (rows, columns) = (%d, %d), got %d weights for %s head %d", rows, columns, len(weights), l.Name, i)
			}
		}
	}
	return nil
}
