package kernel

import (
	"sync"
	"unsafe"
)

// take returns an object from the pool, or a new T if the pool is empty.
func take[T any](p *sync.Pool) *T {
	if t, ok := p.Get().(*T); ok {
		return t
	}
	return new(T)
}

// grown returns x with the given length, or new memory if x's capacity is too small.
func grown[T any](x []T, size int) []T {
	if cap(x) < size {
		return make([]T, size)
	}
	return x[:size]
}

// aligned returns x with at least the given length, or new memory if x is too short. It begins where a line of the
// cache begins, if x is nil or comes from this function.
func aligned[T uint16 | float32](x []T, size int) []T {
	if len(x) >= size {
		return x
	}
	const line = 64
	each := int(unsafe.Sizeof(x[0]))
	x = make([]T, size+line/each)
	past := int(uintptr(unsafe.Pointer(&x[0])) % line)
	return x[(line-past)%line/each:]
}
