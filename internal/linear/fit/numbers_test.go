package fit

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/must"
)

// lengths draws texts and numbers that depend on their words and on chance.
func lengths(n int) (texts []string, numbers []float64) {
	texts, labels := topics(2, n, 4)
	random := rand.New(rand.NewPCG(3, 0))
	for i, text := range texts {
		numbers = append(numbers, 1000+float64(100*labels[i]*strings.Count(text, "Topic"))+200*random.NormFloat64())
	}
	return texts, numbers
}

// explained returns R².
func explained(got []float32, want []float64) float64 {
	mean, rest, total := 0.0, 0.0, 0.0
	for _, x := range want {
		mean += x / float64(len(want))
	}
	for i, x := range want {
		rest += math.Pow(x-float64(got[i]), 2)
		total += math.Pow(x-mean, 2)
	}
	return 1 - rest/total
}

func TestNumbers(t *testing.T) {
	texts, numbers := lengths(600)
	train, test := linear.Texts(texts[:300]), linear.Texts(texts[400:])
	var want []float32
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 3} {
		runtime.GOMAXPROCS(cores)
		m, held, err := Numbers(t.Context(), train, numbers[:300], linear.Texts(texts[300:400]), numbers[300:400], Options{})
		must.Do(t, err)
		seen, out, unseen := explained(m.ScoresOf(train), numbers[:300]), explained(held.Scores, Pick(numbers, held.Rows)), explained(m.ScoresOf(test), numbers[400:])
		if seen < unseen+0.1 || unseen < 0.5 || math.Abs(out-unseen) > 0.1 {
			t.Errorf("got R² %g of rows seen, %g held out and %g of unseen rows, want more and two similar ones", seen, out, unseen)
		}
		if got := slices.Concat(weightsOf(m), held.Scores); want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("the results on %d cores differ from those on 1", cores)
		}
	}
}

// TestNumbersChoose says that held-out numbers choose the penalty if there are no validation rows.
func TestNumbersChoose(t *testing.T) {
	texts, numbers := lengths(300)
	fit := func(constants ...float64) []float32 {
		m, _, err := Numbers(t.Context(), linear.Texts(texts), numbers, linear.Rows{}, nil, Options{constants: constants})
		must.Do(t, err)
		return weightsOf(m)
	}
	if !slices.Equal(fit(1e6, 1, 1e5), fit(1)) {
		t.Error("expected the penalty 1 to be chosen")
	}
}

func TestNumbersRefuse(t *testing.T) {
	two := linear.Texts([]string{"a", "b"})
	for _, test := range []struct {
		numbers []float64
		want    string
	}{
		{[]float64{1}, "got 1 numbers"},
		{[]float64{1, math.NaN()}, "got NaN for training row 1"},
		{[]float64{math.Inf(-1), 1}, "got -Inf"},
		{[]float64{1, 1e31}, "got 1e+31"},
	} {
		_, _, err := Numbers(t.Context(), two, test.numbers, linear.Rows{}, nil, Options{})
		must.Fail(t, err, test.want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Numbers(ctx, two, []float64{1, 2}, linear.Rows{}, nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// TestNumbersWithoutFeatures fits texts that have no n-gram in common, and large numbers.
func TestNumbersWithoutFeatures(t *testing.T) {
	m, held, err := Numbers(t.Context(), linear.Texts([]string{"a", "b"}), []float64{1e30, -1e30}, linear.Rows{}, nil, Options{Grams: linear.Grams{Characters: [2]int{2, 3}}})
	must.Do(t, err)
	if got := m.ScoresOf(linear.Texts([]string{"a", "c"})); !slices.Equal(got, []float32{0, 0}) || !slices.Equal(held.Scores, []float32{float32(Pick([]float64{-1e30, 1e30}, held.Rows)[0]), float32(Pick([]float64{-1e30, 1e30}, held.Rows)[1])}) {
		t.Errorf("got %v, and %v held out", got, held)
	}
}
