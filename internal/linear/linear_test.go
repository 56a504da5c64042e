package linear

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
)

func TestGrams(t *testing.T) {
	hash := func(s string) uint64 {
		h := uint64(0)
		for _, r := range s {
			h = extend(h, uint64(r))
		}
		return h
	}
	want := func(words [][]string, letters []string) (grams []gram) {
		counts := make(map[uint64]int)
		for _, gram := range words {
			h := uint64(0)
			for i := range gram {
				h = extend(h, hash(gram[len(gram)-1-i]))
			}
			if len(gram) > 1 {
				counts[finish(h)|phrases<<groupShift]++
			} else {
				counts[finish(h)]++
			}
		}
		for _, gram := range letters {
			counts[finish(hash(gram))|characters<<groupShift]++
		}
		for h, n := range counts {
			grams = append(grams, gram{h, n})
		}
		slices.SortFunc(grams, func(a, b gram) int {
			if a.hash < b.hash {
				return -1
			}
			return 1
		})
		return grams
	}
	for _, test := range []struct {
		text    string
		grams   Grams
		words   [][]string
		letters []string
	}{
		{"", DefaultGrams, nil, nil},
		{" \t\n", DefaultGrams, nil, nil},
		{"Ab ab", Grams{Words: 2}, [][]string{{"ab"}, {"ab"}, {"ab", "ab"}}, nil},
		{"x86--Öl", Grams{Words: 1}, [][]string{{"x"}, {"86"}, {"-"}, {"-"}, {"öl"}}, nil},
		{"a b", Grams{Characters: [2]int{2, 3}}, nil, []string{" a", " a ", "a ", " b", " b ", "b "}},
		{"a", Grams{Characters: [2]int{4, 5}}, nil, []string{" a "}},
		{"abcd", Grams{Characters: [2]int{4, 5}}, nil, []string{" abc", " abcd", "abcd", "abcd ", "bcd "}},
	} {
		var s Scratch
		if got := test.grams.count(&s, test.text, false); !slices.Equal(got, want(test.words, test.letters)) {
			t.Errorf("%q: got %v, want %v", test.text, got, want(test.words, test.letters))
		}
	}
}

func TestEdges(t *testing.T) {
	g := Grams{Words: 1, Edges: true}
	edgesOf := func(text string) (hashes []uint64) {
		var s Scratch
		for _, gram := range g.count(&s, text, false) {
			if gram.hash>>groupShift == edges {
				hashes = append(hashes, gram.hash)
			}
		}
		return hashes
	}
	for text, want := range map[string]int{"": 0, "a": 2, "a b": 4, "a b c": 5, "a b c d": 5} {
		if got := edgesOf(text); len(got) != want {
			t.Errorf("%q has %d edges, want %d", text, len(got), want)
		}
	}
	if !slices.Equal(edgesOf("a b x c d e"), edgesOf("a b y c d e")) || slices.Equal(edgesOf("a b c d"), edgesOf("b a c d")) {
		t.Error("expected the first two and the last three words to be edges, in order")
	}
}

// smallModel returns the tensors of a model with two hashes and two outputs.
func smallModel() map[string]safetensors.Tensor {
	return map[string]safetensors.Tensor{
		"grams":   {Name: "grams", Shape: []int{6}, Data: []int64{format, 1, 0, 0, 0, 0}},
		"hashes":  {Name: "hashes", Shape: []int{2}, Data: []int64{3, 5}},
		"idf":     {Name: "idf", Shape: []int{2}, Data: []float32{1, 2}},
		"weights": {Name: "weights", Shape: []int{3, 2}, Data: []float32{1, 2, 3, 4, 5, 6}},
	}
}

func values(tensors map[string]safetensors.Tensor) (list []safetensors.Tensor) {
	for _, name := range []string{"grams", "hashes", "idf", "weights"} {
		list = append(list, tensors[name])
	}
	return list
}

