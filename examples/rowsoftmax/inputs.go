package main

import (
	_ "embed"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/notebook"
)

//go:embed printed.txt
var printedText string

// The notebook's printed inputs, rounded to 8 decimals. Its output is cut off in the 15th number of V, after 0.788. The
// other numbers of V were computed from the printed new_V: row i of new_V is a mixture of rows 0 to i of V, with
// weights that follow from the printed Q and K. The last cell draws new inputs, and its output is cut off after the
// first four numbers of row 0 of V.
var printed = notebook.Sections(printedText)

// printedInputs returns the notebook's queries, keys and values.
func printedInputs() (q, k, v *tensor.Dense) {
	return notebook.Printed(printed["Q"], 4, 8), notebook.Printed(printed["K"], 4, 8), notebook.Printed(printed["V"], 4, 8)
}
