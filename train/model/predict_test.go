package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/must"
)

// The n likeliest choices must be those of an exhaustive search.
func TestExtended(t *testing.T) {
	const positions, classes = 4, 3
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([][]float32, positions)
	var logProbs []float64
	for i := range logits {
		for range classes {
			logits[i] = append(logits[i], float32(rng.NormFloat64()))
		}
	}
	for n := range 81 {
		sum := 0.0
		for i := range logits {
			class, logProb := logit.Likeliest(logits[i])
			sum += logProb + float64(logits[i][n%classes]-logits[i][class])
			n /= classes
		}
		logProbs = append(logProbs, sum)
	}
	slices.SortFunc(logProbs, func(a, b float64) int { return cmp.Compare(b, a) })
	for _, n := range []int{0, 1, 2, 5, 30, 81, 1000} {
		choices := []choice{{}}
		for i := range logits {
			choices = extended(choices, logits[i], n)
		}
		if len(choices) != min(max(n, 1), 81) {
			t.Errorf("got %d choices, want %d", len(choices), n)
		}
		for i, c := range choices {
			if len(c.targets) != positions || math.Abs(c.logProb-logProbs[i]) > 1e-12 {
				t.Errorf("choice %d of %d is %+v, want the log probability %v", i, n, c, logProbs[i])
			}
		}
	}
}

// A freeList must keep the predictors used last, up to its limit of tokens, and never return one twice.
func TestFreeList(t *testing.T) {
	limit := freeBatches * runtime.GOMAXPROCS(0) * batchTokens
	var l freeList
	leave := func(width, tokens int) {
		l.leave(freePredictor{batchShape{width: width}, func(context.Context, []query) error { return nil }, tokens})
	}
	kept := func(want ...int) {
		t.Helper()
		var widths []int
		tokens := 0
		for _, p := range l.free {
			widths, tokens = append(widths, p.shape.width), tokens+p.tokens
		}
		if !slices.Equal(widths, want) || tokens != l.tokens {
			t.Fatalf("kept the widths %v with %d tokens (tokens is %d), want the widths %v", widths, tokens, l.tokens, want)
		}
	}
	leave(1, limit/2)
	leave(2, limit/4)
	leave(1, limit/4)
	kept(1, 2, 1)
	if l.take(batchShape{width: 3}) != nil || l.take(batchShape{width: 1}) == nil {
		t.Fatal("take found width 3, or didn't find width 1")
	}
	kept(1, 2)
	leave(4, limit/2)
	kept(2, 4)
	leave(5, 2*limit) // above the limit, as one long row may be
	kept(5)
	if l.take(batchShape{width: 5}) == nil || l.take(batchShape{width: 5}) != nil {
		t.Fatal("take found width 5 twice, or not at all")
	}
	kept()
}

// failing is a network whose predictor fails.
type failing struct {
	network
	fail func()
}

func (f failing) predictor(batchShape) (predictor, error) {
	f.fail()
	return nil, nil
}

// A panic of a network, on a goroutine of the model, is passed on.
func TestPanicOfNetwork(t *testing.T) {
	m := ruleModel(t, "reverse")
	m.Network = failing{m.Network, func() { panic("no graph") }}
	defer func() {
		if x := fmt.Sprint(recover()); !strings.Contains(x, "no graph") || !strings.Contains(x, "predict_test.go") {
			t.Errorf("got the panic %v, want one that says no graph and has the stack", x)
		}
	}()
	_, err := m.PredictAll(t.Context(), []string{"gorgonia"}, PredictOptions{})
	t.Errorf("got error %v, want a panic", err)
}

// The end of a goroutine of the model is an error.
func TestGoexitOfNetwork(t *testing.T) {
	m := ruleModel(t, "reverse")
	m.Network = failing{m.Network, runtime.Goexit}
	must.Refuse(m.PredictAll(t.Context(), []string{"gorgonia"}, PredictOptions{}))(t, "runtime.Goexit")
}
