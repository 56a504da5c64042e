package kernel

// grain is the number of elements per task if an element costs as much as an addition. Smaller tasks are not worth the
// hand-over to another goroutine.
const grain = 16384

// wakeWork is the least cost for which it is worthwhile to wake a sleeping helper.
const wakeWork = 1 << 17

// For matrix products and attention:
const (
	gemmTaskWork = 1 << 18 // least number of multiplications for which a separate task is worthwhile
	gemmWakeWork = 1 << 21 // least number of multiplications for which waking a sleeping helper is worthwhile
	gemmRowCost  = 4       // cost of a multiplication whose operand must come from memory, as a multiple of other ones
)

// rowsPerTask returns the number of rows per task for rows of the given width. The argument cost is the cost per
// element, where an addition costs 1.
func rowsPerTask(width, cost int) int { return max(1, grain/max(width*cost, 1)) }

// gemmEven divides n into the fewest equal parts of at most limit, and returns their size.
func gemmEven(n, limit int) int { return parts(n, parts(n, limit)) }

// parts returns the number of parts of n, each of the given size or less.
func parts(n, size int) int { return (n + size - 1) / size }

// roundUp returns the least multiple of unit that is at least n.
func roundUp(n, unit int) int { return parts(n, unit) * unit }
