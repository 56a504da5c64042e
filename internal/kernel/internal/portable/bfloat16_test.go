package portable

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/heed-go/heed/internal/testseed"
)

// TestRoundBFloat16 compares the rounding of every upper half, with lower halves around the middle, with a search among
// the two neighbours.
func TestRoundBFloat16(t *testing.T) {
	for upper := range uint32(1 << 16) {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x := math.Float32frombits(upper<<16 | lower)
			got := RoundBFloat16(x)
			below, above := math.Float32frombits(upper<<16), math.Float32frombits((upper+1)<<16)
			want := below
			down, up := math.Abs(float64(x)-float64(below)), math.Abs(float64(above)-float64(x))
			if math.IsInf(float64(above), 0) { // the distance to 2¹²⁸, which would be next
				up = 0x1p128 - math.Abs(float64(x))
			}
			switch {
			case x != x:
				if got == got {
					t.Fatalf("NaN %#x becomes %v", upper<<16|lower, got)
				}
				continue
			case math.Abs(float64(x)) < 0x1p-126:
				want = float32(math.Copysign(0, float64(x)))
			case lower != 0 && (up < down || up == down && upper&1 == 1):
				want = above
			}
			if math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%v (%#x) becomes %v, want %v", x, upper<<16|lower, got, want)
			}
		}
	}
}

// exactFlushed rounds an exact number once to 24 bits, with any exponent, and flushes it.
func exactFlushed(x *big.Float) float32 {
	y, _ := new(big.Float).SetPrec(24).Set(x).Float64()
	if y != 0 && math.Abs(y) < 0x1p-126 {
		y = math.Copysign(0, y)
	}
	return float32(y)
}

// TestFlushedSums compares sums that TDPBF16PS computes with exact sums, rounded once. The exponents are such that many
// sums cancel, are halfway between numbers, are near the smallest or the largest number, or have terms far apart.
func TestFlushedSums(t *testing.T) {
	r := rand.New(rand.NewPCG(uint64(testseed.Of(t)), 1))
	number := func(bits, exponent int) float64 { // 1 to bits significant bits, often with runs of zeros and ones
		n := 1<<(bits-1) | r.Int64N(1<<(bits-1))
		switch r.IntN(3) {
		case 0:
			n = n >> r.IntN(bits) << r.IntN(bits) & (1<<bits - 1)
		case 1:
			n |= 1<<r.IntN(bits) - 1
		}
		return math.Ldexp(float64(n)*float64(1-2*r.IntN(2)), exponent-bits)
	}
	normal := func(x float64) float64 {
		if y := math.Abs(x); y != 0 && (y < 0x1p-126 || y > math.MaxFloat32) {
			return 0
		}
		return x
	}
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(x) }
	for range testseed.Cases(200_000) {
		base := []int{-125, -120, 0, 127}[r.IntN(4)]
		half := r.IntN(base/2 + 200)
		sum := normal(number(24, base+r.IntN(4)))
		a := normal(number(8, half-100))
		b := normal(number(8, base-half+100+4-r.IntN([]int{8, 60}[r.IntN(2)])))
		want := new(big.Float).SetPrec(600).Mul(exact(a), exact(b))
		want.Add(want, exact(sum))
		if got := Flushed(sum + a*b); want.Sign() != 0 && math.Float32bits(float32(got)) != math.Float32bits(exactFlushed(want)) {
			t.Fatalf("%x + %x·%x is %x, want %x", sum, a, b, got, exactFlushed(want))
		}
		other := normal(number(24, base+2-r.IntN([]int{4, 40}[r.IntN(2)])))
		want = new(big.Float).SetPrec(600).Add(exact(sum), exact(other))
		if got := Flushed(sum + other); want.Sign() != 0 && math.Float32bits(float32(got)) != math.Float32bits(exactFlushed(want)) {
			t.Fatalf("%x + %x is %x, want %x", sum, other, got, exactFlushed(want))
		}
	}
}

// TestTDPBF16PSOrder checks the order of the sums by results that depend on it.
func TestTDPBF16PSOrder(t *testing.T) {
	const big = 0x1p24 // the distance between numbers from here on is 2
	for name, tc := range map[string]struct {
		c    float32
		a    map[int]float32
		want float32
	}{
		"even terms":            {0, map[int]float32{0: big, 2: 1, 4: 1}, big},
		"odd terms":             {0, map[int]float32{1: big, 3: 1, 5: 1}, big},
		"small even terms last": {0, map[int]float32{1: big, 2: 1, 4: 1}, big + 2},
		"last term":             {0, map[int]float32{30: big, 31: 3}, big + 4},
		"products before c":     {big, map[int]float32{0: 1, 31: 1}, big + 2},
		"smallest number":       {0, map[int]float32{0: 0x1p-126, 1: -0x1.02p-126}, 0},
		"below the smallest":    {-0x1p-126, map[int]float32{7: 0x1.02p-126}, 0},
	} {
		var a, b [BFloat16Terms]float32
		for p := range b {
			a[p], b[p] = tc.a[p], 1
		}
		if got := TDPBF16PS(tc.c, a[:], 1, b[:], 1); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
