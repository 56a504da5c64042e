package published

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/characters"
	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// addedTokens finds added tokens in a text: the leftmost first, and of these the longest. After a token that isn't
// white space itself, the next one may begin in the white space that it takes; then their parts overlap.
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

// split calls yield for each added token in the text, and for each part between added tokens. For these parts, token is
// nil. The Options say which special tokens are ordinary text.
func (a *addedTokens) split(text pipe.Text, o Options, yield func(part pipe.Text, token *format.AddedToken) error) error {
	s, done := text.Content, 0
	for i := 0; a != nil && i < len(s); {
		if a.keys.Root[s[i]] == 0 {
			i++
			continue
		}
		n, which := a.keys.Longest(s[i:], text.Budget)
		if text.Budget.Spent() {
			return text.Budget.Err
		}
		if which < 0 {
			i++
			continue
		}
		token, start, end := &a.tokens[which], i, i+n
		i = end
		if token.Special && !o.Special || token.SingleWord && (endsInWord(s[:start]) || startsWithWord(s[end:])) {
			continue
		}
		if token.Special && o.overlaps(text.Original(start, end)) {
			i = start + 1 // a token of the program may begin inside
			continue
		}
		if token.LeftStrip {
			if start = max(start, done); start >= end {
				continue // in the white space that the token before takes
			}
			start = done + len(strings.TrimRightFunc(s[done:start], unicode.IsSpace))
		}
		if token.RightStrip {
			end = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
			if strings.TrimFunc(token.Content, unicode.IsSpace) == "" {
				i = end // every search in this white space would take all of it again
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
