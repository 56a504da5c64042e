package main

import (
	_ "embed"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
)

//go:embed printed.txt
var printedText string

// The notebook's printed inputs, rounded to 8 decimals.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's queries, keys and values.
func printedInputs() (q, k, v *tensor.Dense) {
	return notebook.Printed(printed["Q"], 4, 8), notebook.Printed(printed["K"], 4, 8), notebook.Printed(printed["V"], 4, 8)
}
