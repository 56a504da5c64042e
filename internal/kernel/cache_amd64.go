//go:build !noasm

package kernel

// cpuid returns the processor's answer to the instruction CPUID for a leaf and a part of it.
func cpuid(leaf, part uint32) (eax, ebx, ecx, edx uint32)

// dataCache returns the size in bytes of a core's cache for data at a level from 1, and the number of lines that a set
// of it holds. If the processor doesn't report them, they are 512 KiB and 8 lines.
//
// Intel's processors list their caches in leaf 4 and AMD's in leaf 0x8000001D, in the same form: see the description of
// CPUID in Intel's and AMD's manuals.
func dataCache(level uint32) (size, ways int) {
	for _, leaf := range []uint32{4, 0x8000001d} {
		if last, _, _, _ := cpuid(leaf&0x80000000, 0); last < leaf {
			continue
		}
		for part := range uint32(8) {
			eax, ebx, ecx, _ := cpuid(leaf, part)
			kind := eax & 31
			if kind == 0 { // no more caches
				break
			}
			if eax>>5&7 == level && kind != 2 { // kind 2 holds only instructions
				line, sectors, ways := ebx&0xfff+1, ebx>>12&0x3ff+1, ebx>>22+1
				return int(line) * int(sectors) * int(ways) * (int(ecx) + 1), int(ways)
			}
		}
	}
	return 512 << 10, 8
}

// gemmBand returns the number of rows whose part of A takes half of the second cache: whole tiles of the given height.
// A row takes rowBytes.
func gemmBand(cache, height, rowBytes int) int {
	return min(max(cache/2/rowBytes, 96), 320) / height * height
}
