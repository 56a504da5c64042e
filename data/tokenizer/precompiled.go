package tokenizer

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// parsePrecompiled reads a precompiled_charsmap in base64.
func parsePrecompiled(encoded string) (normalizer, error) {
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("its precompiled_charsmap must be in base64")
	}
	table, err := newCharsmap(content)
	if err != nil {
		return nil, err
	}
	return precompiled{table}, nil
}

// precompiled is the normalizer Precompiled: the rules of a SentencePiece model.
type precompiled struct{ rules *charsmap }

func (p precompiled) normalize(a aligned) aligned {
	a.budget.take(stepsOfForm * len(a.text))
	var t *transformer // nil while nothing has changed
	done := 0          // bytes of a.text before the part that is next
	keep := func(part string) {
		if done += len(part); t != nil {
			for _, r := range part {
				t.add(formed{r: r})
			}
		}
	}
	replace := func(part, text string) {
		if t == nil {
			t = &transformer{rewriter: rewriter{in: a}}
			r, n := utf8.DecodeLastRuneInString(a.text[:done])
			if t.keep(done - n); n > 0 {
				t.add(formed{r: r})
			}
		}
		done += len(part)
		left := utf8.RuneCountInString(part) // characters of the part that the text's don't stand for yet
		for _, r := range text {
			t.add(formed{r: r, added: 1 - min(1, left)}) // the last ones stand beside
			left = max(0, left-1)
		}
		t.drop(left)
	}
	rest, state := clustered(a.text), -1
	for rest != "" && !a.budget.spent() {
		cluster := rest[:1]
		if rest[0] < utf8.RuneSelf && (len(rest) == 1 || rest[1] < utf8.RuneSelf && rest[:2] != "\r\n") {
			rest, state = rest[1:], -1
		} else {
			cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		}
		cluster = a.text[len(a.text)-len(rest)-len(cluster) : len(a.text)-len(rest)]
		if len(cluster) < 6 {
			if text, ok := p.rules.replacement(cluster); ok {
				replace(cluster, text)
				continue
			}
		}
		for i, r := range cluster {
			part := cluster[i : i+utf8.RuneLen(r)]
			if text, ok := p.rules.replacement(part); ok {
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
