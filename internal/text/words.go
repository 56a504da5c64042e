package text

import (
	"fmt"
	"math"
	"strings"
)

// Count returns n with its unit, which gets an s unless n is 1: 1 step, 2 steps.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Either lists choices, as in "a, b or c". There must be at least one.
func Either(choices []string) string {
	last := len(choices) - 1
	if last == 0 {
		return choices[0]
	}
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// List joins n elements with a separator. Instead of the elements after the first limit, it gives their number.
func List(n, limit int, separator string, element func(i int) string) string {
	var elements []string
	for i := range min(n, limit) {
		elements = append(elements, element(i))
	}
	if n > limit {
		elements = append(elements, fmt.Sprintf("and %d more", n-limit))
	}
	return strings.Join(elements, separator)
}

// Bytes returns a number of bytes in MB or, from 1 GiB on, in GiB with three digits.
func Bytes(bytes int) string {
	switch {
	case bytes == math.MaxInt:
		return "an impossible number of bytes"
	case bytes < 1<<30:
		return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30))
}

// Seconds returns a time in seconds. From two minutes on, it is in minutes; from two hours on, in hours.
func Seconds(seconds float64) string {
	switch {
	case seconds < 9.95:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 2*60:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 2*60*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/60/60)
}
