package layers_test

import (
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/heed-go/heed/layers"
)

// TestChoicesHaveNames parses every name that a list yields.
func TestChoicesHaveNames(t *testing.T) {
	for what, list := range map[string]struct {
		names iter.Seq2[string, string]
		parse func(name string) error
		first string
	}{
		"positions":   {layers.PositionSchemes(), func(name string) error { _, err := layers.ParsePositions(name); return err }, "none"},
		"norms":       {layers.Norms(), func(name string) error { _, err := layers.ParseNorm(name); return err }, "layer"},
		"activations": {layers.Activations(), func(name string) error { return new(layers.Activation).UnmarshalText([]byte(name)) }, "relu"},
	} {
		var names []string
		for name, about := range list.names {
			names = append(names, name)
			if err := list.parse(name); err != nil || about == "" || strings.Contains(about, "\n") {
				t.Errorf("%s %q, about %q: %v", what, name, about, err)
			}
		}
		if len(names) < 2 || names[0] != list.first {
			t.Errorf("the list of %s is %q", what, names)
		}
		if err := list.parse("other"); err == nil || !strings.Contains(err.Error(), strings.Join(names, ", ")) {
			t.Errorf("unknown %s: %v", what, err)
		}
	}
}

func TestParseChoices(t *testing.T) {
	for text, want := range map[string]layers.PositionsConfig{
		"rotary": layers.Rotary{}, "rotary,base=10000,interleaved=true": layers.Rotary{Base: 10000, Interleaved: true},
		`rotary,scaling={"kind":"linear","factor":2}`: layers.Rotary{Scaling: layers.RotaryScaling{Kind: "linear", Factor: 2}},
		"learned,max_len=9":                           layers.Learned{MaxLen: 9},
	} {
		if got, err := layers.ParsePositions(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]layers.NormConfig{
		"rms": {Kind: layers.NormRMS}, "layer,eps=1e-6,no_bias=true": {Kind: layers.NormLayer, Eps: 1e-6, NoBias: true},
	} {
		if got, err := layers.ParseNorm(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"rms,epsilon=1":   `norm of kind rms: it has no field "epsilon": use eps, no_bias`,
		"rms,kind=layer":  `it has no field "kind"`,
		"":                `there is no norm of kind ""`,
		"rms,eps=tiny":    `eps can't be "tiny"`,
		"layer,eps=1,eps": "expected field=value",
	} {
		if got, err := layers.ParseNorm(text); err == nil || !strings.Contains(err.Error(), want) || got != (layers.NormConfig{}) {
			t.Errorf("%s: got %+v, %v, want %q in the error", text, got, err, want)
		}
	}
	_, err := layers.ParsePositions("rotary,bases=3")
	if want := `positions of kind rotary: it has no field "bases": use base, dim, interleaved, offset, scaling`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
