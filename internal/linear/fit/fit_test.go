package fit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heed-go/heed/internal/linear"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/testseed"
)

// weightsOf returns a model's weights.
func weightsOf(m *linear.Model) []float32 { return m.Tensors()[3].Data.([]float32) }

// golden has the results of testdata/reference.py.
type golden struct {
	Train, Test []string
	Labels      []int
	Numbers     []float64
	Features    int
	SVM         [][]float32
	Ridge       []float32

	Vectors      []float32   // (50, 3)
	SVMVectors   [][]float32 `json:"svm_vectors"` // of n-grams and vectors
	RidgeVectors []float32   `json:"ridge_vectors"`
	SVMBare      [][]float32 `json:"svm_bare"` // of vectors alone
	RidgeBare    []float32   `json:"ridge_bare"`
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	file := must.Get(os.ReadFile("testdata/reference.json"))(t)
	must.Do(t, json.Unmarshal(file, &g))
	return g
}

func near(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d numbers, want %d", name, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(float64(got[i]-want[i])) <= tolerance) {
			t.Fatalf("%s: number %d is %g, want %g", name, i, got[i], want[i])
		}
	}
}

// TestAgreesWithScikitLearn compares scores of n-grams, of n-grams with vectors, and of vectors alone.
func TestAgreesWithScikitLearn(t *testing.T) {
	g := readGolden(t)
	grams := linear.Grams{Words: 2, Characters: [2]int{2, 4}}
	for _, test := range []struct {
		name    string
		options Options
		svm     [][]float32
		ridge   []float32
	}{
		{"n-grams", Options{Grams: grams}, g.SVM, g.Ridge},
		{"n-grams and vectors", Options{Grams: grams, Width: 3}, g.SVMVectors, g.RidgeVectors},
		{"vectors", Options{Width: 3, Bare: true}, g.SVMBare, g.RidgeBare},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, train, test20 := test.options, linear.Texts(g.Train), linear.Texts(g.Test)
			if o.Width > 0 {
				train.Vectors, test20.Vectors = g.Vectors[:50*o.Width], g.Vectors[:20*o.Width]
			}
			o.constants, o.tolerance = []float64{0.5}, 1e-6
			m, held, err := Classes(t.Context(), train, g.Labels, 3, linear.Rows{}, nil, o)
			must.Do(t, err)
			if got, want := m.Features()-o.Width-1, g.Features; !o.Bare && got != want || o.Bare && got != 0 || len(held.Scores) != 150 || len(held.Rows) != 50 {
				t.Errorf("got %d n-grams, want %d, or 0 for vectors alone, and %d held-out scores, want 150", got, want, len(held.Scores))
			}
			near(t, "scores", m.ScoresOf(test20), slices.Concat(test.svm...), 1e-5)
			if o.Bare {
				weights, bias := m.Layer()
				got := make([]float32, 3)
				for i := range got {
					got[i] = bias[i]
					for k := range 3 {
						got[i] += weights[k*3+i] * g.Vectors[k]
					}
				}
				near(t, "layer", got, test.svm[0], 1e-4)
			}
			o.constants, o.tolerance = []float64{0.7}, 1e-9
			m, _, err = Numbers(t.Context(), train, g.Numbers, linear.Rows{}, nil, o)
			must.Do(t, err)
			near(t, "numbers", m.ScoresOf(test20), test.ridge, 1e-5)
		})
	}
}

// topics draws texts of a class and of words that occur in all classes.
func topics(seed uint64, n, classes int) (texts []string, labels []int) {
	random := rand.New(rand.NewPCG(seed, 0))
	for range n {
		label := random.IntN(classes)
		var words []string
		for range 6 {
			word := fmt.Sprintf("common%d", random.IntN(50))
			if random.IntN(3) == 0 {
				word = fmt.Sprintf("Topic%dx%d", label, random.IntN(8))
			}
			words = append(words, word)
		}
		texts, labels = append(texts, strings.Join(words, " ")), append(labels, label)
	}
	return texts, labels
}

// rightOf returns how many rows have the highest score at their label.
func rightOf(scores []float32, classes int, labels []int) (right int) {
	for i, label := range labels {
		row := scores[i*classes : (i+1)*classes]
		if row[label] == slices.Max(row) {
			right++
		}
	}
	return right
}

func TestQuality(t *testing.T) {
	// Of 4 rows, 3 are right. F1 is 4/5 for class 0, 2/3 for class 1, and class 2 doesn't occur.
	got := qualityOf([]float32{1, 0, 0, 2, 1, -1, 3, 2, 0, -2, -1, -3}, 3, singly([]int{0, 0, 1, 1}))
	if want := 0.75 + (0.8+2.0/3)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("got accuracy plus macro F1 %v, want %v", got, want)
	}
}

