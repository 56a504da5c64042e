package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestRight(t *testing.T) {
	t.Run("float32", testRight[float32])
	t.Run("float64", testRight[float64])
}

func testRight[F Float](t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, tc := range []struct {
		name   string
		row    []float64
		target int
		right  bool
	}{
		{"largest", []float64{1, 3, 2}, 1, true},
		{"second", []float64{1, 3, 2}, 2, false},
		{"first of equals", []float64{1, 3, 3}, 1, true},
		{"second of equals", []float64{1, 3, 3}, 2, false},
		{"first of all equal", []float64{0, 0, 0}, 0, true},
		{"zeros of either sign are equal", []float64{math.Copysign(0, -1), 0}, 1, false},
		{"only class", []float64{-7}, 0, true},
		{"only class, NaN", []float64{nan}, 0, false},
		{"NaN of the target", []float64{0, nan, 0}, 1, false},
		{"NaN of the first class", []float64{nan, 0, 0}, 0, false},
		{"NaN before", []float64{nan, 1, 0}, 1, false},
		{"NaN after", []float64{0, 1, nan}, 1, false},
		{"+Inf", []float64{0, inf, 1}, 1, true},
		{"all -Inf, first", []float64{-inf, -inf}, 0, true},
		{"all -Inf, second", []float64{-inf, -inf}, 1, false},
		{"ignored", []float64{3, 2, 1}, -1, false},
		{"ignored NaN", []float64{nan, nan}, -5, false},
	} {
		right := []F{9}
		row := make([]F, len(tc.row))
		for i, x := range tc.row {
			row[i] = F(x)
		}
		Right(1, right, row, []int{tc.target}, len(row))
		if want := map[bool]F{true: 1}[tc.right]; right[0] != want {
			t.Errorf("%s: got %v, want %v", tc.name, right[0], want)
		}
	}
	for _, size := range [][2]int{{1, 1}, {7, 3}, {1024, 65}, {3, 40000}, {40000, 2}} {
		rows, vocab := size[0], size[1]
		logits, targets := normals[F](1, rows*vocab), make([]int, rows)
		want := make([]F, rows)
		for i := range rows {
			row := logits[i*vocab:][:vocab]
			for j := range row {
				row[j] = F(math.Round(float64(row[j]))) // makes many logits equal
			}
			best := slices.Index(row, slices.Max(row))
			switch targets[i] = (best + i%2*(i%vocab)) % vocab; {
			case i%5 == 3:
				targets[i], row[0] = -1, F(nan)
			case targets[i] == best:
				want[i] = 1
			}
		}
		for _, cores := range []int{1, 2, 3} {
			got := normals[F](2, rows)
			Right(cores, got, logits, targets, vocab)
			if !slices.Equal(got, want) {
				t.Errorf("%d rows of %d on %d cores differ from a loop", rows, vocab, cores)
			}
		}
	}
}
