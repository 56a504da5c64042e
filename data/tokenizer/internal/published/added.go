package published

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// addedTokens finds added tokens in a text. The leftmost token counts, and of several that begin there, the longest. If
// a token includes the white space after it, the next token may begin in that white space. Then their parts overlap.
type addedTokens struct {
	tokens []format.AddedToken
	keys   *trie.Trie
}

func newAddedTokens(tokens []format.AddedToken) *addedTokens {
	if len(tokens) == 0 {
		return nil
	}
	keys := make([]string, len(tokens))
	for i, t := range tokens {
		keys[i] = t.Content
	}
	return &addedTokens{tokens, trie.New(keys)}
}

// split calls yield for each added token in the text, and for each part between added tokens. For a part between
// tokens, the argument token is nil. The Options say which special tokens are ordinary text.
func (a *addedTokens) split(text pipe.Text, o Options, yield func(part pipe.Text, token *format.AddedToken) error) error {
	s, done := text.Content, 0
	for i := 0; a != nil && i < len(s); {
		if a.keys.Root[s[i]] == 0 {
			i++
			continue
		}
		n, found := a.keys.Longest(s[i:], text.Budget)
		if text.Budget.Spent() {
			return text.Budget.Err
		}
		if found < 0 {
			i++
			continue
		}
		token, start, end := &a.tokens[found], i, i+n
		i = end
		if token.Special && !o.Special || token.SingleWord && (endsInWord(s[:start]) || startsWithWord(s[end:])) {
			continue
		}
		if token.Special && o.overlaps(text.Original(start, end)) {
			i = start + 1 // a token that the program wrote may begin inside
			continue
		}
		if token.LeftStrip {
			if start = max(start, done); start >= end {
				continue // the whole token is in the white space that the token before includes
			}
			start = done + len(strings.TrimRightFunc(s[done:start], unicode.IsSpace))
		}
		if token.RightStrip {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
			if strings.TrimFunc(token.Content, unicode.IsSpace) == "" {
				i = end // otherwise, each space of a long run would take the rest of the run again
			}
		}
		if done < start {
			if err := yield(text.Sub(done, start), nil); err != nil {
				return err
			}
		}
		if err := yield(text.Sub(start, end), token); err != nil {
			return err
		}
		done = end
	}
	if done < len(s) {
		return yield(text.Sub(done, len(s)), nil)
	}
	return nil
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && characters.IsWord(r)
}

func startsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && characters.IsWord(r)
}

// Options say where the names of special tokens in a text become special tokens.
type Options struct {
	Special bool        // everywhere except in Plain; otherwise, nowhere
	Plain   []pipe.Span // in order

	Words *[]int // if not nil, gets the number of each token's piece of the text, from 0
}

// overlaps reports whether the part of the text from start to end overlaps a part in Plain.
func (o Options) overlaps(start, end int) bool {
	i := sort.Search(len(o.Plain), func(i int) bool { return int(o.Plain[i].End) > start })
	return i < len(o.Plain) && int(o.Plain[i].Start) < end
}
