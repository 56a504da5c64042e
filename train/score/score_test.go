package score

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/text"
)

// A corpus has answers and their references.
type corpus []struct {
	answer     string
	references []string
}

// dog is the example in sacreBLEU's README.
var dog = corpus{
	{"The dog bit the man.", []string{"The dog bit the man.", "The dog had bit the man."}},
	{"It wasn't surprising.", []string{"It was not unexpected.", "No one was surprised."}},
	{"The man had just bitten him.", []string{"The man bit him first.", "The man had bitten the dog."}},
}

// sugar is from sacreBLEU's test for single sentences.
var sugar = corpus{{"Producția de zahăr primă va fi exprimată în ceea ce privește zahărul alb;", []string{"producţia de zahăr brut se exprimă în zahăr alb;"}}}

func eachCharacter(text string) []string { return strings.Split(strings.ReplaceAll(text, " ", ""), "") }

// TestBLEUPublished compares scores with those in sacreBLEU's README and tests.
func TestBLEUPublished(t *testing.T) {
	fewer := slices.Clone(dog)
	fewer[0].references = fewer[0].references[1:]
	for _, test := range []struct {
		name   string
		corpus corpus
		split  func(string) []string
		want   float64
		within float64
	}{
		{"dog", dog, nil, 48.530827, 1e-6},
		{"dog, split at spaces", dog, strings.Fields, 49.1919566, 1e-6},
		{"dog, with one reference less", fewer, nil, 29.44, 5e-3},
		{"empty answers", corpus{{"", dog[0].references}, {"", dog[1].references}, {"", dog[2].references}}, nil, 0, 0},
		{"sugar", sugar, nil, 8.493, 1e-3},
		{"sugar, split at spaces", sugar, strings.Fields, 7.347, 1e-3},
		{"sugar, by characters", sugar, eachCharacter, 40.8759, 1e-3},
		{"nothing right", corpus{{"this is a cat", []string{"okay thanks"}}}, nil, 0, 0},
		{"all right", corpus{{"this is a test", []string{"this is a test"}}}, nil, 100, 1e-9},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := BLEU{Split: test.split}
			for _, c := range test.corpus {
				b.Add(c.answer, c.references...)
			}
			if got := b.Value(); !(math.Abs(got-test.want) <= test.within) {
				t.Errorf("BLEU is %v, want %v", got, test.want)
			}
		})
	}
}

func TestCHRFPublished(t *testing.T) {
	for _, test := range []struct {
		name   string
		corpus corpus
		want   float64
		within float64
	}{
		// From sacreBLEU's README.
		{"dog", dog, 59.73, 5e-3},
		// From the documentation of Hugging Face's evaluate, which calls sacreBLEU.
		{"bookshop", corpus{
			{"The relationship between cats and dogs is not exactly friendly.", []string{"The relationship between dogs and cats is not exactly friendly."}},
			{"a good bookshop is just a genteel black hole that knows how to read.", []string{"A good bookshop is just a genteel Black Hole that knows how to read."}},
		}, 84.64214891738334, 1e-9},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s CHRF
			for _, c := range test.corpus {
				s.Add(c.answer, c.references...)
			}
			if got := s.Value(); !(math.Abs(got-test.want) <= test.within) {
				t.Errorf("chrF is %v, want %v", got, test.want)
			}
		})
	}
	// From sacreBLEU's tests, with β = 3. A visible character replaces spaces where they must count.
	kept := strings.NewReplacer(" ", "\u2e31")
	for _, test := range []struct {
		name           string
		answers, right []string
		want           float64
	}{
		{"one", []string{"a"}, []string{"a"}, 100},
		{"no answer", []string{""}, []string{"reference"}, 0},
		{"no answer, one character", []string{""}, []string{"c"}, 0},
		{"spaces", []string{"a b c"}, []string{"a b c"}, 100},
		{"spaces in one", []string{"a b c"}, []string{"abc"}, 100},
		{"two", []string{"a", "b"}, []string{"a", "c"}, 50},
		{"short", []string{"aa"}, []string{"ab"}, 25},
		{"Beziehung", []string{kept.Replace("Die Beziehung zwischen Obama und Netanjahu ist nicht gerade freundlich.")},
			[]string{kept.Replace("Das Verhältnis zwischen Obama und Netanyahu ist nicht gerade freundschaftlich.")}, 67.3481606},
		{"risk", []string{kept.Replace("risk assessment must be made of those who are qualified and expertise in the sector - these are the scientists .")},
			[]string{kept.Replace("risk assessment has to be undertaken by those who are qualified and expert in that area - that is the scientists .")}, 65.2414427},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s CHRF
			for i, answer := range test.answers {
				s.Add(answer, test.right[i])
			}
			if got := s.stats.score(3); math.Abs(got-test.want) > 1e-6 {
				t.Errorf("chrF3 is %v, want %v", got, test.want)
			}
		})
	}
}

