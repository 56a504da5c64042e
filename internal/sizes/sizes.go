// Package sizes tells sizes that fit in memory from those that don't, before they are asked for: Go ends a program that
// asks for too much, and the system one that uses it. It also says sizes, numbers and times in words.
package sizes

import (
	"fmt"
	"math"
	"math/bits"
)

// unknown is taken for the memory of a machine that doesn't tell, in bytes: 256 GiB, or all that an int can say.
const unknown = min(math.MaxInt-1, 1<<38)

// Product returns the product of sizes, each at least 0, or math.MaxInt if it is more than that.
func Product(sizes ...int) int {
	product := uint(1)
	for _, s := range sizes {
		high, low := bits.Mul(product, uint(s))
		if product = low; high > 0 || low > math.MaxInt {
			product = math.MaxInt
		}
		if s == 0 {
			return 0
		}
	}
	return int(product)
}

// Memory returns the bytes of memory that the machine has or, if that is less, that its container or the process may
// use.
func Memory() int {
	most, _ := limit()
	return most
}

// MemoryText returns Memory in words, and says what bounds it if that isn't the machine.
func MemoryText() string {
	most, by := limit()
	return Text(most) + by
}

// Check returns an error if so many bytes, all together, are more than there is memory.
func Check(bytes ...int) error {
	sum := 0
	for _, n := range bytes {
		sum += min(n, math.MaxInt-sum)
	}
	if sum <= Memory() {
		return nil
	}
	return fmt.Errorf("this takes %s of memory, of which there is %s: choose smaller sizes", Text(sum), MemoryText())
}

// Count returns a number of things in words, of which what is one: 1 step, 2 steps.
func Count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Text returns a number of bytes in words: in MB below 1 GiB, with two or three digits.
func Text(bytes int) string {
	switch {
	case bytes == math.MaxInt:
		return "an impossible number of bytes"
	case bytes < 1<<30:
		return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30))
}

// Time returns seconds in words: tenths of them below ten seconds, whole ones below two minutes, then minutes, and from
// two hours on hours.
func Time(seconds float64) string {
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
