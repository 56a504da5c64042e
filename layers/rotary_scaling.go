package layers

import (
	"cmp"
	"fmt"
	"math"

	"github.com/heed-go/heed/internal/ops"
)

// RotaryScaling slows the rotation of a Rotary, so that a model can read sequences that are Factor times as long as in
// training. It corresponds to rope_scaling in Hugging Face's configuration files. Without scaling, pair i rotates by
// f_i = Base^(−2i/Dim) per position; a slowed pair rotates by f_i/Factor. The kinds are
//
//   - "linear": every pair is slowed (Chen et al., 2023, Position Interpolation);
//   - "ntk": Base becomes Base·Factor^(Dim/(Dim−2)), which slows the last pair by Factor and doesn't change the first
//     (bloc97, 2023, NTK-aware scaling). Hugging Face's "dynamic" scaling with factor s, for sequences of length L, is
//     "ntk" with Factor = s·L/OriginalLen − (s − 1);
//   - "yarn": pairs that make at least High full turns within OriginalLen positions don't change, and pairs that make
//     at most Low turns are slowed. Between them the speed is interpolated by the pair's index. Rotated queries and
//     keys are multiplied by Magnitude (Peng et al., 2023, YaRN);
//   - "llama3": like "yarn", but interpolated by the pair's number of turns, and without Magnitude (Llama 3.1, 2024).
//
// The zero RotaryScaling changes nothing. Rotary.New returns an error if a field is set that the kind doesn't use.
type RotaryScaling struct {
	Kind   string  `json:"kind"`
	Factor float64 `json:"factor"` // at least 1

	OriginalLen int     `json:"original_len,omitzero"` // longest sequence in training, for "yarn" and "llama3"
	Low         float64 `json:"low,omitzero"`          // 1 if 0; Hugging Face's beta_slow or low_freq_factor
	High        float64 `json:"high,omitzero"`         // if 0, 32 for "yarn" and 4 for "llama3"; Hugging Face's beta_fast or high_freq_factor

	// Magnitude is the factor for rotated queries and keys; the scores are multiplied by its square. 0 means
	// 0.1·ln(Factor) + 1. Hugging Face calls it attention_factor. If a file has mscale k and mscale_all_dim m instead,
	// set Magnitude to (0.1·k·ln(Factor) + 1)/(0.1·m·ln(Factor) + 1).
	Magnitude float64 `json:"magnitude,omitzero"`

	// Unrounded lets the interpolation of "yarn" begin and end between two pairs. In Hugging Face, this is truncate:
	// false.
	Unrounded bool `json:"unrounded,omitzero"`
}

// check returns an error if s is invalid for a Rotary that rotates dim elements.
func (s RotaryScaling) check(layer string, dim int, base float64) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: Scaling: "+format, append([]any{layer}, args...)...)
	}
	unused := s
	unused.Kind = ""
	switch s.Kind {
	case "":
	case "linear", "ntk":
		unused.Factor = 0
	case "llama3":
		unused.Factor, unused.OriginalLen, unused.Low, unused.High = 0, 0, 0, 0
	case "yarn":
		unused = RotaryScaling{}
	default:
		return fail(`Kind must be "linear", "ntk", "yarn" or "llama3", or empty for none, got %q`, s.Kind)
	}
	if unused != (RotaryScaling{}) {
		return fail("Kind %q doesn't use %+v", s.Kind, unused)
	}
	switch {
	case s.Kind == "":
		return nil
	case !(s.Factor >= 1 && s.Factor <= ops.Largest):
		return fail("Factor must be from 1 to %v, got %v", ops.Largest, s.Factor)
	case s.Kind == "ntk" && dim < 4:
		return fail(`"ntk" needs at least 2 pairs to rotate, got %d`, dim/2)
	case s.Kind == "linear" || s.Kind == "ntk":
		return nil
	case s.OriginalLen < 1:
		return fail("OriginalLen must be at least 1, got %d", s.OriginalLen)
	}
	low, high := s.bounds()
	switch {
	case !(low > 0 && low < high && high <= ops.Largest):
		return fail("Low must be above 0, and High above Low and at most %v, got %v and %v", ops.Largest, low, high)
	case !(s.Magnitude >= 0 && s.Magnitude <= ops.Largest):
		return fail("Magnitude must be above 0 and at most %v, or 0 for 0.1·ln(Factor) + 1, got %v", ops.Largest, s.Magnitude)
	case s.Kind == "yarn" && base <= 1:
		return fail(`"yarn" needs a Base above 1, got %v`, base)
	}
	return nil
}

// bounds returns Low and High, or their defaults.
func (s RotaryScaling) bounds() (low, high float64) {
	high = 4
	if s.Kind == "yarn" {
		high = 32
	}
	return cmp.Or(s.Low, 1), cmp.Or(s.High, high)
}

// magnitude returns the factor for rotated vectors.
func (s RotaryScaling) magnitude() float64 {
	if s.Kind != "yarn" {
		return 1
	}
	return cmp.Or(s.Magnitude, 0.1*math.Log(s.Factor)+1)
}

// frequencies returns the angle per position of each of the dim/2 pairs.
func (s RotaryScaling) frequencies(dim int, base float64) []float64 {
	if s.Kind == "ntk" {
		base *= math.Pow(s.Factor, float64(dim)/float64(dim-2))
	}
	f := make([]float64, dim/2)
	for i := range f {
		f[i] = math.Pow(base, -float64(2*i)/float64(dim))
	}
	if s.Kind == "" || s.Kind == "ntk" {
		return f
	}
	kept := s.kept(dim, base, f)
	for i, x := range f {
		f[i] = x*kept[i] + x/s.Factor*(1-kept[i])
	}
	return f
}

// kept returns a weight from 0 to 1 for each pair: with 1, the pair keeps its frequency; with 0, it is slowed by
// Factor.
func (s RotaryScaling) kept(dim int, base float64, frequencies []float64) []float64 {
	kept := make([]float64, dim/2)
	low, high := s.bounds()
	turns := float64(s.OriginalLen) / (2 * math.Pi) // number of turns of a pair with frequency 1 within OriginalLen positions
	switch s.Kind {
	case "yarn":
		pair := func(rotations float64) float64 { // index of the pair that makes this number of turns
			return float64(dim) * math.Log(turns/rotations) / (2 * math.Log(base))
		}
		first, last := pair(high), pair(low)
		if !s.Unrounded {
			first, last = math.Floor(first), math.Ceil(last)
		}
		first, last = max(first, 0), min(last, float64(dim-1))
		last = max(last, first+0.001) // avoids a division by zero below
		for i := range kept {
			kept[i] = 1 - clamp01((float64(i)-first)/(last-first))
		}
	case "llama3":
		for i, f := range frequencies {
			kept[i] = clamp01((turns*f - low) / (high - low))
		}
	}
	return kept
}

func clamp01(x float64) float64 { return min(max(x, 0), 1) }
