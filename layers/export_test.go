package layers

// Spoil makes b fill freed memory with NaN, in float32 and float64. An op that reads freed memory then returns NaN.
func (b *Buffers) Spoil() {
	b.memory.Freed = func(words []uint64) {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}
}
