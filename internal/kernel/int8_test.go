package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
	"github.com/heed-go/heed/internal/must"
)

// newInt8 quantises a matrix without an error.
func newInt8(t testing.TB, w []float32, rows int) *Int8 {
	t.Helper()
	return must.Get(NewInt8(0, w, rows))(t)
}

// TestInt8Error compares quantised numbers of all scales, down to subnormal ones, with the stated bound.
func TestInt8Error(t *testing.T) {
	const cols = 70
	rng := rand.New(rand.NewPCG(1, 2))
	var w []float32
	for power := -149; power < 128; power++ {
		for range cols {
			w = append(w, float32(math.Ldexp(2*rng.Float64()-1, power)))
		}
	}
	w = append(w, make([]float32, cols)...) // a row of zeros
	w = append(w, slices.Repeat([]float32{math.MaxFloat32, -math.MaxFloat32}, cols/2)...)
	rows := len(w) / cols
	q, got, ids := newInt8(t, w, rows), make([]float32, len(w)), make([]int, rows)
	for i := range ids {
		ids[i] = i
	}
	GatherInt8(got, q, ids)
	for i, x := range w {
		scale, largest := float64(q.Scales()[i/cols]), 0.0
		for _, v := range w[i/cols*cols:][:cols] {
			largest = max(largest, math.Abs(float64(v)))
		}
		if d := math.Abs(float64(got[i]) - float64(x)); d > scale/2*(1+1e-4) {
			t.Fatalf("%v became %v: the difference %v is above half of the scale %v", x, got[i], d, scale)
		}
		if most := math.Nextafter32(float32(largest/127), math.MaxFloat32); scale > float64(most) {
			t.Fatalf("the scale of a row up to %v is %v, want about a 127th", largest, scale)
		}
	}
}

func TestInt8RefusesWhatIsNotFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		w := normals[float32](1, 300*200)
		w[170*200+7], w[260*200] = bad, bad
		must.Refuse(NewInt8(0, w, 300))(t, fmt.Sprintf("got %v in row 170 and column 7", bad))
	}
}

// int8Product returns x·wᵀ with NaN before it.
func int8Product(cores int, x []float32, w *Int8) []float32 {
	y := slices.Repeat([]float32{float32(math.NaN())}, len(x)/w.cols*w.rows)
	MulInt8(cores, y, x, w)
	return y
}

// TestMulInt8 compares products of many shapes with the exact product of the quantised weights, and every instruction
// set with Go bit by bit. Rows computed alone have the same bits.
func TestMulInt8(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {1, 4, 32}, {2, 7, 33}, {3, 16, 31}, {4, 8, 64}, {5, 21, 100}, {8, 257, 65}, {19, 40, 300}, {1, 70, 768}, {130, 12, 2500}, {1, 5, 8256}, {6, 6, 20000}} {
		m, n, k := s[0], s[1], s[2]
		x := normals[float32](1, m*k)
		weights := normals[float32](2, n*k)
		for i := range weights {
			weights[i] *= float32(math.Ldexp(1, i/k%40-20))
		}
		if m > 2 {
			clear(x[k : 2*k])
			x[2*k] *= 1000
		}
		w := newInt8(t, weights, n)
		rounded := make([]float32, n*k)
		for j := range n {
			GatherInt8(rounded[j*k:], w, []int{j})
		}
		var inGo []float32
		for _, set := range slices.Backward(instructionSets) {
			if !set.runs {
				continue
			}
			use(t, set)
			y := int8Product(0, x, w)
			if inGo == nil {
				inGo = y
				levels := min(32767, math.MaxInt32/(127*((k+31)/32*2)))
				checkInt8(t, y, x, rounded, m, n, k, levels)
			}
			for i := range y {
				if math.Float32bits(y[i]) != math.Float32bits(inGo[i]) {
					t.Fatalf("%v: element %d is %v with %s and %v in Go", s, i, y[i], set.name, inGo[i])
				}
			}
			for i := range m {
				if alone := int8Product(1, x[i*k:][:k], w); !slices.Equal(alone, y[i*n:][:n]) {
					t.Fatalf("%v: row %d alone has other bits with %s", s, i, set.name)
				}
			}
		}
	}
}

// checkInt8 compares y with the product of x and the quantised weights in float64. Each number of x is within half a
// level, and the sums are rounded to float32.
func checkInt8(t *testing.T, y, x, w []float32, m, n, k, levels int) {
	t.Helper()
	for i := range m {
		row, largest := x[i*k:][:k], 0.0
		for _, v := range row {
			largest = max(largest, math.Abs(float64(v)))
		}
		for j := range n {
			var want, sum, sizes float64
			for p, v := range row {
				b := float64(w[j*k+p])
				want += float64(v) * b
				sum += math.Abs(b)
				sizes += math.Abs(float64(v) * b)
			}
			bound := sum*largest/float64(2*levels)*(1+1e-3) + 4e-7*sizes
			if got := float64(y[i*n+j]); !(math.Abs(got-want) <= bound) {
				t.Fatalf("(%d, %d) x (%d, %d): element %d,%d is %v, want %v ± %v", m, k, n, k, i, j, got, want, bound)
			}
		}
	}
}

