package search_test

import (
	"fmt"

	"github.com/heed-go/heed/data/search"
)

func ExampleVectors() {
	var v search.Vectors
	if err := v.Add([]float32{1, 0}, []float32{3, 4}, []float32{-1, 0}); err != nil {
		panic(err)
	}
	nearest, err := v.Nearest(2, []float32{1, 1})
	if err != nil {
		panic(err)
	}
	for _, m := range nearest[0] {
		fmt.Printf("vector %d: %.3f\n", m.Index, m.Score)
	}
	// Output:
	// vector 1: 0.990
	// vector 0: 0.707
}