func TestFromTensorsRefuses(t *testing.T) {
	must.Get(FromTensors(values(smallModel())))(t)
	nan := float32(math.NaN())
	for _, test := range []struct {
		name  string
		shape []int
		data  any
	}{
		{"", nil, nil},
		{"grams", []int{5}, []int64{format, 1, 0, 0, 0}},
		{"grams", []int{6}, []int64{1, 1, 0, 0, 0, 0}},
		{"grams", []int{6}, []int64{format, 1, 0, 0, 4, 0}},
		{"grams", []int{6}, []int64{format, 0, 2, 3, 2, 0}},
		{"grams", []int{6}, []int64{format, 1 << 40, 0, 0, 0, 0}},
		{"grams", []int{6}, []int64{format, -1, 0, 0, 0, 0}},
		{"grams", []int{6}, []int64{format, 0, 0, 0, 0, 0}},
		{"grams", []int{6}, []int64{format, 0, 0, 0, 1, 1}},
		{"grams", []int{6}, []int64{format, 1, 0, 0, 0, -1}},
		{"grams", []int{6}, []int64{format, 1, 0, 0, 0, 1 << 40}},
		{"grams", []int{6}, []int64{format, 1, 0, 0, 0, 1}},
		{"grams", []int{6}, []float32{format, 1, 0, 0, 0, 0}},
		{"hashes", []int{2}, []int64{5, 3}},
		{"hashes", []int{2}, []int64{3, 3}},
		{"hashes", []int{2}, []int64{3, -1}},
		{"hashes", []int{1}, []int64{3}},
		{"hashes", []int{2}, []float32{3, 5}},
		{"idf", []int{3}, []float32{1, 2, 3}},
		{"idf", []int{2}, []float32{1, nan}},
		{"idf", []int{2}, []float32{1, 0}},
		{"idf", []int{2}, []int64{1, 2}},
		{"weights", []int{3, 2}, []float32{1, 2, 3, 4, 5, nan}},
		{"weights", []int{3, 2}, []float32{1, 2, 3, 4, 5, float32(math.Inf(1))}},
		{"weights", []int{6}, []float32{1, 2, 3, 4, 5, 6}},
		{"weights", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}},
		{"weights", []int{3, 0}, []float32{}},
		{"weights", []int{3, 2}, []float64{1, 2, 3, 4, 5, 6}},
	} {
		tensors := smallModel()
		if test.name == "" {
			delete(tensors, "idf")
		} else {
			tensors[test.name] = safetensors.Tensor{Name: test.name, Shape: test.shape, Data: test.data}
		}
		if _, err := FromTensors(values(tensors)); !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("%s %v: got error %v, want one that wraps %v", test.name, test.data, err, safetensors.ErrFormat)
		}
	}
	if _, err := FromTensors(values(smallModel())[1:]); !errors.Is(err, safetensors.ErrFormat) {
		t.Errorf("without grams: got error %v", err)
	}
}

func FuzzFromTensors(f *testing.F) {
	var file bytes.Buffer
	must.Do(f, safetensors.Write(&file, values(smallModel()), nil))
	f.Add(file.Bytes(), "a text")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tensors, _, err := safetensors.Read(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		m, err := FromTensors(tensors)
		if err != nil {
			return
		}
		rows := Texts([]string{text})
		rows.Vectors = make([]float32, m.Width())
		for _, score := range m.ScoresOf(rows) {
			if math.IsNaN(float64(score)) {
				t.Errorf("%q has the score NaN", text)
			}
		}
	})
}

// A word that only second texts had in training makes the texts of a pair similar, too: new queries have such words.
func TestSimilarityOfNewWords(t *testing.T) {
	var s Scratch
	grams := Grams{Words: 1}
	hashes := grams.AppendHashes(nil, &s, "a\tb c", true)
	idf := []float32{1, 2, 2}
	for text, want := range map[string]float64{"b c\tb c": 1, "a\tb c": 0, "b\tb c": math.Sqrt(0.5), "new\tnew": 1, "a new\tnew": 2 / math.Sqrt(5)} {
		index, value := NewVocabulary(grams, true, 0, hashes, idf).Vector(&s, text)
		if i := slices.Index(index, uint32(len(hashes))); math.Abs(float64(value[i])-want) > 1e-6 {
			t.Errorf("%q: the words have the cosine %g, want %g", text, value[i], want)
		}
	}
}