// TestMulInt8Extremes tests the largest sums of integers, and numbers of x that aren't finite or are very small.
func TestMulInt8Extremes(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		for _, k := range []int{8256, 8257, 100000} { // all products have the largest size and one sign
			ones := slices.Repeat([]float32{1}, 4*k)
			w := newInt8(t, ones, 4)
			for _, y := range int8Product(0, ones, w) {
				if math.Abs(float64(y)-float64(k)) > 1e-6*float64(k) {
					t.Errorf("the sum of %d ones is %v", k, y)
				}
			}
		}
		const m, n, k = 7, 9, 40
		w := newInt8(t, normals[float32](1, n*k), n)
		x := normals[float32](2, m*k)
		x[0], x[k+5], x[2*k+39] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
		for i := range k {
			x[3*k+i] = 0x1p-91
			x[4*k+i] *= 0x1p-80
			x[5*k+i] *= 0x1p120
		}
		y := int8Product(0, x, w)
		for i := range y {
			switch v := y[i]; i / n {
			case 0, 1, 2:
				if v == v {
					t.Errorf("row %d isn't NaN, but %v", i/n, v)
				}
			case 3:
				if v != 0 {
					t.Errorf("row 3 isn't 0, but %v", v)
				}
			default:
				if !portable.Finite(v) || v == 0 {
					t.Errorf("row %d has %v", i/n, v)
				}
			}
		}
	})
}

// TestInt8Dots compares functions in assembly with Go bit by bit, for the largest numbers, whose products must not
// saturate. It checks that they write nothing beside their results.
func TestInt8Dots(t *testing.T) {
	const n, ldy = 12, 15
	rng := rand.New(rand.NewPCG(3, 4))
	eachSet(t, func(t *testing.T) {
		for _, stride := range []int{32, 64, 96, 800, 3072} {
			w, x := make([]int8, n*stride), make([]int16, 4*stride)
			for i := range w {
				w[i] = [...]int8{-128, -127, 127, 1}[rng.IntN(4)]
			}
			for i := range x {
				x[i] = [...]int16{-32768, -32767, 32767, 1}[rng.IntN(4)]
			}
			wScales, xScales := normals[float32](1, n), normals[float32](2, 4)
			for rows, dots := range map[int]int8Dots{1: inUse.int8.one, 4: inUse.int8.four} {
				if dots == nil {
					continue
				}
				results := func(dots int8Dots) []float32 {
					y := slices.Repeat([]float32{-1}, 4*ldy)
					dots(y, ldy, w, x[:rows*stride], stride, wScales, xScales[:rows], 1, 8)
					return y
				}
				if got, want := results(dots), results(portable.Int8Dots); !slices.Equal(got, want) {
					t.Errorf("%d rows of %d columns: got %v, want %v", rows, stride, got, want)
				}
			}
		}
	})
}

// TestInt8Memory places operands before memory that can't be read or written.
func TestInt8Memory(t *testing.T) {
	const m, n, k = 9, 12, 96
	w := newInt8(t, normals[float32](1, n*k), n)
	x := normals[float32](2, m*k)
	want := int8Product(1, x, w)
	end := func(mem []float32, size int) []float32 { return mem[len(mem)-size:] }
	y := end(guarded[float32](t, 4*m*n), m*n)
	guardedX := end(guarded[float32](t, 4*m*k), m*k)
	copy(guardedX, x)
	values := recast[int8](end(guarded[float32](t, n*k), n*k/4), n*k)
	copy(values, w.values)
	scales := end(guarded[float32](t, 4*n), n)
	copy(scales, w.scales)
	own := &Int8{rows: n, cols: k, stride: k, values: values, scales: scales}
	rounded := recast[int16](end(guarded[float32](t, 2*m*k), m*k/2), m*k)
	eachSet(t, func(t *testing.T) {
		for first := range 3 {
			clear(y)
			p := &int8Work{w: own, tiles: inUse.int8, levels: int16Largest, m: m - first, x: guardedX[first*k:], y: y[first*n:], rounded: rounded[first*k:]}
			p.do(1)
			if !slices.Equal(y[first*n:], want[first*n:]) {
				t.Errorf("the product of %d rows has other bits", m-first)
			}
		}
	})
}

// TestInt8Tiles checks that every instruction set has a function for products with int8 weights, even if this processor
// can't run the set.
func TestInt8Tiles(t *testing.T) {
	for _, s := range append([]*instructionSet{amxModelSet()}, instructionSets...) {
		if s.int8.one == nil {
			t.Errorf("%s has no function for products with int8 weights", s.name)
		}
		if s.int8.four == nil && strings.HasPrefix(s.name, "avx") {
			t.Errorf("%s has no function for four rows of x", s.name)
		}
	}
}

func TestMulInt8Cores(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		const n, k = 613, 300
		w := newInt8(t, normals[float32](1, n*k), n)
		for _, m := range []int{1, 6, 64} {
			x := normals[float32](2, m*k)
			sameOnAnyCores(t, func(cores int) []float32 { return int8Product(cores, x, w) })
		}
	})
}

func TestMulInt8Panics(t *testing.T) {
	w := newInt8(t, make([]float32, 6), 2)
	for _, sizes := range [][2]int{{4, 2}, {3, 3}, {3, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %d and %d elements", sizes[0], sizes[1])
				}
			}()
			MulInt8(1, make([]float32, sizes[1]), make([]float32, sizes[0]), w)
		}()
	}
}

// recast returns the memory of x as size integers.
func recast[T int8 | int16](x []float32, size int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&x[0])), size)
}
