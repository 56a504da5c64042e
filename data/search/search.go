// Package search finds the nearest of many vectors, such as a model's vectors of texts. It compares every one, so the
// result is exact.
package search

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/heed-go/heed/internal/kernel"
)

// Vectors are vectors of the same width among which Nearest searches. The zero value is ready to use. A
// million vectors with 384 numbers take 1.5 GB, and a search among them some tenths of a second.
//
// Several goroutines may call its methods at once, but not while Add runs.
type Vectors struct {
	// Dot makes the score of two vectors their dot product. Otherwise it is their cosine, which is 0 if a vector has
	// only zeros. Choose before the first Add.
	Dot bool

	width  int
	count  int
	blocks [][]float32 // (blockRows, width) each; the last one may be partly empty
}

// blockRows is the number of vectors of a block. A larger block gives products no more speed, and queries are taken
// queryRows at a time, so that the scores of a block fit into a processor's cache.
const blockRows, queryRows = 1 << 10, 1 << 7

// longest is the greatest length of a vector. The product of two such vectors is finite, and so are all partial sums.
const longest = 1e18

// Add adds copies of rows. It returns an error if a row is empty, if it has another number of elements than the first,
// or if its length isn't finite or is above 1e18. After an error, no row is added.
func (v *Vectors) Add(rows ...[]float32) error {
	width := v.width
	for i, row := range rows {
		if i == 0 {
			width = cmp.Or(width, len(row))
		}
		if err := check(row, width); err != nil {
			return fmt.Errorf("vector %d %w", v.count+i, err)
		}
	}
	v.width = width
	for _, row := range rows {
		if v.count%blockRows == 0 {
			v.blocks = append(v.blocks, make([]float32, blockRows*width))
		}
		v.put(v.Row(v.count), row)
		v.count++
	}
	return nil
}

// check returns an error if a vector isn't one that Add accepts.
func check(row []float32, width int) error {
	switch {
	case len(row) == 0:
		return fmt.Errorf("is empty")
	case len(row) != width:
		return fmt.Errorf("has %d numbers, and others have %d: a model makes vectors of one width", len(row), width)
	case !(length(row) <= longest):
		return fmt.Errorf("has the length %.3g: it must be a number up to %g", length(row), longest)
	}
	return nil
}

func length(row []float32) float64 { return math.Sqrt(kernel.SumSquares(row)) }

// put sets out to a row or, for cosines, to the vector of length 1 in its direction. A row whose length is 1 but for
// rounding stays as it is, so a Row can be added again.
func (v *Vectors) put(out, row []float32) {
	scale := length(row)
	if v.Dot || scale == 0 || math.Abs(scale-1) < 2e-7 {
		copy(out, row)
		return
	}
	for i, x := range row {
		out[i] = float32(float64(x) / scale)
	}
}

// Len returns the number of vectors.
func (v *Vectors) Len() int { return v.count }

// Row returns the vector with an index below Len, as Nearest compares it: for cosines, its length is 1, or 0 if it has
// only zeros. Don't change it.
func (v *Vectors) Row(i int) []float32 { return v.blocks[i/blockRows][i%blockRows*v.width:][:v.width] }

// A Match is one of the vectors that are nearest to a query.
type Match struct {
	Index int // number of the vector, in the order of Add, from 0
	Score float32
}

// compare orders matches by their score, highest first, and then by index.
func compare(a, b Match) int { return cmp.Or(cmp.Compare(b.Score, a.Score), a.Index-b.Index) }

// Nearest returns, for each query, the n vectors with the highest scores, highest first, or all vectors if there are
// fewer. Equal scores are in the order of Add, and equal vectors have equal scores. It uses all processors. The result
// doesn't depend on their number. Other queries may change a score by rounding.
//
// The error is about a query that Add wouldn't accept, or n below 0.
func (v *Vectors) Nearest(n int, queries ...[]float32) ([][]Match, error) {
	if n < 0 {
		return nil, fmt.Errorf("the number of nearest vectors must be at least 0, got %d", n)
	}
	nearest := make([][]Match, len(queries))
	for i, q := range queries {
		if err := check(q, cmp.Or(v.width, len(q))); err != nil {
			return nil, fmt.Errorf("query %d %w", i, err)
		}
	}
	if n = min(n, v.count); n == 0 {
		return nearest, nil
	}
	for first := 0; first < len(queries); first += queryRows {
		v.search(n, queries[first:min(first+queryRows, len(queries))], nearest[first:])
	}
	return nearest, nil
}

// search sets nearest to the matches of some queries.
func (v *Vectors) search(n int, queries [][]float32, nearest [][]Match) {
	rows := make([]float32, len(queries)*v.width) // (queries, width)
	for i, q := range queries {
		v.put(rows[i*v.width:][:v.width], q)
	}
	parts := make([][]best, min(runtime.GOMAXPROCS(0), len(v.blocks)))
	kernel.Spread(0, len(parts), len(rows)*v.count, func(part int) {
		found, scores := make([]best, len(queries)), make([]float32, len(queries)*blockRows)
		for b := part; b < len(v.blocks); b += len(parts) {
			// Empty rows of the last block count too, so that the scores of all blocks are computed in the same way.
			kernel.Gemm(1, false, true, len(queries), blockRows, v.width, 1, rows, v.width, v.blocks[b], v.width, 0, scores, blockRows)
			for q := range found {
				found[q].add(n, b*blockRows, scores[q*blockRows:][:min(blockRows, v.count-b*blockRows)])
			}
		}
		parts[part] = found
	})
	for q := range queries {
		var joined best
		for _, found := range parts {
			joined.matches = append(joined.matches, found[q].matches...)
		}
		joined.cut(n)
		nearest[q] = joined.matches
	}
}

// best has the best matches so far, and perhaps some others.
type best struct {
	matches []Match
	enough  bool    // whether cut has left n matches
	least   float32 // their lowest score
}

// add adds the scores of vectors from index first. Their indices are above the index of every match.
func (b *best) add(n, first int, scores []float32) {
	for i, s := range scores {
		if b.enough && s <= b.least {
			continue
		}
		if b.matches = append(b.matches, Match{first + i, s}); len(b.matches) == 2*n {
			b.cut(n)
		}
	}
}

// cut sorts the matches and leaves up to n.
func (b *best) cut(n int) {
	slices.SortFunc(b.matches, compare)
	if len(b.matches) >= n {
		b.matches = slices.Clip(b.matches[:n])
		b.enough, b.least = true, b.matches[n-1].Score
	}
}
