package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"
)

// TestVectorMasks compares every body with the Go functions, bit by bit, for every length up to 100. Scores and biases
// include NaN and infinities.
func TestVectorMasks(t *testing.T) {
	eachBody(t, testMasks[float32], testMasks[float64])
}

func testMasks[F Float](t *testing.T) {
	body, inGo := bodyOf[F](), vectorPortable[F]()
	same := func(what string, got, want []F) {
		t.Helper()
		for i, x := range got {
			if w := want[i]; x != w && (x == x || w == w) || math.Signbit(float64(x)) != math.Signbit(float64(w)) && x == x {
				t.Fatalf("%s: element %d is %v, want %v", what, i, x, w)
			}
		}
	}
	inf, nan := F(math.Inf(1)), F(math.NaN())
	special := []F{inf, -inf, nan, 0, F(math.Copysign(0, -1)), 1.5}
	bools := guarded[float64](t, 64)
	var o operands[F]
	for n := range 101 {
		what := fmt.Sprintf("%d elements", n)
		scores, bias := o.random(t, n), o.random(t, n)
		for i := range scores {
			if i%2 == 0 {
				scores[i], bias[i] = special[i/2%len(special)], special[(i/2+n)/len(special)%len(special)]
			}
		}
		want := slices.Clone(scores)
		inGo.addBias(want, bias)
		body.addBias(scores, bias)
		same(what+" and a bias", scores, want)

		allow := unsafe.Slice((*bool)(unsafe.Pointer(&bools[0])), 8*len(bools))[8*len(bools)-n:] // up to the end of memory
		for pattern := range 4 {
			for i := range allow {
				allow[i] = []bool{false, true, i%3 > 0, i&(i>>2) == 0}[pattern]
			}
			scores, want := slices.Clone(bias), slices.Clone(bias)
			inGo.forbid(want, allow)
			body.forbid(scores, allow)
			same(what+", allowed or not", scores, want)
			copy(bias, want)
			body.forbid(bias, allow)
			same(what+", allowed or not", bias, want)
		}

		for _, d := range []F{0, 1, F(n / 2), -3, F(n), 1 << 24, F(n) - 1<<24} {
			for _, slope := range []F{0.3, -2, 0, inf} {
				scores := o.random(t, n)
				want := slices.Clone(scores)
				inGo.addSlope(want, slope, d)
				body.addSlope(scores, slope, d)
				same(fmt.Sprintf("%s, slope %v from %v", what, slope, d), scores, want)
			}
			o.intact(t, what)
		}
	}
}

// TestSlopesFarAway tests distances near and above the first integer that float32 can't represent.
func TestSlopesFarAway(t *testing.T) {
	eachBody(t, testSlopesFarAway[float32], testSlopesFarAway[float64])
}

func testSlopesFarAway[F Float](t *testing.T) {
	const n = 67
	scores := make([]F, n)
	for _, middle := range []int{0, 1 << 24, -1 << 24, 1 << 25, min(1<<53, MaxOffset), max(-1<<53, -MaxOffset), -MaxOffset, MaxOffset} {
		for p := middle - n - 2; p <= middle+2; p += 5 {
			m := Mask[F]{Shape: [4]int{1, 1, 1, n + 7}, Slopes: []F{0.5}, Offset: p}
			clear(scores)
			m.apply(scores, 0, 0, 0, 7)
			for i, x := range scores {
				d := p - (i + 7)
				if want := -0.5 * F(max(d, -d)); x != want {
					t.Fatalf("position %d, key %d: %v, want %v", p, i+7, x, want)
				}
			}
		}
	}
}
