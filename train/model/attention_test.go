package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers"
)

// Attention runs a graph without padding, and Predict a graph with padding. Both must compute the same weights and
// classes.
func TestAttentionIsWhatPredicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, input string }{
		{"reverse", "abca"}, {"add", "7+35"}, {"brackets", "(())"}, {"text", "quick fox"}, {"dates", "Thu, 7 March 2024"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := ruleModel(t, test.name)
			encoded, a := m.encode(test.input)
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			rows := []query{m.query(encoded)}
			must.Do(t, m.choose(t.Context(), rows, 1))
			targets := rows[0].choices[0].targets
			r := m.reading(m.query(encoded).ids, targets)
			got, output, err := m.capture(r.batch, "")
			must.Do(t, err)
			classes := classesOf(m, output)
			padded := r.batch
			padded.Inputs, padded.Len = pad(padded.Inputs, m.layout.Len), m.layout.Len
			padded.TargetLen = m.layout.TargetLen
			if padded.DecoderInputs != nil {
				padded.DecoderInputs = pad(padded.DecoderInputs, m.layout.TargetLen)
			}
			whole, output, err := m.capture(padded, "")
			must.Do(t, err)
			paddedClasses := classesOf(m, output)
			if !slices.Equal(classes, paddedClasses[:len(classes)]) {
				t.Errorf("the classes are %v without padding, %v with padding", classes, paddedClasses)
			}
			first := len(classes) - len(targets)
			if m.Config.Task.Kind == data.KindSeq2Seq {
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
	must.Refuse(choose(layersOf(large, small), ""))(t, "1440036 attention weights to show", "choose a layer")
	if got, err := choose(layersOf(large, small), "cross"); err != nil || len(got) != 1 {
		t.Errorf("a small layer in a model with a large one: got %v, %v, want the small layer", got, err)
	}
	must.Refuse(choose(layersOf([]int{1, 4, 6000, 6000}, small), "cross"))(t, "shorter input")
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
		vocab := must.Get(tokenizer.NewVocab(symbols))(t)
		if got := strings.Join((&marks{symbols: vocab}).labels(ids), ""); got != want {
			t.Errorf("the labels of %q are %q, want %q", symbols, got, want)
		}
	}
}

// For text, padding has the id of the first symbol. The label of this id must be the symbol, not the mark for padding.
func TestMarksOfTexts(t *testing.T) {
	coder := must.Get(data.NewCoder(data.Rule{Name: "text", Kind: data.KindText, Alphabet: "\nab", MaxLen: 3}))(t)
	sources, _ := newMarks(coder, true)
	if got := strings.Join(sources.labels([]int{1, 0, 2}), ""); got != "a¶b" {
		t.Errorf("the labels are %q, want a¶b", got)
	}
}

// Sources and answers have separate ids, so the id of a source's padding may also be the end or the start of an answer.
func TestMarksOfTwoVocabularies(t *testing.T) {
	for _, alphabet := range []string{"ab", "abcd"} { // padding of sources: the answers' end, and their start
		source := must.Get(tokenizer.NewVocab(alphabet))(t)
		target := must.Get(tokenizer.NewVocab("xy"))(t)
		coder := must.Get(data.NewCoder(data.Rule{Name: "seq2seq", Kind: data.KindSeq2Seq, MaxLen: 3, MaxAnswer: 3, Source: source, Target: target}))(t)
		l := coder.Layout()
		sources, answers := newMarks(coder, false)
		got := strings.Join(append(sources.labels([]int{0, l.Pad}), answers.labels([]int{l.Start, 0, l.End})...), "")
		if want := "a○►x■"; got != want {
			t.Errorf("sources of %q: the labels are %s, want %s", alphabet, got, want)
		}
	}
}

// classesOf returns the likeliest class of every position.
func classesOf(m *Model, output []float32) (classes []int) {
	for logits := range slices.Chunk(output, m.layout.Classes) {
		class, _ := logit.Likeliest(logits)
		classes = append(classes, class)
	}
	return classes
}
