package model

import "github.com/heed-go/heed/internal/choices"

// How OpenAs may keep a model's weights.
const (
	Float32Weights = "float32"
	Int8Weights    = "int8"
)

// Weights lists how weights may be kept.
var Weights = choices.Table[struct{}]{
	{Name: Float32Weights, About: "as they were trained"},
	{Name: Int8Weights, About: "rounded to 8 bits: a quarter of the memory and, with AVX-512 or AVX2, less time per token"},
}

// KnownWeights returns an error if the table Weights has no such name.
func KnownWeights(name string) error {
	_, err := Weights.Index("kind of weights", name)
	return err
}
