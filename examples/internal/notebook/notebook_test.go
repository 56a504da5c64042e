package notebook

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestFormat compares layouts with numpy's output in the notebooks.
func TestFormat(t *testing.T) {
	inf := math.Inf(-1)
	for _, c := range []struct {
		name, want string
		values     []float64
		shape      []int
	}{
		{"zeros are dropped", "[[1. 0.]\n [1. 1.]]", []float64{1, 0, 1, 1}, []int{2, 2}},
		{"columns are padded", "[[ 0.30984662 -0.428045  ]\n [ 0.63647349  7.43765164]]",
			[]float64{0.309846623, -0.428045, 0.63647349, 7.43765164}, []int{2, 2}},
		{"infinities", "[[  0. -inf]\n [  0.   0.]]", []float64{0, inf, 0, 0}, []int{2, 2}},
		{"infinities in wide columns", "[[-0.15038213        -inf]\n [ 0.84793479  0.23422892]]",
			[]float64{-0.15038213, inf, 0.84793479, 0.23422892}, []int{2, 2}},
		{"long rows are broken", `[[-0.73302907  0.59482344  0.87388035  0.53343665 -0.14270126 -0.52265778
   1.398796   -0.66534455]]`,
			[]float64{-0.73302907, 0.59482344, 0.87388035, 0.53343665, -0.14270126, -0.52265778, 1.398796, -0.66534455}, []int{1, 8}},
		{"powers of ten", `[[-1.16632699e-01  2.55035812e+00]
 [ 1.57809855e-03 -2.81045186e+00]]`, []float64{-0.116632699, 2.55035812, 0.00157809855, -2.81045186}, []int{2, 2}},
		{"three axes", "[[[1. 2.]\n  [3. 4.]]\n\n [[5. 6.]\n  [7. 8.]]]", []float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{2, 2, 2}},
	} {
		if got := Format(c.values, c.shape...); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if back := Printed(c.want, c.shape...); Format(back.Data().([]float64), c.shape...) != c.want {
			t.Errorf("%s: Printed reads other numbers than Format has written", c.name)
		}
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	Print(&b, "weights", tensor.New(tensor.WithShape(1, 1, 1, 2), tensor.WithBacking([]float64{0.25, 0.75})))
	Print(&b, "variance", tensor.New(tensor.FromScalar(0.5)))
	if got, want := b.String(), "weights\n[[0.25 0.75]]\nvariance: 0.5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	Table(&b, []string{"a", "où"}, []string{"longer", "x"}, []float64{0.125, 1, 0, 0.5}, 2)
	if got, want := b.String(), "    longer       x\na     0.12    1.00\noù    0.00    0.50\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStages(t *testing.T) {
	g := G.NewGraph()
	x := Input(g, "x", Matrix(2, 2, 1, 2, 3, 4))
	var s Stages
	s.Add("x", x)
	s.Add("variance", Variance(x))
	s.Add("x·I", G.Must(G.Mul(x, Input(g, "I", Eye(2)))))
	must.Do(t, s.Run())
	var b strings.Builder
	s.Print(&b)
	if got, want := b.String(), "x\n[[1. 2.]\n [3. 4.]]\nvariance: 1.25\nx·I\n[[1. 2.]\n [3. 4.]]\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCausal(t *testing.T) {
	if got, want := Format(Causal(3, 0, math.Inf(-1)).Data().([]float64), 3, 3), "[[  0. -inf -inf]\n [  0.   0. -inf]\n [  0.   0.   0.]]"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDraw(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		name           string
		draw           func(*rand.Rand, ...int) *tensor.Dense
		mean, variance float64
	}{{"Randn", Randn, 0, 1}, {"Rand", Rand, 0.5, 1. / 12}} {
		x := c.draw(Source(3), n, 1).Data().([]float64)
		if !slices.Equal(x, c.draw(Source(3), n).Data().([]float64)) || slices.Equal(x, c.draw(Source(4), n).Data().([]float64)) {
			t.Errorf("%s: two calls with one seed differ, or calls with two seeds agree", c.name)
		}
		if mean, variance := stat.MeanVariance(x, nil); math.Abs(mean-c.mean) > 0.02 || math.Abs(variance-c.variance) > 0.02 {
			t.Errorf("%s: the mean is %v, the variance %v, want %v and %v", c.name, mean, variance, c.mean, c.variance)
		}
	}
}

func TestSet(t *testing.T) {
	p := must.Get(layers.NewParams(tensor.Float64, 1))(t)
	w := must.Get(p.New("w", layers.Zeros(), 2, 2))(t)
	if Set(w, Matrix(2, 2, 1, 2, 3, 4)); !slices.Equal(w.Value.Float64s(), []float64{1, 2, 3, 4}) {
		t.Errorf("got %v", w.Value)
	}
}
