package linear

import (
	"fmt"
	"unicode/utf8"
)

// A Tagger gives each token the tag that it most often has between the same two neighbours. If it hasn't been seen
// between them, the tagger looks for the token after the same neighbour, then before the same neighbour, then for the
// token alone, then for tokens with the same last three characters. If there are none either, it gives the most
// frequent tag.
type Tagger struct {
	tags map[view]string
}

// A view is what a tagger sees of a token and its neighbours. Parts that it doesn't see are empty.
type view struct {
	kind                  viewKind
	previous, token, next string
}

type viewKind uint8

const (
	between viewKind = iota
	after
	before
	alone
	ending
	nothing
	viewKinds
)

// viewOf returns what a tagger sees of token i. A sentence has an empty token before it and after it.
func viewOf(tokens []string, i int, kind viewKind) view {
	v := view{kind: kind, token: tokens[i]}
	if i > 0 && (kind == between || kind == after) {
		v.previous = tokens[i-1]
	}
	if i+1 < len(tokens) && (kind == between || kind == before) {
		v.next = tokens[i+1]
	}
	switch kind {
	case ending:
		start := len(v.token)
		for range 3 {
			_, size := utf8.DecodeLastRuneInString(v.token[:start])
			start -= size
		}
		v.token = v.token[start:]
	case nothing:
		v.token = ""
	}
	return v
}

// FitTagger counts the tags of n sentences: tags[i] belongs to token i. Of two tags that are equally frequent, it
// keeps the one that comes first in alphabetical order. It returns an error if a sentence has a different number of
// tokens and of tags.
func FitTagger(n int, sentence func(i int) (tokens, tags []string)) (*Tagger, error) {
	type tagged struct {
		view
		tag string
	}
	counts := make(map[tagged]int)
	for i := range n {
		tokens, tags := sentence(i)
		if len(tokens) != len(tags) {
			return nil, fmt.Errorf("linear: expected a tag for each token, got %d tokens and %d tags in sentence %d", len(tokens), len(tags), i)
		}
		for k, tag := range tags {
			for kind := range viewKinds {
				counts[tagged{viewOf(tokens, k, kind), tag}]++
			}
		}
	}
	t := &Tagger{make(map[view]string)}
	for key, count := range counts {
		best, ok := t.tags[key.view]
		most := counts[tagged{key.view, best}]
		if !ok || count > most || count == most && key.tag < best {
			t.tags[key.view] = key.tag
		}
	}
	return t, nil
}

// Tag returns a tag for each token. A tagger that has seen no token gives empty tags.
func (t *Tagger) Tag(tokens []string) []string {
	tags := make([]string, len(tokens))
	for i := range tokens {
		for kind := range viewKinds {
			if tag, ok := t.tags[viewOf(tokens, i, kind)]; ok {
				tags[i] = tag
				break
			}
		}
	}
	return tags
}
