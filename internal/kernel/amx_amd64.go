//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// amxSet returns base with AMX for products of float32 and of bfloat16.
func amxSet(base *instructionSet) *instructionSet {
	set := *base
	set.name += "+amx"
	// The order matters: only a processor with AMX needs the permission.
	set.runs = base.runs && amxPacks() && cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && amxPermitted()
	set.amx3 = &amxUnit{
		pieces: 3, pays: amxPays, along: amxAlong3AVX512, across: amxAcross3AVX512, transpose: amxTransposeAVX512, tile: amxTile3AVX512,
	}
	set.amx1 = &amxUnit{
		pieces: 1, pays: amxPaysBFloat16, along: amxAlong1AVX512, across: amxAcross1AVX512, transpose: amxTransposeAVX512, tile: amxTile1AVX512,
	}
	return &set
}

// amxPacks reports whether this processor can pack panels for AMX.
func amxPacks() bool { return cpu.X86.HasAVX512BW && cpu.X86.HasAVX512BF16 }

// These functions are in amx_pack_amd64.s and amx_tile_amd64.s; see amxUnit.

//go:noescape
func amxAlong3AVX512(dst []uint16, src []float32, ld, blocks int, e *amxExtremes)

//go:noescape
func amxAlong1AVX512(dst []uint16, src []float32, ld, blocks int, e *amxExtremes)

//go:noescape
func amxAcross3AVX512(dst []uint16, src []float32, ld, blocks int, e *amxExtremes)

//go:noescape
func amxAcross1AVX512(dst []uint16, src []float32, ld, blocks int, e *amxExtremes)

//go:noescape
func amxTransposeAVX512(panel []uint16)

//go:noescape
func amxTile3AVX512(t *amxTile)

//go:noescape
func amxTile1AVX512(t *amxTile)
