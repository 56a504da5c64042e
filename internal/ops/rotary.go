package ops

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/kernel"
)

// A Rotary holds the options of Rotate.
type Rotary struct {
	Name        string    // the layer's name in errors
	Heads       int       // number of vectors side by side on the last axis; at least 1
	Frequencies []float64 // for each pair of elements, the angle per position in radians
	Magnitude   float64   // factor of the turned elements
	Interleaved bool      // true: pairs are (0, 1), (2, 3), …; false: (0, n), (1, n + 1), … for n pairs
	Offset      int       // position of a sequence's first vector; ignored if positions are given
	Inverse     bool      // turn in the other direction, as in the gradient
}

// dim returns the number of turned elements per vector.
func (r Rotary) dim() int { return 2 * len(r.Frequencies) }

// Rotate turns the vectors of x by their positions (Su et al., 2021). x has shape (T, H·K), (B, T, H·K) or, with one
// head per vector, (B, H, T, K). If positions is nil, vector t of a sequence has position Offset + t. Otherwise
// positions is int. With shape (B), it holds the position of each sequence's first vector; with shape (B, T), it holds
// all positions.
func Rotate(e *Env, x, positions *G.Node, r Rotary) (*G.Node, error) {
	width, err := HeadWidth(r.Name, x, r.Heads)
	if err != nil {
		return nil, err
	}
	if r.dim() < 2 || r.dim() > width {
		return nil, fmt.Errorf("%s: the number of elements to turn must be from 2 to the vectors' width %d, got %d", r.Name, width, r.dim())
	}
	s := x.Shape()
	d := len(s)
	layout := kernel.Rotary{Batch: 1, Outer: 1, Length: s[d-2], Inner: r.Heads, Width: width, Dim: r.dim(), Interleaved: r.Interleaved}
	if d > 2 {
		layout.Batch = s[0]
	}
	if d == 4 {
		layout.Outer = s[1]
	}
	if positions != nil {
		if err := checkPositions(r.Name, positions, layout.Batch, layout.Length); err != nil {
			return nil, err
		}
		r.Offset = 0
	}
	return ByDtype(x, new(rotaryTable[float32]).rotate, new(rotaryTable[float64]).rotate)(e, x, positions, r, layout)
}

// HeadWidth returns the width K of a head: the size of x's last axis divided by heads. x must be float32 or float64,
// and have shape (T, H·K), (B, T, H·K) or, if heads is 1, (B, H, T, K).
func HeadWidth(name string, x *G.Node, heads int) (int, error) {
	if err := CheckFloat(name, "the input", x); err != nil {
		return 0, err
	}
	if heads < 1 {
		return 0, fmt.Errorf("%s: the number of heads side by side must be at least 1, got %d", name, heads)
	}
	s := x.Shape()
	d := len(s)
	if d < 2 || d > 4 || d == 4 && heads > 1 || s[d-1]%heads != 0 {
		return 0, fmt.Errorf("%s: the input must have shape (T, H·K), (B, T, H·K) or, if the number of heads side by side is 1, (B, H, T, K), got %v and %d heads", name, s, heads)
	}
	return s[d-1] / heads, nil
}

// rotaryTable caches the cosines and sines for the last positions. An op and its gradient share a table.
type rotaryTable[F kernel.Float] struct {
	positions, want []int
	cos, sin        []F
}

func (t *rotaryTable[F]) rotate(e *Env, x, positions *G.Node, r Rotary, layout kernel.Rotary) (*G.Node, error) {
	shape := x.Shape()
	layout.Inverse = r.Inverse
	given := 0
	if positions != nil {
		given = positions.Shape().TotalSize()
	}
	o := newOp(fmt.Sprintf("rotary%v%+v(%d)", shape, r, given), shape, func(y []F, values []G.Value) {
		x := elements[F](values[0], len(y))
		t.fill(e.Cores, optional[int](values, 1, given), r, layout)
		kernel.Rotate(e.Cores, y, x, t.cos, t.sin, layout)
	})
	o.layer = r.Name
	o.wrt, o.grad = 1, func(_ G.Nodes, _, g *G.Node) (G.Nodes, error) {
		back := r
		back.Inverse = !r.Inverse
		return one(t.rotate(e, g, positions, back, layout))
	}
	return e.apply(o, x, positions)
}

// fill computes the table for the given positions, unless the table already holds them. The argument given holds the
// position of every vector, or of each sequence's first vector. If it is nil, positions begin at r.Offset.
func (t *rotaryTable[F]) fill(cores int, given []int, r Rotary, l kernel.Rotary) {
	t.want = t.want[:0]
	switch {
	case given == nil:
		t.want = count(t.want, r.Offset, l.Length)
	case len(given) == l.Batch*l.Length:
		t.want = append(t.want, given...)
	default:
		for _, offset := range given {
			t.want = count(t.want, offset, l.Length)
		}
	}
	if slices.Equal(t.positions, t.want) {
		return
	}
	if t.cos == nil {
		t.cos, t.sin = make([]F, len(t.want)*len(r.Frequencies)), make([]F, len(t.want)*len(r.Frequencies))
	}
	kernel.RotaryTable(cores, t.cos, t.sin, t.want, r.Frequencies, r.Magnitude)
	t.positions = append(t.positions[:0], t.want...)
}

// count appends the n numbers first, first + 1, … to numbers.
func count(numbers []int, first, n int) []int {
	for i := range n {
		numbers = append(numbers, first+i)
	}
	return numbers
}