// Held-out scores are as good as the scores of unseen rows, and worse than the scores of rows that were seen. There are
// more classes than are fitted side by side.
func TestHeldOut(t *testing.T) {
	const classes = lanes + 3
	texts, labels := topics(1, 700, classes)
	train, unseen := texts[:300], texts[300:]
	m, held, err := Classes(t.Context(), linear.Texts(train), labels[:300], classes, linear.Texts(texts[300:400]), labels[300:400], Options{})
	must.Do(t, err)
	right := func(scores []float32, labels []int) float64 {
		return float64(rightOf(scores, classes, labels)) / float64(len(labels))
	}
	seen := right(m.ScoresOf(linear.Texts(train)), labels[:300])
	out := right(held.Scores, Pick(labels, held.Rows))
	test := right(m.ScoresOf(linear.Texts(unseen)), labels[300:])
	if seen < 0.98 || test < 0.7 || math.Abs(test-out) > 0.1 || m.Outputs() != classes {
		t.Errorf("got accuracy %g of rows seen, %g held out and %g of unseen rows, want 1 and two similar ones", seen, out, test)
	}
	one := make([]float32, classes)
	m.Scores(one, new(linear.Scratch), train[5], nil)
	if many := m.ScoresOf(linear.Texts(train)); !slices.Equal(one, many[5*classes:6*classes]) {
		t.Errorf("Scores gives %v, ScoresOf %v", one, many[5*classes:6*classes])
	}
}

// A larger constant that is no better leaves the model as it was, and judging it takes less memory than another model.
func TestBestConstant(t *testing.T) {
	const classes = 8 * lanes
	texts, labels := topics(1, 400, classes)
	fit := func(constants ...float64) (weights []float32, allocated float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, _, err := Classes(t.Context(), linear.Texts(texts[:300]), labels[:300], classes, linear.Texts(texts[300:]), labels[300:], Options{constants: constants})
		must.Do(t, err)
		runtime.ReadMemStats(&after)
		return weightsOf(m), float64(after.TotalAlloc - before.TotalAlloc)
	}
	want, once := fit(usualConstant)
	got, twice := fit(usualConstant, 4*usualConstant)
	if !slices.Equal(got, want) {
		t.Error("the model has changed")
	}
	if models := (twice - once) / float64(4*len(want)); models > 0.5 {
		t.Errorf("the second constant allocates the memory of %.2f models", models)
	}
}

// A constant is judged by the scores that its model gives to validation rows.
func TestValidationScores(t *testing.T) {
	const n, classes, width = 100, lanes + 3, 3
	texts, labels := topics(1, n, classes)
	rows := linear.Texts(texts)
	for i := range n * width {
		rows.Vectors = append(rows.Vectors, float32(labels[i/width]*(i%width))+5)
	}
	p, err := newProblem(t.Context(), rows, rows, classes, Options{Width: width, constants: []float64{usualConstant}})
	must.Do(t, err)
	var scores []float32
	f := &classFit{problem: p, classes: classes, blocks: 2, labels: Pick(singly(labels), p.order), quality: func(s []float32, _ []int) float64 { scores = s; return 0 }}
	m, _, err := p.finish(must.Get(f.fit(t.Context()))(t), f.held)
	must.Do(t, err)
	near(t, "scores", scores, m.ScoresOf(rows), 1e-4)
}

func TestNumberOfCoresChangesNothing(t *testing.T) {
	testseed.Slow(t)
	texts, labels := topics(1, 600, 20)
	var want *linear.Model
	var wantHeld *Held
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		m, held, err := Classes(t.Context(), linear.Texts(texts[:500]), labels[:500], 20, linear.Texts(texts[500:]), labels[500:], Options{Seed: 3})
		must.Do(t, err)
		if want == nil {
			want, wantHeld = m, held
		}
		if !reflect.DeepEqual(m.Tensors(), want.Tensors()) || !reflect.DeepEqual(held, wantHeld) {
			t.Errorf("the results on %d cores differ from those on 1", cores)
		}
	}
	other, _, err := Classes(t.Context(), linear.Texts(texts[:500]), labels[:500], 20, linear.Texts(texts[500:]), labels[500:], Options{Seed: 4})
	must.Do(t, err)
	if slices.Equal(weightsOf(other), weightsOf(want)) {
		t.Error("another seed gives the same weights")
	}
}

