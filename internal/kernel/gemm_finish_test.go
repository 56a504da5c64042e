package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/kernel/internal/portable"
	"github.com/heed-go/heed/internal/testseed"
)

// TestGemmFinish compares finished products with the same operations one after the other, bit by bit.
func TestGemmFinish(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(testseed.Of(t), 1))
		for _, s := range [][3]int{{1, 50, 40}, {7, 1, 3}, {5, 33, 0}, {64, 96, 600}, {130, 257, 70}, {40, 100, 1100}} {
			checkFinish[float64](t, r, s[0], s[1], s[2])
			checkFinish[float32](t, r, s[0], s[1], s[2])
		}
	})
}

func checkFinish[F Float](t *testing.T, r *rand.Rand, m, n, k int) {
	t.Helper()
	normals := func(n int) []F { return drawn[F](n, r.NormFloat64) }
	a, b, before, plus, bias := normals(m*k), normals(k*n), normals(m*n), normals(m*n), normals(n)
	forms := 8
	if portable.Is32[F]() {
		forms = 16
	}
	for form := range forms {
		if testseed.LeftOut(fmt.Sprint(m, n, k, form)) {
			continue
		}
		product := func(cores int, c []F, f *Finish[F]) {
			GemmFinish(cores, false, true, m, n, k, 2, a, k, b, k, 1, c, f, nil)
		}
		if x, ok := any(a).([]float32); ok && form&8 != 0 {
			product = func(cores int, c []F, f *Finish[F]) {
				GemmBFloat16(cores, false, true, m, n, k, 2, x, k, any(b).([]float32), k, 1, any(c).([]float32), n, any(f).(*Finish[float32]), nil)
			}
		}
		want := slices.Clone(before)
		product(1, want, nil)
		var finish Finish[F]
		if form&1 != 0 {
			finish.Plus = plus
			Add(1, want, want, plus)
		}
		if form&2 != 0 {
			finish.Bias = bias
			AddRow(1, want, bias)
		}
		wantY := make([]F, m*n)
		if form&4 != 0 {
			finish.Activation = GELU[F]
			GELU(1, wantY, want)
		}
		cores, c, y := 1+form%3, slices.Clone(before), make([]F, m*n)
		finish.Y = y
		product(cores, c, &finish)
		if !slices.Equal(c, want) || !slices.Equal(y, wantY) {
			t.Errorf("(%d, %d) x (%d, %d) of %T, form %d, %d cores: the finished product differs from the separate operations", m, k, k, n, a, form, cores)
		}
	}
}
