package linear

import (
	"slices"
	"strings"
	"testing"
)

func TestTagger(t *testing.T) {
	sentences := []string{
		"the/D saw/N cuts/V",
		"they/P saw/V the/D saw/N",
		"we/P saw/V it/P",
		"he/P is/V running/V",
	}
	split := func(sentence string) (tokens, tags []string) {
		for _, word := range strings.Fields(sentence) {
			token, tag, _ := strings.Cut(word, "/")
			tokens, tags = append(tokens, token), append(tags, tag)
		}
		return tokens, tags
	}
	tagger, err := FitTagger(len(sentences), func(i int) (tokens, tags []string) { return split(sentences[i]) })
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"",
		"the/D saw/N cuts/V",
		"the/D saw/N the/D saw/N", // after the same neighbour
		"you/V saw/V it/P",        // before the same neighbour; "you" by the most frequent tag
		"singing/V",               // by its last three characters
		"saw/N", "saw/N saw/N",    // alone, as often a noun as a verb
	} {
		tokens, tags := split(want)
		if got := tagger.Tag(tokens); !slices.Equal(got, tags) {
			t.Errorf("%v: got tags %v, want %v", tokens, got, tags)
		}
	}

	if _, err := FitTagger(1, func(int) (tokens, tags []string) { return []string{"a"}, nil }); err == nil {
		t.Error("expected an error about a token without a tag")
	}
	empty, err := FitTagger(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := empty.Tag([]string{"a"}); !slices.Equal(got, []string{""}) {
		t.Errorf("a tagger without sentences gives %q", got)
	}
}
