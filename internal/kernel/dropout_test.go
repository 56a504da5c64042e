package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
)

// TestVectorDropout checks that every body drops the same elements.
func TestVectorDropout(t *testing.T) {
	eachBody(t, testDropout[float32], testDropout[float64])
}

func testDropout[F Float](t *testing.T) {
	var o operands[F]
	for n := range 101 {
		keep := o.random(t, n)
		bodyOf[F]().dropout(keep, 0xdeadbeef, 0x12345678, 0x90000000, 2)
		for i, v := range keep {
			if dropped := portable.DropoutBits(uint32(i), 0xdeadbeef, 0x12345678) < 0x90000000; dropped != (v == 0) || !dropped && v != 2 {
				t.Fatalf("element %d of %d is %v, want 0 if dropped, else 2; dropped: %t", i, n, v, dropped)
			}
		}
		o.intact(t, "dropout")
	}
}

// TestDropoutFill compares parts of a mask with the whole mask. The parts lie at the edges of blocks and across them.
func TestDropoutFill(t *testing.T) {
	eachBody(t, testDropoutFill[float32], testDropoutFill[float64])
}

func testDropoutFill[F Float](t *testing.T) {
	const p, seed, stream, run = 0.3, 5, 6, 7
	whole := make([]F, 2*grain+1000)
	DropoutMask(0, whole, p, seed, stream, run)
	d := dropoutOf[F](p, seed, stream, run)
	check := func(from, stop int) {
		t.Helper()
		keep := make([]F, stop-from)
		d.fill(bodyOf[F](), keep, uint64(from))
		if !slices.Equal(keep, whole[from:stop]) {
			t.Fatalf("elements %d to %d differ from the whole mask", from, stop)
		}
	}
	check(0, len(whole))
	for _, edge := range []int{0, 1, 17, grain, 2 * grain, len(whole)} {
		for n := range 70 {
			check(max(0, edge-n), edge)
			check(max(0, edge-n), min(edge+33, len(whole)))
			check(edge, min(edge+n, len(whole)))
		}
	}
}

// TestDropoutIsRandom looks for correlation between elements at several distances, and between runs, streams and seeds.
func TestDropoutIsRandom(t *testing.T) {
	const n = 1 << 18
	make2 := func(seed, stream, run uint64) []float32 {
		keep := make([]float32, n)
		DropoutMask(0, keep, 0.5, seed, stream, run)
		return keep
	}
	x := make2(1, 2, 3)
	agree := func(what string, x, y []float32) {
		same := 0
		for i := range x {
			if x[i] == y[i] {
				same++
			}
		}
		if d := math.Abs(float64(same) - float64(len(x))/2); d > 5*math.Sqrt(float64(len(x)))/2 {
			t.Errorf("%s: %d of %d elements agree, want about half", what, same, len(x))
		}
	}
	for _, lag := range []int{1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 512, 4096, grain, 2 * grain} {
		agree(fmt.Sprint("lag ", lag), x[:n-lag], x[lag:])
	}
	agree("another run", x, make2(1, 2, 4))
	agree("another stream", x, make2(1, 3, 3))
	agree("another seed", x, make2(2, 2, 3))
}

func TestDropoutMask(t *testing.T) {
	for _, p := range []float64{0, 1e-12, 0.25, 0.999999} {
		keep := normals[float64](1, 50000)
		DropoutMask(0, keep, p, 1, 2, 3)
		zeros := 0.0
		for _, v := range keep {
			if v == 0 {
				zeros++
			} else if v != 1/(1-p) {
				t.Fatalf("p %v: a kept element has the factor %v, want %v", p, v, 1/(1-p))
			}
		}
		if d := math.Abs(zeros - 50000*p); d > 5*math.Sqrt(50000*p*(1-p))+1 {
			t.Errorf("p %v: %v of 50000 dropped, want about %v", p, zeros, 50000*p)
		}
	}
}
