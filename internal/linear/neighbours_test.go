package linear

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

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
			texts = append(texts, Neighbours(tokens, i))
		}
	}
	m, _, err := FitClasses(t.Context(), Texts(texts), labels, len(tags), Rows{}, nil, Options{Grams: TokenGrams})
	must.Do(t, err)
	m = must.Get(FromTensors(m.Tensors()))(t)
	tokens := strings.Fields("they book a book quickly")
	scores := make([]float32, len(tags))
	got := ""
	for i := range tokens {
		m.Scores(scores, Neighbours(tokens, i), nil)
		best := 0
		for class, score := range scores {
			if score > scores[best] {
				best = class
			}
		}
		got += tags[best : best+1]
	}
	if want := "PVDNR"; got != want {
		t.Errorf("the tags are %s, want %s", got, want)
	}
}

func TestShape(t *testing.T) {
	for token, want := range map[string]string{"Paris": "Aaa", "NASA-2024": "AA-00", "été": "aa", "": ""} {
		if got := shapeOf(token); got != want {
			t.Errorf("the shape of %q is %q, want %q", token, got, want)
		}
	}
}