// TestWithoutFeatures fits texts that have no n-gram in common: only the intercept is left.
func TestWithoutFeatures(t *testing.T) {
	m, held, err := Classes(t.Context(), linear.Texts([]string{"a", "b", "", "c"}), []int{1, 1, 0, 1}, 2, linear.Rows{}, nil, Options{Grams: linear.Grams{Characters: [2]int{2, 3}}})
	must.Do(t, err)
	scores := make([]float32, 2)
	m.Scores(scores, new(linear.Scratch), "a", nil)
	if !(scores[1] > scores[0]) || m.Features() != 1 || len(held.Scores) != 8 {
		t.Errorf("got scores %v, %d features and %d held-out scores", scores, m.Features(), len(held.Scores))
	}
}

func TestFitRefuses(t *testing.T) {
	two := linear.Texts([]string{"a", "b"})
	many := linear.Rows{N: 1 << 14, Text: func(int) string { return "" }}
	for _, test := range []struct {
		name    string
		train   linear.Rows
		labels  []int
		classes int
		options Options
		want    string
	}{
		{"no rows", linear.Rows{}, nil, 2, Options{}, "at least one training row"},
		{"label too large", two, []int{0, 2}, 2, Options{}, "from 0 to 1, got 2 for training row 1"},
		{"negative label", two, []int{-1, 0}, 2, Options{}, "got -1"},
		{"missing label", two, []int{0}, 2, Options{}, "for each of the 2 training rows, got 1"},
		{"no grams", two, []int{0, 1}, 2, Options{Grams: linear.Grams{Words: -1}}, "0 to 16 words"},
		{"lengths", two, []int{0, 1}, 2, Options{Grams: linear.Grams{Characters: [2]int{3, 2}}}, "smallest first"},
		{"vectors missing", two, []int{0, 1}, 2, Options{Width: 3}, "expected vectors of shape (2, 3), got 0"},
		{"nothing to learn from", two, []int{0, 1}, 2, Options{Bare: true}, "where there are no n-grams"},
		{"too many rows", many, make([]int, many.N), 1 << 13, Options{}, ErrTooLarge.Error()},
		{"too many classes", two, []int{0, 1}, linear.MaxWeights, Options{}, ErrTooLarge.Error()},
	} {
		_, _, err := Classes(t.Context(), test.train, test.labels, test.classes, linear.Rows{}, nil, test.options)
		must.Fail(t, err, test.want)
		if tooLarge := strings.HasPrefix(test.name, "too many"); errors.Is(err, ErrTooLarge) != tooLarge {
			t.Errorf("%s: %v wraps ErrTooLarge: %t", test.name, err, !tooLarge)
		}
	}
}

