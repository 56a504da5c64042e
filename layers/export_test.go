package layers

// Spoil makes whatever nothing is to read any more NaN, in float32 and float64 alike.
func (b *Buffers) Spoil() {
	b.memory.Freed = func(words []uint64) {
		for i := range words {
			words[i] = ^uint64(0)
		}
	}
}
