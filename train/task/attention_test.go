package task

import (
	"math"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train"
)

// Attention must return all layers, cross-attention first, with a label for every position except padding. The weights
// of each row must sum to 1, and causal attention must have no weights for later positions.
func TestAttention(t *testing.T) {
	t.Parallel()
	self := []string{"blocks.0.attention", "blocks.1.attention"}
	for _, test := range []struct {
		name, input, source string // source: the labels of the source, joined
		layers              []string
	}{
		{"reverse", "abca", "abca■", self},
		{"add", "7+35", "07+35■", self}, // the model reads the digits column by column
		{"brackets", "(())", "(())", []string{"encoder.blocks.0.attention", "encoder.blocks.1.attention"}},
		{"text", "quick fox", "quick·fox", self},
		{"dates", "Thu, 7 March 2024", "thu,·7·march·2024", []string{"decoder.blocks.0.cross", "decoder.blocks.1.cross",
			"encoder.blocks.0.attention", "encoder.blocks.1.attention", "decoder.blocks.0.attention", "decoder.blocks.1.attention"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			task := fitted(t, small(t, test.name))
			a := must.Get(task.Attention(test.input, ""))(t)
			if answer, err := task.Predict(test.input); err != nil || a.Answer != answer || a.Input != test.input {
				t.Errorf("Attention has the input %q and the answer %q; Predict returns %q, %v", a.Input, a.Answer, answer, err)
			}
			if len(a.Layers) != len(test.layers) {
				t.Fatalf("got %d layers, want %q", len(a.Layers), test.layers)
			}
			for i, l := range a.Layers {
				if l.Name != test.layers[i] || l.Meaning == "" || len(l.Heads) != 2 {
					t.Errorf("layer %d is %q (%q) with %d heads, want %s with 2 heads", i, l.Name, l.Meaning, len(l.Heads), test.layers[i])
				}
				checkLabels(t, l, test.source, a.Answer)
				causal := test.name == "text" || strings.HasPrefix(l.Name, "decoder.") && strings.HasSuffix(l.Name, ".attention")
				checkWeights(t, l, causal)
			}
		})
	}
}

func checkLabels(t *testing.T, l AttentionLayer, source, answer string) {
	t.Helper()
	rows, columns := strings.Join(l.Rows, ""), strings.Join(l.Columns, "")
	if strings.HasPrefix(l.Name, "decoder.") {
		written := strings.TrimSuffix(rows, "■")
		if !strings.HasPrefix(written, answer) || len(l.Rows) > 11 {
			t.Errorf("%s has rows %q, want %q and one row for the end", l.Name, rows, answer)
		}
		rows = source
		if strings.HasSuffix(l.Name, ".attention") {
			if want := "►" + answer; columns != want && columns+written[len(written)-1:] != want {
				t.Errorf("%s has columns %q, want %q", l.Name, columns, want)
			}
			columns = source
		}
	}
	if rows != source || columns != source {
		t.Errorf("%s has rows %q and columns %q, want %q", l.Name, rows, columns, source)
	}
}

func checkWeights(t *testing.T, l AttentionLayer, causal bool) {
	t.Helper()
	for h, head := range l.Heads {
		for r := range l.Rows {
			var sum float64
			for c, weight := range head[r*len(l.Columns):][:len(l.Columns)] {
				sum += float64(weight)
				if causal && c > r && weight != 0 {
					t.Errorf("%s, head %d: position %d attends to the later position %d", l.Name, h, r, c)
				}
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Errorf("%s, head %d: the weights of row %d sum to %v, want 1", l.Name, h, r, sum)
			}
		}
	}
}

// The labels of the decoder's rows and columns must be the model's own answer before Spell, not the rule's answer. They
// must not be longer than an answer may be, even if the model never ends its answer.
func TestAttentionOfAnswers(t *testing.T) {
	t.Parallel()
	tripled := func(s string) string {
		var triple strings.Builder
		for _, c := range s {
			triple.WriteString(strings.Repeat(string(c), 3))
		}
		return triple.String()
	}
	for _, test := range []struct {
		name      string
		maxAnswer int
		spelled   bool
		steps     int
	}{
		{"trained", 5, false, 20}, {"untrained", 5, false, 0}, {"empty answers", 0, false, 0}, {"short answers", 1, false, 0},
		{"spelled", 5, true, 20}, {"spelled, untrained", 5, true, 0},
	} {
		if testing.Short() && testseed.LeftOut(test.name) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			rule := ownRule()
			rule.Kind, rule.MaxAnswer = data.KindSeq2Seq, test.maxAnswer
			rule.Answer = func(source string) (string, error) { return source[:min(len(source), test.maxAnswer)], nil }
			size := 1 // number of characters in the answer for each symbol
			if test.spelled {
				size = 3
				rule.Answer = func(source string) (string, error) { return tripled(source), nil }
				rule.Spell = func(source, answer string) (string, string) {
					var s strings.Builder
					for i := 0; i < len(answer); i += 3 {
						s.WriteString(answer[i : i+1])
					}
					return source, s.String()
				}
				rule.Read = tripled
			}
			task := made(t, smaller(t, Defaults(rule)))
			if test.steps > 0 {
				task.Config.Training.StepsPerEpoch = test.steps
				must.Get(train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed}))(t)
			}
			for _, input := range []string{"a", "bad", "fade", "jjjjj", "hij"} {
				a := must.Get(task.Attention(input, "decoder"))(t)
				if want, err := task.Predict(input); err != nil || a.Answer != want || len(want) > size*test.maxAnswer {
					t.Errorf("%s: Predict returns %q, %v; Attention has the answer %q", input, want, err, a.Answer)
				}
				written := ""
				for i := 0; i < len(a.Answer); i += size {
					written += a.Answer[i : i+1]
				}
				cross, self := a.Layers[0], a.Layers[2]
				rows := strings.Join(cross.Rows, "")
				if !strings.HasPrefix(rows, written) || len(cross.Rows) != len(written)+1 || strings.Join(self.Rows, "") != rows {
					t.Errorf("%s: the rows are %q and %q, want %q and one row for the end", input, cross.Rows, self.Rows, written)
				}
				if columns := strings.Join(self.Columns, ""); columns != "►"+written {
					t.Errorf("%s: the columns are %q, want %q", input, columns, "►"+written)
				}
				for _, l := range a.Layers {
					checkWeights(t, l, strings.HasSuffix(l.Name, ".attention"))
				}
			}
		})
	}
}