func TestCancel(t *testing.T) {
	texts, labels := topics(1, 600, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var read atomic.Int32
	rows := linear.Rows{N: len(texts), Text: func(i int) string {
		if read.Add(1) == 700 { // in the second pass
			cancel()
		}
		return texts[i]
	}}
	if _, _, err := Classes(ctx, rows, labels, 3, linear.Rows{}, nil, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
}

// TestRarestFeaturesGo fits so many outputs that few features may stay.
func TestRarestFeaturesGo(t *testing.T) {
	texts := linear.Texts([]string{"a b c", "a b c", "a b d", "a d", "a"})
	order := []int{0, 1, 2, 3, 4}
	o := must.Get(Options{Grams: linear.Grams{Words: 1}}.withDefaults())(t)
	v, _, _, err := newVocabulary(t.Context(), texts, order, linear.MaxWeights/3, o)
	must.Do(t, err)
	var s linear.Scratch
	index, _ := v.Vector(&s, "a")
	if v.Features() != 3 || len(index) != 2 {
		t.Errorf("got %d features, %d of them in %q; want 3 and 2: two words and the intercept", v.Features(), len(index), "a")
	}
}

func TestFile(t *testing.T) {
	texts, labels := topics(1, 200, 3)
	for i := range texts {
		texts[i] += "\t" + texts[len(texts)-1-i]
	}
	for _, o := range []Options{{}, {Pairs: true}, {Pairs: true, Width: 2}, {Width: 1, Bare: true}} {
		rows := linear.Texts(texts)
		for i := range o.Width * rows.N {
			rows.Vectors = append(rows.Vectors, float32(i%5))
		}
		m, _, err := Classes(t.Context(), rows, labels, 3, linear.Rows{}, nil, o)
		must.Do(t, err)
		var file bytes.Buffer
		must.Do(t, safetensors.Write(&file, m.Tensors(), nil))
		tensors, _, err := safetensors.Read(&file, int64(file.Len()))
		must.Do(t, err)
		again := must.Get(linear.FromTensors(tensors))(t)
		if !slices.Equal(again.ScoresOf(rows), m.ScoresOf(rows)) {
			t.Errorf("%+v: the model that was read gives other scores", o)
		}
	}
}

// TestPairs says whether two texts have the same topic, which no word of one text alone says.
func TestPairs(t *testing.T) {
	texts, topic := topics(1, 1600, 4)
	var pairs []string
	var same []int
	for i := 0; i < len(texts); i += 2 {
		pairs = append(pairs, texts[i]+"\t"+texts[i+1])
		label := 0
		if topic[i] == topic[i+1] {
			label = 1
		}
		same = append(same, label)
	}
	right := make(map[bool]int)
	for _, apart := range []bool{false, true} {
		m, _, err := Classes(t.Context(), linear.Texts(pairs[:600]), same[:600], 2, linear.Rows{}, nil, Options{Pairs: apart, constants: []float64{0.1}})
		must.Do(t, err)
		right[apart] = rightOf(m.ScoresOf(linear.Texts(pairs[600:])), 2, same[600:])
	}
	if right[true] < 150 || right[true] < right[false]+10 {
		t.Errorf("%d of 200 are right with features of pairs, and %d without", right[true], right[false])
	}
}

// Tags that depend on a neighbour, on the end of an unknown token or on its shape can be learned from TokenGrams.
func TestTokenGrams(t *testing.T) {
	sentences := []string{ // each token with its tag
		"the/D book/N is/V heavy/A", "they/P book/V a/D flight/N", "a/D book/N fell/V quickly/R", "we/P book/V rooms/N slowly/R",
		"the/D flight/N is/V late/A", "they/P left/V quietly/R", "a/D room/N is/V free/A", "we/P land/V in/I Paris/M",
		"they/P live/V in/I Rome/M", "the/D land/N is/V flat/A", "we/P land/V softly/R", "a/D land/N in/I Asia/M",
	}
	var texts []string
	var labels []int
	tags := "DNVAPRIM"
	for _, s := range sentences {
		var tokens []string
		for _, pair := range strings.Fields(s) {
			token, tag, _ := strings.Cut(pair, "/")
			tokens, labels = append(tokens, token), append(labels, strings.Index(tags, tag))
		}
		for i := range tokens {
			texts = append(texts, linear.Neighbours(tokens, i))
		}
	}
	m, _, err := Classes(t.Context(), linear.Texts(texts), labels, len(tags), linear.Rows{}, nil, Options{Grams: linear.TokenGrams})
	must.Do(t, err)
	m = must.Get(linear.FromTensors(m.Tensors()))(t)
	tokens := strings.Fields("they book a book quickly")
	scores := make([]float32, len(tags))
	got := ""
	for i := range tokens {
		m.Scores(scores, new(linear.Scratch), linear.Neighbours(tokens, i), nil)
		best := slices.Index(scores, slices.Max(scores))
		got += tags[best : best+1]
	}
	if want := "PVDNR"; got != want {
		t.Errorf("the tags are %s, want %s", got, want)
	}
}

// Of many rows, those of one fold are held out.
func TestOneFold(t *testing.T) {
	texts, labels := topics(1, manyRows, 3)
	m, held, err := Classes(t.Context(), linear.Texts(texts), labels, 3, linear.Rows{}, nil, Options{Grams: linear.Grams{Words: 1}, constants: []float64{0.1}})
	must.Do(t, err)
	right := float64(rightOf(held.Scores, 3, Pick(labels, held.Rows))) / float64(len(held.Rows))
	seen := float64(rightOf(m.ScoresOf(linear.Texts(texts)), 3, labels)) / manyRows
	if n := len(held.Rows); n < manyRows/5-5 || n > manyRows/5+5 || right < 0.6 || right > seen+0.05 {
		t.Errorf("%d rows are held out with an accuracy of %g, and all rows have %g", n, right, seen)
	}
}

func BenchmarkVectors(b *testing.B) {
	const n, width, classes = 2000, 384, 40
	texts, labels := topics(1, n, classes)
	random := rand.New(rand.NewPCG(1, 1))
	rows := linear.Texts(texts)
	for i := range n * width {
		rows.Vectors = append(rows.Vectors, float32(random.NormFloat64()))
		if i%width == labels[i/width] {
			rows.Vectors[i] += 2
		}
	}
	for b.Loop() {
		_, _, err := Classes(b.Context(), rows, labels, classes, linear.Rows{}, nil, Options{Width: width})
		must.Do(b, err)
	}
}
