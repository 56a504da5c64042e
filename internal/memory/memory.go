// Package memory checks whether sizes fit in memory before a program allocates them. Without such a check, Go ends a
// program that allocates too much, and the system ends a program that uses too much.
package memory

import (
	"fmt"
	"math"
	"math/bits"
	"runtime/metrics"

	"github.com/heed-go/heed/internal/text"
)

// unknown is the assumed memory in bytes if the system doesn't say: 256 GiB, or the largest int if it is smaller.
const unknown = min(math.MaxInt-1, 1<<38)

// Product returns the product of sizes, each at least 0, or math.MaxInt if the product is larger.
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

// Limit returns how many bytes of memory this process may use: the machine's memory, or a smaller limit of the
// container or the process.
func Limit() int {
	bytes, _ := limit()
	return bytes
}

// Free returns how many more bytes of memory data may take: Limit minus the heap in use, and minus an eighth of Limit
// for garbage and for memory outside the heap.
func Free() int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}} // at the end of the last collection
	metrics.Read(live)
	free := Limit() - Limit()/8
	return free - min(free, int(live[0].Value.Uint64()))
}

// LimitText returns Limit in words, and names the limit if it isn't the machine's memory.
func LimitText() string {
	bytes, by := limit()
	return text.Bytes(bytes) + by
}

// Check returns an error if the sum of its arguments is larger than Limit.
func Check(bytes ...int) error {
	sum := 0
	for _, n := range bytes {
		sum += min(n, math.MaxInt-sum)
	}
	if sum <= Limit() {
		return nil
	}
	return fmt.Errorf("this takes %s of memory, but there is only %s: choose smaller sizes", text.Bytes(sum), LimitText())
}
