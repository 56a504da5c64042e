package score

import (
	"strings"
	"unicode"
)

// Extracts compares short texts with their references as the script of SQuAD 2.0 does. It ignores case, ASCII
// punctuation, the articles a, an and the, and the amount of white space. Each text is compared with the reference that
// suits it best; a text without references has the reference "", as a question without an answer has.
type Extracts struct {
	N     int // number of texts
	Exact int // number of texts that equal a reference
	f1    float64
}

// Add adds a text. It returns whether the text equals a reference, and its F1 score: the harmonic mean of the share of
// its words that the reference has, and of the share of the reference's words that it has.
func (e *Extracts) Add(answer string, references ...string) (exact bool, f1 float64) {
	words := normalWords(answer)
	compared := 0
	for i, reference := range append(references, "") {
		others := normalWords(reference)
		if len(others) == 0 && (i < len(references) || compared > 0) { // such references count only alone
			continue
		}
		compared++
		same := strings.Join(words, " ") == strings.Join(others, " ")
		exact, f1 = exact || same, max(f1, overlap(words, others))
	}
	e.N++
	e.f1 += f1
	if exact {
		e.Exact++
	}
	return exact, f1
}

// ExactMatch returns the share of texts that equal a reference. It is NaN without texts.
func (e *Extracts) ExactMatch() float64 { return float64(e.Exact) / float64(e.N) }

// F1 returns the mean F1 score. It is NaN without texts.
func (e *Extracts) F1() float64 { return e.f1 / float64(e.N) }

// overlap returns the F1 score of two lists of words. If one of them is empty, only another empty one is right.
func overlap(a, b []string) float64 {
	if len(a) == 0 || len(b) == 0 {
		if len(a) == len(b) {
			return 1
		}
		return 0
	}
	counts, common := map[string]int{}, 0
	for _, word := range b {
		counts[word]++
	}
	for _, word := range a {
		if counts[word]--; counts[word] >= 0 {
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}

// normalWords returns the words of a text that count.
func normalWords(s string) []string {
	s = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			return -1
		}
		return r
	}, strings.ToLower(s))
	inside := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	var kept strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return !inside(r) })
		if end < 0 {
			end = len(s)
		}
		if word := s[:end]; word != "a" && word != "an" && word != "the" {
			kept.WriteString(word)
		} else {
			kept.WriteByte(' ')
		}
		s = s[end:]
		next := strings.IndexFunc(s, inside)
		if next < 0 {
			next = len(s)
		}
		kept.WriteString(s[:next])
		s = s[next:]
	}
	return strings.Fields(kept.String())
}
