package memory

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/heed-go/heed/internal/must"
)

// TestHuge asks for huge pages for the first half of new memory. After all of it has been written, the system says
// which half has huge pages.
func TestHuge(t *testing.T) {
	enabled, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if !bytes.Contains(enabled, []byte("[madvise]")) {
		t.Skipf("huge pages don't depend on advice here: %q", enabled)
	}
	const half = 16 << 20
	x := must.Get(syscall.Mmap(-1, 0, 2*half, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
	defer syscall.Munmap(x)
	Huge(x[:half])
	for i := 0; i < len(x); i += 4096 {
		x[i] = 1
	}
	if huge := hugeWithin(t, x[:half]); huge == 0 {
		t.Errorf("with the advice, none of %d bytes have huge pages", half)
	}
	if huge := hugeWithin(t, x[half:]); huge > 0 {
		t.Errorf("without the advice, %d bytes have huge pages", huge)
	}
	for _, n := range []int{0, 1, smallestHuge - 1} {
		if got := Huge(make([]byte, n)); len(got) != n {
			t.Errorf("Huge changes the length from %d to %d", n, len(got))
		}
	}
}

// hugeWithin returns how many bytes of the mappings within x have huge pages.
func hugeWithin(t *testing.T, x []byte) (total int) {
	t.Helper()
	maps := must.Get(os.ReadFile("/proc/self/smaps"))(t)
	first := uintptr(unsafe.Pointer(unsafe.SliceData(x)))
	within := false
	for line := range strings.Lines(string(maps)) {
		var from, until uintptr
		var kb int
		if n, _ := fmt.Sscanf(line, "%x-%x", &from, &until); n == 2 {
			within = from >= first && until <= first+uintptr(len(x))
		} else if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &kb); n == 1 && within {
			total += kb << 10
		}
	}
	return total
}

// BenchmarkHuge reads 64 MB in rows and in columns of 4096 numbers, as products do with a transposed matrix.
func BenchmarkHuge(b *testing.B) {
	const side = 4096
	for _, advised := range []bool{false, true} {
		data := must.Get(syscall.Mmap(-1, 0, 4*side*side, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE))(b)
		if advised {
			Huge(data)
		}
		x := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), side*side)
		clear(x)
		for _, by := range []struct {
			name         string
			outer, inner int
		}{{"rows", side, 1}, {"columns", 1, side}} {
			b.Run(fmt.Sprintf("%s/advised=%t", by.name, advised), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				var sum float32
				for b.Loop() {
					for i := range side {
						for j := range side {
							sum += x[i*by.outer+j*by.inner]
						}
					}
				}
				x[0] = sum - sum
			})
		}
		syscall.Munmap(data)
	}
}
