package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestLargest(t *testing.T) {
	t.Run("float32", testLargest[float32])
	t.Run("float64", testLargest[float64])
}

func testLargest[F Float](t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name string
		row  []float64
		id   int
		want int
	}{
		{"largest", []float64{1, 3, 2}, 0, 1},
		{"first of equals", []float64{1, 3, 3}, 0, 1},
		{"first of all equal", []float64{0, 0, 0}, 2, 0},
		{"zeros of either sign are equal", []float64{math.Copysign(0, -1), 0}, 0, 0},
		{"only class", []float64{-7}, 0, 0},
		{"only class, NaN", []float64{nan}, 0, -1},
		{"NaN first", []float64{nan, 1, 0}, 0, -1},
		{"NaN last", []float64{0, 1, nan}, 0, -1},
		{"+Inf", []float64{0, inf, 1}, 0, 1},
		{"all -Inf", []float64{-inf, -inf}, 1, 0},
		{"ignored", []float64{3, 2, 1}, -1, -1},
		{"ignored NaN", []float64{nan, nan}, -5, -5},
	} {
		row := make([]F, len(tc.row))
		for i, x := range tc.row {
			row[i] = F(x)
		}
		ids := []int{tc.id}
		Largest(1, ids, row, len(row))
		if ids[0] != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, ids[0], tc.want)
		}
	}
	for _, size := range [][2]int{{1, 1}, {7, 3}, {1024, 65}, {3, 40000}, {40000, 2}} {
		rows, vocab := size[0], size[1]
		logits, before, want := normals[F](1, rows*vocab), make([]int, rows), make([]int, rows)
		for i := range rows {
			row := logits[i*vocab:][:vocab]
			for j := range row {
				row[j] = F(math.Round(float64(row[j]))) // makes many logits equal
			}
			want[i] = slices.Index(row, slices.Max(row))
			if i%5 == 3 {
				before[i], want[i], row[0] = -1, -1, F(nan)
			}
		}
		for _, cores := range []int{1, 2, 3} {
			got := slices.Clone(before)
			Largest(cores, got, logits, vocab)
			if !slices.Equal(got, want) {
				t.Errorf("%d rows of %d on %d cores differ from a loop", rows, vocab, cores)
			}
		}
	}
}
