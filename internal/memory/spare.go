package memory

import (
	"runtime/debug"
	"runtime/metrics"
)

// Spare reports whether the heap with this many more bytes takes at most half of Limit, and of Go's own limit
// (GOMEMLIMIT). Ask it about memory that only saves time.
func Spare(bytes int) bool {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return int64(heap[0].Value.Uint64())+int64(bytes) <= min(int64(Limit()), debug.SetMemoryLimit(-1))/2
}
