package task

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
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
			a, err := task.Attention(test.input, "")
			if err != nil {
				t.Fatal(err)
			}
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

// Attention runs a graph without padding, and Predict a graph with padding. Both must compute the same weights and
// classes.
func TestAttentionIsWhatPredicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, input string }{
		{"reverse", "abca"}, {"add", "7+35"}, {"brackets", "(())"}, {"text", "quick fox"}, {"dates", "Thu, 7 March 2024"},
	} {
		t.Run(test.name, func(t *testing.T) {
			task := fitted(t, small(t, test.name))
			encoded, a := task.encode(test.input)
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			rows := []query{task.query(encoded)}
			if err := task.choose(t.Context(), rows, 1); err != nil {
				t.Fatal(err)
			}
			targets := rows[0].choices[0].targets
			r := task.reading(encoded, targets)
			got, output, err := task.capture(r.batch, "")
			if err != nil {
				t.Fatal(err)
			}
			classes := classesOf(task, output)
			padded := r.batch
			padded.Inputs, padded.Len = pad(padded.Inputs, task.layout.Len), task.layout.Len
			padded.TargetLen = task.layout.TargetLen
			if padded.DecoderInputs != nil {
				padded.DecoderInputs = pad(padded.DecoderInputs, task.layout.TargetLen)
			}
			whole, output, err := task.capture(padded, "")
			if err != nil {
				t.Fatal(err)
			}
			paddedClasses := classesOf(task, output)
			if !slices.Equal(classes, paddedClasses[:len(classes)]) {
				t.Errorf("the classes are %v without padding, %v with padding", classes, paddedClasses)
			}
			first := len(classes) - len(targets)
			if task.Config.Task.Kind == data.KindSeq2Seq {
				first = 0
			}
			if predicted := classes[first:][:len(targets)]; !slices.Equal(predicted, targets) {
				t.Errorf("the classes are %v, want %v as predicted", predicted, targets)
			}
			for i, c := range got {
				rows, columns := r.batch.Len, r.batch.Len
				allRows, allColumns := padded.Len, padded.Len
				if strings.HasPrefix(c.layer, "decoder.") {
					rows, allRows = r.batch.TargetLen, padded.TargetLen
					if !strings.HasSuffix(c.layer, ".cross") {
						columns, allColumns = rows, allRows
					}
				}
				for j, weight := range c.values {
					h, row, column := j/(rows*columns), j/columns%rows, j%columns
					if w := whole[i].values[(h*allRows+row)*allColumns+column]; math.Abs(float64(weight-w)) > 1e-6 {
						t.Fatalf("%s, head %d: the weight (%d, %d) is %v without padding, %v with padding", c.layer, h, row, column, weight, w)
					}
				}
			}
		})
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
				if _, err := train.Fit(t.Context(), task.Problem(), task.Config.Training.Config, train.RunOptions{Seed: task.Config.Seed}); err != nil {
					t.Fatal(err)
				}
			}
			for _, input := range []string{"a", "bad", "fade", "jjjjj", "hij"} {
				a, err := task.Attention(input, "decoder")
				if err != nil {
					t.Fatal(err)
				}
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

func pad(ids []int, n int) []int { return append(slices.Clone(ids), make([]int, n-len(ids))...) }

func TestChoose(t *testing.T) {
	layersOf := func(shapes ...[]int) []layers.AttentionWeights {
		g := G.NewGraph()
		var weights []layers.AttentionWeights
		for i, shape := range shapes {
			name := []string{"decoder.blocks.0.attention", "decoder.blocks.0.cross"}[i]
			weights = append(weights, layers.AttentionWeights{Layer: name, Weights: G.NewTensor(g, tensor.Float32, 4, G.WithShape(shape...), G.WithName(name))})
		}
		return weights
	}
	got, err := choose(layersOf([]int{1, 2, 3, 3}, []int{1, 2, 3, 5}), "")
	if err != nil || len(got) != 2 || got[0].Layer != "decoder.blocks.0.cross" {
		t.Errorf("got %v, %v, want cross-attention first", got, err)
	}
	large, small := []int{1, 4, 600, 600}, []int{1, 4, 3, 3}
	_, err = choose(layersOf(large, small), "")
	if err == nil || !strings.Contains(err.Error(), "1440036 attention weights to show") || !strings.Contains(err.Error(), "choose a layer") {
		t.Errorf("too many weights to return: got error %v", err)
	}
	if got, err := choose(layersOf(large, small), "cross"); err != nil || len(got) != 1 {
		t.Errorf("a small layer in a model with a large one: got %v, %v, want the small layer", got, err)
	}
	if _, err := choose(layersOf([]int{1, 4, 6000, 6000}, small), "cross"); err == nil || !strings.Contains(err.Error(), "shorter input") {
		t.Errorf("too many weights to compute: got error %v", err)
	}
}

func TestMarks(t *testing.T) {
	for symbols, want := range map[string]string{
		"a \n\té\u0301\x00": "a·¶→é◌\u0301¤",
		"□\u20dd\x00":       "□◌\u20dd¤", // a circle that combines with the square
		"¤\x00":             "¤■",
		"·¶→ \n\t":          "·¶→▫◊►",
		"·▫ ":               "·▫▫", // both marks for a space are symbols
	} {
		ids := make([]int, 0, len(symbols))
		for range symbols {
			ids = append(ids, len(ids))
		}
		vocab, err := tokenizer.NewVocab(symbols)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join((&marks{symbols: vocab}).labels(ids), ""); got != want {
			t.Errorf("the labels of %q are %q, want %q", symbols, got, want)
		}
	}
}

// For text, padding has the id of the first symbol. The label of this id must be the symbol, not the mark for padding.
func TestMarksOfTexts(t *testing.T) {
	coder, err := data.NewCoder(data.Rule{Name: "text", Kind: data.KindText, Alphabet: "\nab", MaxLen: 3})
	if err != nil {
		t.Fatal(err)
	}
	sources, _ := newMarks(coder, true)
	if got := strings.Join(sources.labels([]int{1, 0, 2}), ""); got != "a¶b" {
		t.Errorf("the labels are %q, want a¶b", got)
	}
}

// Sources and answers have separate ids, so the id of a source's padding may also be the end or the start of an answer.
func TestMarksOfTwoVocabularies(t *testing.T) {
	for _, alphabet := range []string{"ab", "abcd"} { // padding of sources: the answers' end, and their start
		source, err := tokenizer.NewVocab(alphabet)
		if err != nil {
			t.Fatal(err)
		}
		target, err := tokenizer.NewVocab("xy")
		if err != nil {
			t.Fatal(err)
		}
		coder, err := data.NewCoder(data.Rule{Name: "seq2seq", Kind: data.KindSeq2Seq, MaxLen: 3, MaxAnswer: 3, Source: source, Target: target})
		if err != nil {
			t.Fatal(err)
		}
		l := coder.Layout()
		sources, answers := newMarks(coder, false)
		got := strings.Join(append(sources.labels([]int{0, l.Pad}), answers.labels([]int{l.Start, 0, l.End})...), "")
		if want := "a○►x■"; got != want {
			t.Errorf("sources of %q: the labels are %s, want %s", alphabet, got, want)
		}
	}
}

// classesOf returns the likeliest class of every position.
func classesOf(task *Task, output []float32) (classes []int) {
	for logits := range slices.Chunk(output, task.layout.Classes) {
		class, _ := likeliest(logits)
		classes = append(classes, class)
	}
	return classes
}
