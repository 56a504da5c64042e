package layers_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// TestChoicesHaveNames parses every name in a table of choices.
func TestChoicesHaveNames(t *testing.T) {
	for flag, first := range map[string]string{"positions": "none", "norm": "layer", "activation": "relu", "precision": "float32"} {
		table := layers.Choices()[flag]
		var names []string
		for name, about := range table.All {
			names = append(names, name)
			v, err := table.Parse(name)
			if err != nil || about == "" || strings.Contains(about, "\n") || !strings.HasPrefix(table.Text(v), name) {
				t.Errorf("%s %q, described by %q: error %v and text %q, want no error, one line of description and a text that begins with the name", flag, name, about, err, table.Text(v))
			}
		}
		if len(names) < 2 || names[0] != first {
			t.Errorf("the names of --%s are %q, want several names, first %q", flag, names, first)
		}
		must.Refuse(table.Parse("other"))(t, strings.Join(names, ", "))
	}
}

// TestParseChoices parses texts to values. Text converts the values to the same texts.
func TestParseChoices(t *testing.T) {
	for text, want := range map[string]any{
		"rotary": layers.Rotary{}, "rotary,base=10000,interleaved=true": layers.Rotary{Base: 10000, Interleaved: true},
		`rotary,scaling={"kind":"linear","factor":2}`:                       layers.Rotary{Scaling: layers.RotaryScaling{Kind: "linear", Factor: 2}},
		"learned,max_len=9":                                                 layers.Learned{MaxLen: 9},
		`several,schemes=[{"kind":"learned","max_len":9},{"kind":"alibi"}]`: layers.PositionsList{Schemes: []layers.PositionsConfig{layers.Learned{MaxLen: 9}, layers.ALiBi{}}},
		"rms":                             layers.NormConfig{Kind: "rms"},
		"layer,eps=0.000001,no_bias=true": layers.NormConfig{Kind: "layer", Eps: 1e-6, NoBias: true},
	} {
		flag := "positions"
		if _, ok := want.(layers.NormConfig); ok {
			flag = "norm"
		}
		table := layers.Choices()[flag]
		got, err := table.Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) || table.Text(got) != text {
			t.Errorf("%s: got %+v with error %v, want %+v; the value's text is %s", text, got, err, want, table.Text(got))
		}
	}
	for text, want := range map[string]string{
		"rms,epsilon=1":   `norm of kind rms: it has no field "epsilon": use eps, no_bias`,
		"rms,kind=layer":  `it has no field "kind"`,
		"":                `there is no norm of kind ""`,
		"rms,eps=tiny":    `eps can't be "tiny"`,
		"layer,eps=1,eps": "expected field=value",
	} {
		if got, err := layers.Choices()["norm"].Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v, want %q in the error", text, got, err, want)
		}
	}
	_, err := layers.Choices()["positions"].Parse("rotary,bases=3")
	if want := `positions of kind rotary: it has no field "bases": use base, dim, interleaved, offset, scaling; did you mean base?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
