package kernel

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// Int8 is a matrix whose rows hold int8 numbers and one scale: the element in row i and column j is about
// values[i,j]·scales[i]. Make one with NewInt8.
type Int8 struct {
	rows, cols int
	stride     int       // columns in memory, a multiple of portable.Int8Columns; those after cols are 0
	values     []int8    // (rows, stride), from −127 to 127
	scales     []float32 // (rows)
}

const (
	int8Rows = 4 // rows of weights that the products take at once

	int8Largest  = 127
	int16Largest = 32767

	int8TaskWork = 1 << 17 // least number of weights that a separate task reads
	int8WakeWork = 1 << 18 // the same for waking a sleeping helper
	int8Cache    = 1 << 14 // weights of a task that stay in the first cache for all rows of x, while it fetches as many
	int8Block    = 1 << 18 // numbers of x that stay in the second cache for all weights
)

// NewInt8 quantises a matrix of the given number of rows. The scale of a row is its largest absolute value divided
// by 127, rounded to float32, and each element becomes the nearest multiple of the scale: it changes by at most half of
// it. A row of zeros has the scale 0. NewInt8 returns an error if an element is NaN or infinite.
func NewInt8(cores int, w []float32, rows int) (*Int8, error) {
	cols := len(w) / rows
	stride := roundUp(cols, portable.Int8Columns)
	q := &Int8{rows: rows, cols: cols, stride: stride, values: make([]int8, rows*stride), scales: make([]float32, rows)}
	var first sync.Mutex
	bad := len(w) // first element that isn't finite
	runRanges(cores, rows, rowsPerTask(cols, 4), 4*len(w), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := w[i*cols:][:cols]
			largest, ok := largestSize(row)
			if !ok {
				first.Lock()
				bad = min(bad, i*cols+slices.IndexFunc(row, func(v float32) bool { return !portable.Finite(v) }))
				first.Unlock()
				return
			}
			q.scales[i] = int8Scale(largest)
			if largest > 0 {
				int8Levels(q.values[i*stride:][:cols], row, 1/float64(q.scales[i]))
			}
		}
	})
	if bad < len(w) {
		return nil, fmt.Errorf("int8 weights must be finite, got %v in row %d and column %d", w[bad], bad/cols, bad%cols)
	}
	return q, nil
}

// int8Scale returns the scale of a row with the given largest absolute value.
func int8Scale(largest float32) float32 {
	scale := float32(float64(largest) / int8Largest)
	switch {
	case float64(largest) > (int8Largest+0.4)*float64(scale): // a subnormal number that was rounded down by much
		return math.Nextafter32(scale, math.MaxFloat32)
	case int8Largest*float64(scale) > math.MaxFloat32:
		return math.Nextafter32(scale, 0)
	}
	return scale
}

// int8Levels sets q to the nearest integers of x·by.
func int8Levels(q []int8, x []float32, by float64) {
	const magic = 3 << 51 // adding it to a small number rounds to an integer, to even between two
	for i, v := range x[:len(q)] {
		q[i] = int8(math.Float64bits(float64(float64(v)*by) + magic))
	}
}

// largestSize returns the largest absolute value of x, and whether all values are finite.
func largestSize(x []float32) (largest float32, finite bool) {
	var bits uint32 // of absolute values, which are ordered like the values
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(bits), bits < portable.InfinityBits
}

// Shape returns the numbers of rows and columns.
func (q *Int8) Shape() (rows, cols int) { return q.rows, q.cols }

// Scales returns the scale of each row. Don't change them.
func (q *Int8) Scales() []float32 { return q.scales }

// Bytes returns the memory of the matrix.
func (q *Int8) Bytes() int { return len(q.values) + 4*len(q.scales) }

// GatherInt8 copies rows of a quantised matrix, like Gather: row i of out is row ids[i].
func GatherInt8(out []float32, q *Int8, ids []int) {
	for i, id := range ids {
		scale, row := q.scales[id], out[i*q.cols:][:q.cols]
		for j, v := range q.values[id*q.stride:][:q.cols] {
			row[j] = float32(v) * scale
		}
	}
}

