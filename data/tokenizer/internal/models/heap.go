package models

// Heap is a binary heap. Its first element is the smallest.
type Heap[T any] []T

// Push adds v.
func (h *Heap[T]) Push(v T, less func(a, b T) bool) {
	s := append(*h, v)
	i := len(s) - 1
	for i > 0 && less(s[i], s[(i-1)/2]) {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
		i = (i - 1) / 2
	}
	*h = s
}

// Pop removes the smallest element and returns it.
func (h *Heap[T]) Pop(less func(a, b T) bool) T {
	s := *h
	first, n := s[0], len(s)-1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if less(s[child], s[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
	return first
}

// Less orders numbers by size.
func Less(a, b uint64) bool { return a < b }
