package layers

// Spoil fills freed memory with NaN, in float32 and float64 alike, so that a later read of it shows.
func (b *Buffers) Spoil() {
	b.memory.Freed = func(words []uint64) {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}
}