// MulInt8 computes y = x·wᵀ for x of shape (m, k), w of shape (n, k) and y of shape (m, n).
//
// It rounds each row of x to integers times a scale: to 32,767 levels on each side of 0, or fewer if k is above 8,256,
// so that no sum of products can overflow an int32. So a product differs from the exact product with w by at most the
// sum of a row's weights times half a level. The sums of integers are exact, and their scaling has a fixed order.
// Therefore a row of y has the same bits for all instruction sets, any number of cores and any other rows of x.
//
// If a row of x has NaN or infinities, its row of y is NaN. If all its numbers are below 2⁻⁹⁰, they count as 0.
func MulInt8(cores int, y, x []float32, w *Int8) {
	m := len(x) / w.cols
	if len(x) != m*w.cols || len(y) != m*w.rows {
		panic(fmt.Sprintf("kernel: product of %d and %d elements with int8 weights (%d, %d)", len(x), len(y), w.rows, w.cols))
	}
	p := take[int8Work](&int8Works)
	p.w, p.tiles, p.levels = w, inUse.int8, float32(min(int16Largest, math.MaxInt32/(int8Largest*(w.stride/16))))
	most := max(1, int8Block/w.stride)
	for first := 0; first < m; first += most {
		p.m = min(most, m-first)
		p.x, p.y = x[first*w.cols:][:p.m*w.cols], y[first*w.rows:][:p.m*w.rows]
		p.do(cores)
	}
	*p = int8Work{rounded: p.rounded, scales: p.scales}
	int8Works.Put(p)
}

var int8Works sync.Pool

// int8Work is a product of some rows of x with quantised weights. Its tasks first round the rows of x, and then compute
// columns of y.
type int8Work struct {
	w        *Int8
	tiles    int8Tiles
	m        int // rows of x
	x, y     []float32
	levels   float32   // largest integer for a number of x
	rounded  []int16   // (m, stride)
	scales   []float32 // of the rows of x
	rounding bool      // whether the tasks round x
	step     int       // rows of x or w per task
}

// do computes the product.
func (p *int8Work) do(cores int) {
	p.rounded, p.scales = grown(p.rounded, p.m*p.w.stride), grown(p.scales, p.m)
	p.rounding, p.step = true, rowsPerTask(p.w.cols, 2)
	parallelRun(cores, parts(p.m, p.step), p, false)

	weights := p.w.rows * p.w.stride
	work := weights * (1 + p.m/2)
	tasks := max(1, min(4*workers(cores), work/int8TaskWork))
	p.rounding, p.step = false, roundUp(parts(p.w.rows, tasks), int8Rows)
	parallelRun(cores, parts(p.w.rows, p.step), p, work >= int8WakeWork)
}

// run does one task.
func (p *int8Work) run(task int) {
	lo := task * p.step
	if p.rounding {
		for i := lo; i < min(lo+p.step, p.m); i++ {
			p.round(i)
		}
		return
	}
	hi := min(lo+p.step, p.w.rows)
	some := max(1, int8Cache/p.w.stride/int8Rows) * int8Rows
	for ; lo < hi; lo += some {
		p.columns(lo, min(lo+some, hi))
	}
}

// round rounds row i of x.
func (p *int8Work) round(i int) {
	x, q := p.x[i*p.w.cols:][:p.w.cols], p.rounded[i*p.w.stride:][:p.w.stride]
	clear(q[len(x):])
	largest, ok := largestSize(x)
	switch {
	case !ok:
		p.scales[i] = float32(math.NaN())
		clear(q)
	case largest < 0x1p-90:
		p.scales[i] = 0
		clear(q)
	default:
		p.scales[i] = largest / p.levels
		int16Levels(q[:len(x)], x, p.levels/largest)
	}
}

// int16Levels sets q to the nearest integers of x·by.
func int16Levels(q []int16, x []float32, by float32) {
	const magic = 3 << 22 // see int8Levels
	for i, v := range x[:len(q)] {
		q[i] = int16(math.Float32bits(float32(v*by) + magic))
	}
}

// columns computes columns lo to hi of y.
func (p *int8Work) columns(lo, hi int) {
	stride, n := p.w.stride, p.w.rows
	whole := lo + (hi-lo)/int8Rows*int8Rows
	passes := p.m/4 + p.m%4 // with assembly
	step := max(1, portable.Int8Columns/passes)
	for i, pass := 0, 0; i < p.m; pass++ {
		rows, dots := 1, p.tiles.one
		if p.tiles.four != nil && p.m-i >= 4 {
			rows, dots = 4, p.tiles.four
		}
		x, scales := p.rounded[i*stride:][:rows*stride], p.scales[i:][:rows]
		if whole > lo {
			dots(p.y[i*n+lo:], n, p.w.values[lo*stride:whole*stride], x, stride, p.w.scales[lo:whole], scales, pass, step)
		}
		if whole < hi {
			portable.Int8Dots(p.y[i*n+whole:], n, p.w.values[whole*stride:hi*stride], x, stride, p.w.scales[whole:hi], scales, pass, step)
		}
		i += rows
	}
}
