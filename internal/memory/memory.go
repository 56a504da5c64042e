// Package memory tells sizes that fit in memory from those that don't, before they are asked for: Go ends a program
// that asks for too much, and the system ends one that uses too much.
package memory

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/heed-go/heed/internal/text"
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

// Limit returns the bytes of memory that the machine has or, if that is less, that its container or the process may
// use.
func Limit() int {
	most, _ := limit()
	return most
}

// LimitText returns Limit in words, and says what bounds it if that isn't the machine.
func LimitText() string {
	most, by := limit()
	return text.Bytes(most) + by
}

// Check returns an error if so many bytes, all together, are more than there is memory.
func Check(bytes ...int) error {
	sum := 0
	for _, n := range bytes {
		sum += min(n, math.MaxInt-sum)
	}
	if sum <= Limit() {
		return nil
	}
	return fmt.Errorf("this takes %s of memory, of which there is %s: choose smaller sizes", text.Bytes(sum), LimitText())
}