// TestCHRFByCounting compares CHRF with a plain implementation that makes a string of every n-gram.
func TestCHRFByCounting(t *testing.T) {
	grams := func(text string, n int) (map[string]int, int) {
		count, total := map[string]int{}, 0
		runes := []rune(strings.Join(strings.Fields(text), ""))
		for i := 0; i+n <= len(runes); i++ {
			count[string(runes[i:i+n])]++
			total++
		}
		return count, total
	}
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteRune([]rune("aaabbä 𝄞")[rng.IntN(8)])
		}
		return b.String()
	}
	var s CHRF
	var sum chrStats
	for range 2000 {
		answer := text()
		var references []string
		for range 1 + rng.IntN(3) {
			references = append(references, text())
		}
		if rng.IntN(500) == 0 { // long enough that the next Add makes a new tree
			answer += strings.Repeat(answer+"xyz𝄞", 1000)
		}
		s.Add(answer, references...)
		var best chrStats
		highest := -1.0
		for _, reference := range references {
			var stats chrStats
			for n := range chrLongest {
				a, as := grams(answer, n+1)
				r, rs := grams(reference, n+1)
				stats.answer[n], stats.reference[n] = as, rs
				if rs == 0 {
					stats.answer[n] = 0
				}
				for g, k := range a {
					stats.common[n] += min(k, r[g])
				}
			}
			if f := stats.score(chrBeta); f > highest {
				best, highest = stats, f
			}
		}
		for n := range chrLongest {
			sum.answer[n] += best.answer[n]
			sum.reference[n] += best.reference[n]
			sum.common[n] += best.common[n]
		}
		if s.stats != sum {
			t.Fatalf("after %.50q for %.50q: %v, want %v", answer, references, s.stats, sum)
		}
	}
	if got := s.Value(); got < 10 || got > 90 {
		t.Errorf("chrF is %v, want 10 to 90: these texts test nothing", got)
	}
}

// TestTokens13a compares tokens13a with the regular expressions of mteval-v13a.
func TestTokens13a(t *testing.T) {
	rules := []struct {
		find *regexp.Regexp
		put  string
	}{
		{regexp.MustCompile("([\\{-\\~\\[-\\` -\\&\\(-\\+\\:-\\@\\/])"), " $1 "},
		{regexp.MustCompile(`([^0-9])([\.,])`), "$1 $2 "},
		{regexp.MustCompile(`([\.,])([^0-9])`), " $1 $2"},
		{regexp.MustCompile(`([0-9])(-)`), "$1 $2 "},
	}
	byRules := func(text string) []string {
		text = " " + strings.TrimRight(text, " ") + " "
		for _, r := range rules {
			text = r.find.ReplaceAllString(text, r.put)
		}
		return strings.Fields(text)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	symbols := []rune("ab09 .,.,-'\"&$/:@[]{}~_`^|ä…")
	for range 20_000 {
		var b strings.Builder
		for range rng.IntN(20) {
			b.WriteRune(symbols[rng.IntN(len(symbols))])
		}
		if got, want := tokens13a(b.String()), byRules(b.String()); !slices.Equal(got, want) {
			t.Fatalf("tokens of %q: %q, want %q", b.String(), got, want)
		}
	}
	for text, want := range map[string]string{
		"It's 3,000.50, he said.":   "It's 3,000.50 , he said .",
		"&quot;a&amp;b&quot;\n&lt;": `" a & b " <`,
		"hyphen-\nated, 10-12":      "hyphenated , 10 - 12",
		"a\u00a0b\x1cc <skipped>d":  "a b c d",
		"":                          "",
	} {
		if got := strings.Join(tokens13a(text), " "); got != want {
			t.Errorf("tokens of %q: %q, want %q", text, got, want)
		}
	}
}

// fixtures are scores by other programs. testdata/fixtures.py writes them.
type fixtures struct {
	Bleu []struct {
		Corpus []struct {
			Answer     []string
			References [][]string
		}
		Value float64
	}
	Edits []struct {
		A, B     []string
		Distance int
	}
	Confusion []struct {
		Pairs                 [][2]string
		Classes               []string
		Precision, Recall, F1 []float64
		Rows                  []int
		Macro                 [3]float64
		Accuracy              float64
		Matrix                [][]int
	}
}

func readFixtures(t *testing.T) (f fixtures) {
	t.Helper()
	content, err := os.ReadFile("testdata/fixtures.json")
	if err == nil {
		err = json.Unmarshal(content, &f)
	}
	if err != nil || len(f.Bleu) == 0 || len(f.Edits) == 0 || len(f.Confusion) == 0 {
		t.Fatalf("%d, %d and %d fixtures, want some of each: %v", len(f.Bleu), len(f.Edits), len(f.Confusion), err)
	}
	return f
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }

func TestBLEUIsNLTKs(t *testing.T) {
	for i, f := range readFixtures(t).Bleu {
		b := BLEU{Split: strings.Fields}
		for _, c := range f.Corpus {
			var references []string
			for _, r := range c.References {
				references = append(references, strings.Join(r, " "))
			}
			b.Add(strings.Join(c.Answer, " "), references...)
		}
		if got := b.Value(); !near(got, f.Value) {
			t.Errorf("corpus %d: BLEU is %v, want %v", i, got, f.Value)
		}
	}
}

func TestEditDistanceIsNLTKs(t *testing.T) {
	for _, f := range readFixtures(t).Edits {
		got, row := text.EditDistance(f.A, f.B, nil)
		if back, _ := text.EditDistance(f.B, f.A, row); got != f.Distance || back != f.Distance {
			t.Errorf("%v and %v: distance %d, in the other order %d, want %d", f.A, f.B, got, back, f.Distance)
		}
	}
}

func TestErrorRate(t *testing.T) {
	for _, test := range []struct {
		name         string
		answer       string
		references   []string
		edits, units int
	}{
		{"right", "abc", []string{"abc"}, 0, 3},
		{"nearest", "abc", []string{"xyz", "abd", "b"}, 1, 3},
		{"longest of the nearest", "abc", []string{"ab", "abcd", "abd"}, 1, 4},
		{"empty answer", "", []string{"abc", "ab"}, 2, 2},
		{"empty reference", "ab", []string{""}, 2, 0},
		{"no reference", "ab", nil, 2, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var e ErrorRate[byte]
			var references [][]byte
			for _, r := range test.references {
				references = append(references, []byte(r))
			}
			e.Add([]byte(test.answer), references...)
			if e.Edits != test.edits || e.Units != test.units {
				t.Errorf("%d edits and %d units, want %d and %d", e.Edits, e.Units, test.edits, test.units)
			}
		})
	}
	var e ErrorRate[int]
	if e.Value() != 0 {
		t.Errorf("without answers: %v, want 0", e.Value())
	}
	e.Add([]int{1, 2}, []int{1, 3})
	e.Add([]int{1, 2, 3}, []int{9}, []int{1, 2})
	if e.Value() != 0.5 {
		t.Errorf("2 edits in 4 units: %v, want 0.5", e.Value())
	}
}

