package main

import (
	_ "embed"

	"github.com/heed-go/heed/examples/internal/notebook"
)

//go:embed printed.txt
var printedText string

// The notebook's printed inputs, rounded to 8 decimals, and the scores and context vectors that it prints from an
// earlier run with other inputs.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's tokens and weights.
func printedInputs() inputs {
	return inputs{notebook.Printed(printed["X"], 3, 4), notebook.Printed(printed["W_qk"], 4, 6), notebook.Printed(printed["W_v"], 4, 5)}
}
