package main

import (
	_ "embed"

	"github.com/heed-go/heed/examples/internal/notebook"
)

//go:embed printed.txt
var printedText string

// The notebook's numbers: the scaled attention scores, of which it prints five of ten rows in full, the start of the
// sixth row, where its output is cut off, and numbers that don't follow from those that it prints. Each of these but
// the second token's sum, "second", is cut off at its end.
var printed = notebook.Sections(printedText)
