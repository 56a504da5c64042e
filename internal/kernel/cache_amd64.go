//go:build !noasm

package kernel

// cpuid returns the processor's answer to the instruction CPUID for a leaf and a part of it.
func cpuid(leaf, part uint32) (eax, ebx, ecx, edx uint32)

// secondCache returns the size of a core's second cache in bytes, or 512 KiB if the processor doesn't report it.
//
// Intel's processors list their caches in leaf 4 and AMD's in leaf 0x8000001D, in the same form: see the description of
// CPUID in Intel's and AMD's manuals.
func secondCache() int {
	for _, leaf := range []uint32{4, 0x8000001d} {
		if last, _, _, _ := cpuid(leaf&0x80000000, 0); last < leaf {
			continue
		}
		for part := range uint32(8) {
			eax, ebx, ecx, _ := cpuid(leaf, part)
			kind, level := eax&31, eax>>5&7
			if kind == 0 { // no more caches
				break
			}
			if level == 2 && kind != 2 { // kind 2 holds only instructions
				line, sectors, ways := ebx&0xfff+1, ebx>>12&0x3ff+1, ebx>>22+1
				return int(line) * int(sectors) * int(ways) * (int(ecx) + 1)
			}
		}
	}
	return 512 << 10
}

// gemmBand returns the number of rows whose part of A takes half of the second cache: whole tiles of the given height.
// A row takes rowBytes.
func gemmBand(cache, height, rowBytes int) int {
	return min(max(cache/2/rowBytes, 96), 320) / height * height
}
