package layers_test

import (
	"math"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// rotaryScalings lists one scaling of each kind, for models trained on short sequences.
var rotaryScalings = []layers.RotaryScaling{
	{Kind: "linear", Factor: 3},
	{Kind: "ntk", Factor: 3},
	{Kind: "yarn", Factor: 4, OriginalLen: 12, High: 1.5, Magnitude: 1.25},
	{Kind: "llama3", Factor: 4, OriginalLen: 12, Low: 0.5, High: 1.5},
}

// turnedUnits returns the cosine and sine of each pair's angle at a position.
func turnedUnits(t *testing.T, r layers.Rotary, width, position int) (cos, sin []float64) {
	c := newBench(t)
	x := make([]float64, width)
	for i := range width / 2 {
		x[i] = 1
	}
	r.Offset = position
	got := read(t, c.node(r.Rotate(c.b, input(c.g, "x", dense(x, 1, width)), 1, nil)))[0]
	return got[:width/2], got[width/2:]
}

// TestRotaryScalingOfOne checks that a Factor of 1 gives the same bits as no scaling.
func TestRotaryScalingOfOne(t *testing.T) {
	for _, width := range []int{4, 64} {
		for _, position := range []int{0, 1, 77, 100_000} {
			cos, sin := turnedUnits(t, layers.Rotary{}, width, position)
			for i := range width / 2 {
				s, c := math.Sincos(float64(position) * math.Pow(10000, -float64(2*i)/float64(width)))
				if cos[i] != c || sin[i] != s {
					t.Errorf("width %d, position %d, pair %d: %v and %v, want %v and %v", width, position, i, cos[i], sin[i], c, s)
				}
			}
			for _, s := range rotaryScalings {
				s.Factor, s.Magnitude = 1, 0
				scaledCos, scaledSin := turnedUnits(t, layers.Rotary{Scaling: s}, width, position)
				near(t, s.Kind+" cosines", scaledCos, cos, 1e-9)
				near(t, s.Kind+" sines", scaledSin, sin, 1e-9)
			}
		}
	}
}

// TestRotaryScalingEnds compares the angles of the first and the last pair with the formulas in the papers.
func TestRotaryScalingEnds(t *testing.T) {
	const width, position, factor = 64, 3, 8.0
	slow := math.Pow(10000, -62.0/64)
	for _, tc := range []struct {
		scaling     layers.RotaryScaling
		first, last float64 // angles per position
	}{
		{layers.RotaryScaling{Kind: "linear", Factor: factor}, 1 / factor, slow / factor},
		{layers.RotaryScaling{Kind: "ntk", Factor: factor}, 1, slow / factor},
		{layers.RotaryScaling{Kind: "yarn", Factor: factor, OriginalLen: 4096, Magnitude: 1}, 1, slow / factor},
		{layers.RotaryScaling{Kind: "llama3", Factor: factor, OriginalLen: 4096}, 1, slow / factor},
		{layers.RotaryScaling{Kind: "yarn", Factor: factor, OriginalLen: 1, Low: 200, High: 400, Magnitude: 1}, 1, slow / factor}, // scales all pairs but the first
		{layers.RotaryScaling{Kind: "yarn", Factor: factor, OriginalLen: math.MaxInt, Magnitude: 1}, 1, slow},                     // scales no pair
		{layers.RotaryScaling{Kind: "llama3", Factor: factor, OriginalLen: 1}, 1 / factor, slow / factor},                         // scales all pairs
		{layers.RotaryScaling{Kind: "llama3", Factor: factor, OriginalLen: math.MaxInt}, 1, slow},
	} {
		cos, sin := turnedUnits(t, layers.Rotary{Scaling: tc.scaling}, width, position)
		near(t, tc.scaling.Kind+": the ends", []float64{cos[0], sin[0], cos[31], sin[31]}, []float64{
			math.Cos(position * tc.first), math.Sin(position * tc.first), math.Cos(position * tc.last), math.Sin(position * tc.last),
		}, 1e-12)
	}
}

func TestRotaryScalingErrors(t *testing.T) {
	yarn := func(change func(*layers.RotaryScaling)) layers.Rotary {
		s := layers.RotaryScaling{Kind: "yarn", Factor: 4, OriginalLen: 12}
		change(&s)
		return layers.Rotary{Scaling: s}
	}
	for _, tc := range []struct {
		name   string
		rotary layers.Rotary
		want   []string
	}{
		{"kind", layers.Rotary{Scaling: layers.RotaryScaling{Kind: "dynamic", Factor: 2}}, []string{"Kind", "yarn", `"dynamic"`}},
		{"no kind", layers.Rotary{Scaling: layers.RotaryScaling{Factor: 2}}, []string{"Kind", `""`, "Factor:2"}},
		{"linear with a length", layers.Rotary{Scaling: layers.RotaryScaling{Kind: "linear", Factor: 2, OriginalLen: 3}}, []string{"linear", "OriginalLen:3"}},
		{"llama3 with a magnitude", layers.Rotary{Scaling: layers.RotaryScaling{Kind: "llama3", Factor: 2, OriginalLen: 3, Magnitude: 2}}, []string{"llama3", "Magnitude:2"}},
		{"ntk of one pair", layers.Rotary{Dim: 2, Scaling: layers.RotaryScaling{Kind: "ntk", Factor: 2}}, []string{"ntk", "2 pairs", "got 1"}},
		{"no factor", yarn(func(s *layers.RotaryScaling) { s.Factor = 0 }), []string{"Factor", "from 1 to", "got 0"}},
		{"factor NaN", yarn(func(s *layers.RotaryScaling) { s.Factor = math.NaN() }), []string{"Factor", "NaN"}},
		{"factor infinite", yarn(func(s *layers.RotaryScaling) { s.Factor = inf }), []string{"Factor", "to 1e+15", "Inf"}},
		{"no length", yarn(func(s *layers.RotaryScaling) { s.OriginalLen = 0 }), []string{"OriginalLen", "at least 1", "got 0"}},
		{"low", yarn(func(s *layers.RotaryScaling) { s.Low = -1 }), []string{"Low", "above 0", "-1"}},
		{"high below low", yarn(func(s *layers.RotaryScaling) { s.Low = 40 }), []string{"High", "above Low", "40 and 32"}},
		{"high infinite", yarn(func(s *layers.RotaryScaling) { s.High = inf }), []string{"High", "at most 1e+15"}},
		{"high NaN", yarn(func(s *layers.RotaryScaling) { s.High = math.NaN() }), []string{"High", "NaN"}},
		{"magnitude", yarn(func(s *layers.RotaryScaling) { s.Magnitude = -1 }), []string{"Magnitude", "above 0", "-1"}},
		{"magnitude NaN", yarn(func(s *layers.RotaryScaling) { s.Magnitude = math.NaN() }), []string{"Magnitude", "NaN"}},
		{"base", layers.Rotary{Base: 1, Scaling: layers.RotaryScaling{Kind: "yarn", Factor: 2, OriginalLen: 3}}, []string{"Base above 1", "got 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newBench(t)
			must.Refuse(tc.rotary.Rotate(c.b, c.in("x", 3, 8), 1, nil))(t, append(tc.want, "rotary positions: Scaling")...)
			must.Refuse(tc.rotary.New(newParams(t), 8, layers.AttentionConfig{}))(t, append(tc.want, "rotary positions: Scaling")...)
		})
	}
}
