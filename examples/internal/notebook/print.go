package notebook

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"gorgonia.org/tensor"
)

const (
	decimals  = 8  // numpy's default
	lineWidth = 75 // numpy's default
)

// Print writes a name, and below it a float64 tensor in numpy's format: brackets for every axis, at most 8 decimals,
// aligned columns. It leaves out axes of length 1 before a matrix. A scalar follows its name on the same line, with all
// digits.
func Print(w io.Writer, name string, t *tensor.Dense) {
	if t.IsScalar() {
		fmt.Fprintf(w, "%s: %v\n", name, t.ScalarValue())
		return
	}
	shape := t.Shape()
	for len(shape) > 2 && shape[0] == 1 {
		shape = shape[1:]
	}
	fmt.Fprintf(w, "%s\n%s\n", name, Format(t.Data().([]float64), shape...))
}

// Format returns numpy's text for an array of the given shape.
func Format(values []float64, shape ...int) string {
	var b strings.Builder
	array(&b, cells(values), shape, 0)
	return b.String()
}

// array writes the cells of one axis and of the axes inside it. The argument depth is the number of open brackets.
func array(b *strings.Builder, cells []string, shape []int, depth int) {
	b.WriteByte('[')
	if len(shape) == 1 {
		line := ""
		for i, c := range cells {
			// Leave space for the closing brackets of all axes.
			if i > 0 && depth+1+len(line)+1+len(c) > lineWidth-depth-1 {
				b.WriteString(strings.TrimRight(line, " ") + "\n" + strings.Repeat(" ", depth+1))
				line = ""
			} else if i > 0 {
				line += " "
			}
			line += c
		}
		b.WriteString(line)
	} else {
		n := len(cells) / shape[0]
		for i := range shape[0] {
			if i > 0 {
				b.WriteString(strings.Repeat("\n", len(shape)-1) + strings.Repeat(" ", depth+1))
			}
			array(b, cells[i*n:(i+1)*n], shape[1:], depth+1)
		}
	}
	b.WriteByte(']')
}

// cells formats all values with the same width. Like numpy, it drops final zeros that all numbers have. It uses
// scientific notation if the largest absolute value is at least 1e8, the smallest is below 1e-4, or their ratio is over
// 1000 (zeros and infinities don't count).
func cells(values []float64) []string {
	least, largest := math.Inf(1), 0.0
	for _, v := range values {
		if a := math.Abs(v); a > 0 && !math.IsInf(a, 0) {
			least, largest = min(least, a), max(largest, a)
		}
	}
	power := largest > 0 && (largest >= 1e8 || least < 1e-4 || largest/least > 1000)
	out := make([]string, len(values))
	whole, part := 0, 0 // maximum numbers of characters before and after the point
	for i, v := range values {
		switch {
		case math.IsInf(v, 0):
			out[i] = strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'f', -1, 64)), "+")
			continue
		case power:
			mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', decimals, 64), "e")
			out[i] = trimZeros(mantissa) + "e" + exponent
		default:
			out[i] = trimZeros(strconv.FormatFloat(v, 'f', decimals, 64))
		}
		before, after, _ := strings.Cut(out[i], ".")
		after, _, _ = strings.Cut(after, "e")
		whole, part = max(whole, len(before)), max(part, len(after))
	}
	width := 0
	for i, v := range values {
		before, after, pointed := strings.Cut(out[i], ".")
		switch {
		case !pointed:
		case power:
			out[i] = strings.Repeat(" ", whole-len(before)) + strconv.FormatFloat(v, 'e', part, 64)
		default:
			out[i] = strings.Repeat(" ", whole-len(before)) + out[i] + strings.Repeat(" ", part-len(after))
		}
		width = max(width, len(out[i]))
	}
	for i := range out {
		out[i] = strings.Repeat(" ", width-len(out[i])) + out[i]
	}
	return out
}

// trimZeros drops zeros at the end of a number, but keeps the point.
func trimZeros(s string) string { return strings.TrimRight(s, "0") }

// Table writes a matrix with labels for rows and columns.
func Table(w io.Writer, rows, columns []string, values []float64, decimals int) {
	first, width := 0, 0
	for _, v := range values {
		width = max(width, len(strconv.FormatFloat(v, 'f', decimals, 64)))
	}
	for _, r := range rows {
		first = max(first, utf8.RuneCountInString(r))
	}
	for _, c := range columns {
		width = max(width, utf8.RuneCountInString(c))
	}
	fmt.Fprintf(w, "%*s", first, "")
	for _, c := range columns {
		fmt.Fprintf(w, "  %*s", width, c)
	}
	fmt.Fprintln(w)
	for i, r := range rows {
		fmt.Fprintf(w, "%-*s", first, r)
		for j := range columns {
			fmt.Fprintf(w, "  %*.*f", width, decimals, values[i*len(columns)+j])
		}
		fmt.Fprintln(w)
	}
}
