package published

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
	"github.com/rivo/uniseg"
)

// parsePrecompiled makes the normalizer for a precompiled_charsmap in base64.
func parsePrecompiled(encoded string) (normalizer, error) {
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("its precompiled_charsmap must be in base64")
	}
	table, err := trie.NewCharsmap(content)
	if err != nil {
		return nil, err
	}
	return precompiled{table}, nil
}

// precompiled is a normalizer that applies the rules of a SentencePiece model to grapheme clusters and characters.
type precompiled struct{ rules *trie.Charsmap }

func (p precompiled) Normalize(a pipe.Text) pipe.Text {
	a.Budget.Take(pipe.StepsOfForm * len(a.Content))
	var t *transformer // nil while nothing has changed
	done := 0          // bytes of the text before the next part
	keep := func(part string) {
		if done += len(part); t != nil {
			for _, r := range part {
				t.add(formed{r: r})
			}
		}
	}
	replace := func(part, text string) {
		if t == nil {
			t = &transformer{Rewriter: pipe.Rewriter{In: a}}
			r, n := utf8.DecodeLastRuneInString(a.Content[:done])
			if t.Keep(done - n); n > 0 {
				t.add(formed{r: r})
			}
		}
		done += len(part)
		left := utf8.RuneCountInString(part) // characters of the part that no character of the text stands for yet
		for _, r := range text {
			t.add(formed{r: r, added: 1 - min(1, left)}) // characters beyond the length of the part are added
			left = max(0, left-1)
		}
		t.drop(left)
	}
	rest, state := characters.Clustered(a.Content), -1
	for rest != "" && !a.Budget.Spent() {
		cluster := rest[:1]
		if rest[0] < utf8.RuneSelf && (len(rest) == 1 || rest[1] < utf8.RuneSelf && rest[:2] != "\r\n") {
			rest, state = rest[1:], -1
		} else {
			cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		}
		cluster = a.Content[len(a.Content)-len(rest)-len(cluster) : len(a.Content)-len(rest)]
		if len(cluster) < 6 {
			if text, ok := p.rules.Shortest(cluster); ok {
				replace(cluster, text)
				continue
			}
		}
		for i, r := range cluster {
			part := cluster[i : i+utf8.RuneLen(r)]
			if text, ok := p.rules.Shortest(part); ok {
				replace(part, text)
				continue
			}
			keep(part)
		}
	}
	if t == nil {
		return a
	}
	return t.result()
}
