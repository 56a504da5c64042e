//go:build !noasm

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// init lets tests use AMX if the command amxrun runs them; see its comment.
func init() {
	if os.Getenv("HEED_AMX_EMULATED") != "" {
		instructionSets[0].runs = instructionSets[1].runs && amxPacks()
	}
}

// TestAMXTiles compares tiles in assembly with those in Go.
func TestAMXTiles(t *testing.T) {
	if !instructionSets[0].runs {
		t.Skip("this processor can't run AMX")
	}
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 5))
	tiles := map[int]func(t *amxTile){3: amxTile3AVX512, 1: amxTile1AVX512}
	for _, pieces := range []int{3, 1} {
		model := amxModel(pieces, amxPays)
		for try := range testseed.Cases(16) {
			tile := amxTile{
				terms: 1 + r.IntN(4), rows: 1 + r.IntN(70), cols: 1 + r.IntN(32), begun: try & 1, update: min(1, r.IntN(4)), keep: r.IntN(2),
				alpha: float32(r.IntN(2)*3-2) / 4, beta: float32(r.IntN(3)) / 2, next: try / 2 % 2 * 4096,
			}
			if try == 0 {
				tile.rows, tile.cols, tile.alpha, tile.beta, tile.update = 64, 32, 1, 1, 1
			}
			tile.ldc = tile.cols + r.IntN(3)
			blocks := (tile.rows + 31) / 32
			draw := func(n int) []uint16 {
				x := guarded[uint16](t, 2*n)
				x = x[len(x)-n:]
				for i := range x {
					x[i] = uint16(math.Float32bits(float32(math.Ldexp(r.NormFloat64(), r.IntN(20)-r.IntN(2+try*8)))) >> 16)
				}
				return x
			}
			tile.a, tile.b = draw(blocks*pieces*tile.terms*1024), draw(pieces*tile.terms*1024)
			floats := func(n int) ([]float32, []float32) {
				x := guarded[float32](t, 4*n)
				x = x[len(x)-n:]
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				return x, slices.Clone(x)
			}
			var c, sums []float32
			tile.c, c = floats((tile.rows-1)*tile.ldc + tile.cols)
			tile.sums, sums = floats(blocks * 1024)
			other := tile
			other.c, other.sums = c, sums
			tiles[pieces](&tile)
			model.tile(&other)
			rows := tile.rows // of sums that are in C
			if tile.next == 0 {
				rows = (tile.rows-1)%32 + 1
			}
			for i := range sums {
				if i/32 >= rows || i%32 >= tile.cols {
					sums[i] = tile.sums[i]
				}
			}
			if !slices.Equal(tile.c, c) || !slices.Equal(tile.sums, sums) {
				t.Fatalf("%d pieces, %d terms, %dx%d, begun %d, update %d, keep %d, next %d: the bits differ", pieces, 32*tile.terms,
					tile.rows, tile.cols, tile.begun, tile.update, tile.keep, tile.next)
			}
		}
	}
}

// TestAMXProducts compares products on AMX with those on the unit in Go.
func TestAMXProducts(t *testing.T) {
	if !instructionSets[0].runs {
		t.Skip("this processor can't run AMX")
	}
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 10))
	for _, s := range [][3]int{{256, 256, 256}, {250, 190, 360}, {190, 160, 1100}} {
		m, n, k := s[0], s[1], s[2]
		number := func() float64 { return math.Ldexp(r.NormFloat64(), -r.IntN(60)) }
		a, b := drawn[float32](m*k, number), drawn[float32](k*n, number)
		var results [2][2][]float32 // of float32 and bfloat16, for both sets
		for i, set := range []*instructionSet{instructionSets[0], amxModelSet()} {
			use(t, set)
			if !set.amx3.pays(m, n, k) || !set.amx1.pays(m, n, k) {
				t.Fatalf("a product of %v doesn't use the unit", s)
			}
			c, d := make([]float32, m*n), make([]float32, m*n)
			Gemm(0, false, true, m, n, k, 1, a, k, b, k, 0, c, n)
			GemmBFloat16(0, true, false, m, n, k, 1, a, m, b, n, 0, d, n, nil, nil)
			results[i] = [2][]float32{c, d}
		}
		if !slices.Equal(results[0][0], results[1][0]) || !slices.Equal(results[0][1], results[1][1]) {
			t.Errorf("%v: the bits differ", s)
		}
	}
}

// TestPacksOfAssembly compares the packing in assembly with the one in Go.
func TestPacksOfAssembly(t *testing.T) {
	if !amxPacks() {
		t.Skip("this processor has no AVX512BW or no AVX512_BF16")
	}
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 4))
	units := map[int]*amxUnit{
		3: {along: amxAlong3AVX512, across: amxAcross3AVX512, transpose: amxTransposeAVX512},
		1: {along: amxAlong1AVX512, across: amxAcross1AVX512, transpose: amxTransposeAVX512},
	}
	for pieces, unit := range units {
		model := amxModel(pieces, amxPays)
		for _, blocks := range []int{1, 2, 3, amxRun / bfloat16Terms} {
			for try := range testseed.Cases(12) {
				t.Run(fmt.Sprint(pieces, blocks, try), func(t *testing.T) {
					lines, width := amxSide, 32*blocks
					if try%2 == 1 {
						lines, width = width, lines
					}
					ld := width + r.IntN(3)*7
					src := guarded[float32](t, 4*((lines-1)*ld+width))
					src = src[len(src)-(lines-1)*ld-width:]
					for i := range src {
						src[i] = math.Float32frombits(r.Uint32())
						if x := src[i]; x != x && (pieces == 3 || try%3 > 0) || try%4 == 3 && r.IntN(2) == 0 {
							src[i] = float32(r.NormFloat64())
						}
					}
					var got, want [3 * amxSide * amxRun]uint16
					var e, f amxExtremes
					e.reset()
					f.reset()
					size := blocks * 1024 * pieces
					if try%2 == 0 {
						unit.along(got[:size], src, ld, blocks, &e)
						model.along(want[:size], src, ld, blocks, &f)
					} else {
						unit.across(got[:size], src, ld, blocks, &e)
						model.across(want[:size], src, ld, blocks, &f)
					}
					if try%4 > 1 {
						unit.transpose(got[:size])
						model.transpose(want[:size])
					}
					if e.overall() != f.overall() || !slices.Equal(got[:], want[:]) {
						t.Fatalf("%d blocks with ld %d: the range is %v, want %v, or a piece differs", blocks, ld, e.overall(), f.overall())
					}
				})
			}
		}
	}
}
