package memory

import "runtime"

// HeapInUse returns the size of the heap in use, in bytes. It first collects garbage several times, because finalizers
// must run before their objects are freed. Tests use it to find leaks.
func HeapInUse() int {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
