package search

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// drawn returns vectors with a tenth of equal ones, some of only zeros.
func drawn(rng *rand.Rand, count, width int) [][]float32 {
	rows := make([][]float32, count)
	for i := range rows {
		rows[i] = make([]float32, width)
		if i > 0 && rng.IntN(10) == 0 {
			copy(rows[i], rows[rng.IntN(i)])
			continue
		}
		scale := rng.Float64() * 3
		for j := range rows[i] {
			rows[i][j] = float32(scale * rng.NormFloat64())
		}
	}
	return rows
}

// Nearest finds what a loop in float64 finds, for all numbers of rows and queries, and whatever GOMAXPROCS is.
func TestNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dot := range []bool{false, true} {
		for _, sizes := range [][4]int{{1, 1, 1, 1}, {5, 3, 2, 9}, {1023, 16, 1, 10}, {1025, 7, 3, 4}, {5000, 24, 1, 20}, {2100, 24, 66, 300}, {1100, 64, 3, 5}} {
			count, width, queries, n := sizes[0], sizes[1], sizes[2], sizes[3]
			t.Run(fmt.Sprint(sizes, dot), func(t *testing.T) {
				rows, asked := drawn(rng, count, width), drawn(rng, queries, width)
				v := Vectors{Dot: dot}
				half := count / 2
				must.Do(t, v.Add(rows[:half]...))
				must.Do(t, v.Add(rows[half:]...))
				got := must.Get(v.Nearest(n, asked...))(t)
				previous := runtime.GOMAXPROCS(3)
				again := must.Get(v.Nearest(n, asked...))(t)
				runtime.GOMAXPROCS(previous)
				for i, q := range asked {
					checkMatches(t, rows, q, got[i], min(n, count), dot)
					if !slices.Equal(got[i], again[i]) {
						t.Errorf("query %d has other matches on 3 processors", i)
					}
				}
			})
		}
	}
}

// checkMatches compares matches with the scores of a query in float64, and their order with what Nearest promises.
func checkMatches(t *testing.T, rows [][]float32, q []float32, got []Match, n int, dot bool) {
	t.Helper()
	scores := make([]float64, len(rows))
	for i, row := range rows {
		for j, x := range row {
			scores[i] += float64(x) * float64(q[j])
		}
		if lengths := length(row) * length(q); !dot && lengths > 0 {
			scores[i] /= lengths
		}
	}
	if len(got) != n {
		t.Fatalf("got %d matches, want %d", len(got), n)
	}
	sorted := slices.Sorted(slices.Values(scores))
	slices.Reverse(sorted)
	seen := map[int]bool{}
	for i, m := range got {
		tolerance := 2e-6 * max(1, length(rows[m.Index])*length(q))
		if math.Abs(float64(m.Score)-scores[m.Index]) > tolerance || math.Abs(float64(m.Score)-sorted[i]) > tolerance || seen[m.Index] {
			t.Fatalf("match %d is %+v, its score is %g, and the score at this place %g", i, m, scores[m.Index], sorted[i])
		}
		seen[m.Index] = true
		if i > 0 && cmp.Or(cmp.Compare(m.Score, got[i-1].Score), got[i-1].Index-m.Index) > 0 {
			t.Fatalf("matches %+v and %+v are in the wrong order", got[i-1], m)
		}
	}
	before := map[string]bool{} // vectors that are no matches
	for i, row := range rows {
		if name := fmt.Sprint(row[:min(len(row), 4)]); !seen[i] {
			before[name] = true
		} else if before[name] {
			t.Fatalf("vector %d is a match, and not an equal vector before it", i)
		}
	}
}

// Ties are in the order of Add, also between blocks.
func TestTies(t *testing.T) {
	var v Vectors
	same := drawn(rand.New(rand.NewPCG(3, 4)), 1, 100)[0]
	for range 3000 {
		must.Do(t, v.Add(same))
	}
	for _, queries := range []int{1, 2, 64, 65} {
		for _, found := range must.Get(v.Nearest(2500, slices.Repeat([][]float32{same}, queries)...))(t) {
			for i, m := range found {
				if m.Index != i || m.Score != found[0].Score || math.Abs(float64(m.Score)-1) > 1e-6 {
					t.Fatalf("match %d of equal vectors is %+v", i, m)
				}
			}
		}
	}
}

// A program that keeps rows gets the same rows when it adds them again.
func TestAddAgain(t *testing.T) {
	var v, again Vectors
	must.Do(t, v.Add(drawn(rand.New(rand.NewPCG(5, 6)), 1000, 50)...))
	for i := range v.Len() {
		must.Do(t, again.Add(v.Row(i)))
		if !slices.Equal(v.Row(i), again.Row(i)) {
			t.Fatalf("row %d changes when it is added again", i)
		}
	}
}

func TestAdd(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	var v Vectors
	if got := must.Get(v.Nearest(3, []float32{1}))(t); len(got) != 1 || got[0] != nil {
		t.Errorf("no vectors: got %v", got)
	}
	for want, rows := range map[string][][]float32{
		"vector 0 is empty":             {{}},
		"vector 1 has 1 numbers":        {{1, 2}, {1}},
		"vector 1 has the length NaN":   {{1, 2}, {nan, 1}},
		"vector 0 has the length +Inf":  {{inf, 1}},
		"vector 0 has the length 2e+18": {{2e18, 0}},
	} {
		must.Refuse(0, v.Add(rows...))(t, want)
	}
	must.Do(t, v.Add([]float32{1e-40, 0}, []float32{0, 0}, []float32{-1e18, 0}))
	must.Refuse(0, v.Add([]float32{1, 2, 3}))(t, "vector 3 has 3 numbers, and others have 2")
	if v.Len() != 3 || v.Row(0)[0] != 1 || v.Row(2)[0] != -1 {
		t.Errorf("got %d vectors, %v and %v, want 3 with the first element 1 and -1", v.Len(), v.Row(0), v.Row(2))
	}
	want := []Match{{0, 1}, {1, 0}, {2, -1}}
	if got := must.Get(v.Nearest(9, []float32{5, 0}))(t)[0]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	must.Refuse(v.Nearest(-1))(t, "must be at least 0, got -1")
	must.Refuse(v.Nearest(1, []float32{1, 2}, []float32{1}))(t, "query 1 has 1 numbers")
	must.Refuse(v.Nearest(1, []float32{nan, 2}))(t, "query 0 has the length NaN")
	dots := Vectors{Dot: true}
	must.Do(t, dots.Add([]float32{1e18, 0}, []float32{3, 4}))
	if got := must.Get(dots.Nearest(1, []float32{-1e18, 0}))(t)[0]; got[0] != (Match{1, -3e18}) {
		t.Errorf("got %v, want a finite score", got)
	}
}

func BenchmarkNearest(b *testing.B) {
	var v Vectors
	rng := rand.New(rand.NewPCG(1, 2))
	row := make([]float32, 384)
	for range 100_000 {
		for j := range row {
			row[j] = rng.Float32() - 0.5
		}
		if err := v.Add(row); err != nil {
			b.Fatal(err)
		}
	}
	for _, queries := range []int{1, 100} {
		b.Run(fmt.Sprint(queries), func(b *testing.B) {
			asked := drawn(rng, queries, 384)
			for b.Loop() {
				if _, err := v.Nearest(10, asked...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