func TestConfusionIsScikitLearns(t *testing.T) {
	for i, f := range readFixtures(t).Confusion {
		var c Confusion
		for _, p := range f.Pairs {
			c.Add(p[0], p[1])
		}
		classes := c.Classes()
		if len(classes) != len(f.Classes) {
			t.Fatalf("case %d: classes %v, want %v", i, classes, f.Classes)
		}
		for k, s := range classes {
			if s.Class != f.Classes[k] || !near(s.Precision, f.Precision[k]) || !near(s.Recall, f.Recall[k]) || !near(s.F1, f.F1[k]) || s.Rows != f.Rows[k] {
				t.Errorf("case %d: %+v, want %s %v %v %v %d", i, s, f.Classes[k], f.Precision[k], f.Recall[k], f.F1[k], f.Rows[k])
			}
			for j, right := range f.Classes {
				if got, want := c.Count(s.Class, right), f.Matrix[j][k]; got != want {
					t.Errorf("case %d: %s answered for %s %d times, want %d", i, s.Class, right, got, want)
				}
			}
		}
		m := c.Macro()
		if !near(m.Precision, f.Macro[0]) || !near(m.Recall, f.Macro[1]) || !near(m.F1, f.Macro[2]) || m.Rows != len(f.Pairs) || m.Answers != len(f.Pairs) {
			t.Errorf("case %d: means %+v, want %v and %d rows", i, m, f.Macro, len(f.Pairs))
		}
		if got := c.Accuracy(); !near(got, f.Accuracy) {
			t.Errorf("case %d: accuracy %v, want %v", i, got, f.Accuracy)
		}
	}
}

func TestNothingAdded(t *testing.T) {
	var c Confusion
	if got := c.Macro(); got != (ClassScore{}) || c.Accuracy() != 0 || len(c.Classes()) != 0 {
		t.Errorf("without answers: Macro %+v, accuracy %v, classes %v; want zeros and no classes", got, c.Accuracy(), c.Classes())
	}
	if got := new(BLEU).Value(); got != 0 {
		t.Errorf("BLEU without answers: %v, want 0", got)
	}
	if got := new(CHRF).Value(); got != 0 {
		t.Errorf("chrF without answers: %v, want 0", got)
	}
	var b BLEU
	var s CHRF
	b.Add("this is a test")
	s.Add("this is a test")
	if b.Value() != 0 || s.Value() != 0 {
		t.Errorf("without references: BLEU %v, chrF %v, want 0", b.Value(), s.Value())
	}
}
