package ops_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers/gradcheck"
)

// TestRelativeBuckets compares buckets with those that testdata/buckets.py computes with PyTorch. The table's bias for
// bucket i is i.
func TestRelativeBuckets(t *testing.T) {
	const far = 700
	data := must.Get(os.ReadFile("testdata/buckets.json"))(t)
	var cases []struct {
		Buckets     int
		MaxDistance int  `json:"max_distance"`
		OneWay      bool `json:"one_way"`
		Starts      [][2]int
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("buckets.json has %d cases, error %v", len(cases), err)
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%d buckets up to %d, one way %t", tc.Buckets, tc.MaxDistance, tc.OneWay), func(t *testing.T) {
			g := newGraph(t)
			table := g.in(tc.Buckets, 1)
			for i, values := 0, table.Value().Data().([]float64); i < len(values); i++ {
				values[i] = float64(i)
			}
			r := ops.Relative{MaxDistance: tc.MaxDistance, OneWay: tc.OneWay}
			got := g.read(g.node(ops.RelativeBias(&ops.Env{}, table, nil, far+1, far+1, r)))[0]
			want := func(distance int) float64 {
				i := slices.IndexFunc(tc.Starts, func(s [2]int) bool { return s[0] > distance })
				if i < 0 {
					i = len(tc.Starts)
				}
				return float64(tc.Starts[i-1][1])
			}
			for query := range far + 1 {
				for key := range far + 1 {
					if got, want := got[query*(far+1)+key], want(key-query); got != want {
						t.Fatalf("distance %d is in bucket %v, want %v", key-query, got, want)
					}
				}
			}
		})
	}
}

// relativeCase describes a RelativeBias with 4 queries and 6 keys.
type relativeCase struct {
	name      string
	relative  ops.Relative
	positions []int // nil, or shape (T) or (B, T)
	shape     []int
}

var relativeCases = []relativeCase{
	{name: "from 0", relative: ops.Relative{MaxDistance: 4}},
	{name: "one way", relative: ops.Relative{MaxDistance: 5, OneWay: true}},
	{name: "positions of one sequence", relative: ops.Relative{MaxDistance: 4}, positions: []int{2, 3, 4, 5}, shape: []int{4}},
	{name: "positions of each sequence", relative: ops.Relative{MaxDistance: 5, OneWay: true}, positions: []int{0, 1, 2, 3, 5, 5, 0, 1}, shape: []int{2, 4}},
}

func (tc relativeCase) build(g *graph, table *G.Node) *G.Node {
	var positions *G.Node
	if tc.positions != nil {
		positions = g.ints(tc.shape...)
		copy(positions.Value().Data().([]int), tc.positions)
	}
	return g.node(ops.RelativeBias(&ops.Env{}, table, positions, 4, 6, tc.relative))
}

// TestRelativeBiasOfPositions compares biases for given positions with biases for positions counted from 0, and
// gradients with finite differences.
func TestRelativeBiasOfPositions(t *testing.T) {
	for _, tc := range relativeCases {
		t.Run(tc.name, func(t *testing.T) {
			g := newGraph(t)
			table := g.in(8, 3)
			whole := g.node(ops.RelativeBias(&ops.Env{}, table, nil, 6, 6, tc.relative)) // (1, 3, 6, 6)
			y := tc.build(g, table)
			positions := tc.positions
			if positions == nil {
				positions = []int{0, 1, 2, 3}
			}
			if want := (tensor.Shape{len(positions) / 4, 3, 4, 6}); !y.Shape().Eq(want) {
				t.Fatalf("the bias has shape %v, want %v", y.Shape(), want)
			}
			read := g.read(whole, y)
			for i, got := range read[1] {
				key, query, head, batch := i%6, i/6%4, i/24%3, i/72
				if want := read[0][(head*6+positions[batch*4+query])*6+key]; got != want {
					t.Errorf("batch element %d, head %d, query %d, key %d: %v, want %v", batch, head, query, key, got, want)
				}
			}

			g = newGraph(t)
			table = g.in(8, 3)
			must.Do(t, gradcheck.Expr(g.node(gradcheck.Project(tc.build(g, table), 1)), table))
		})
	}
}
