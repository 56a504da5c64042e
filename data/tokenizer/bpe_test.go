package tokenizer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/patterns"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

func newTestBPE(t testing.TB, size int, texts ...string) *Pipeline {
	t.Helper()
	return must.Get(New(BPE, slices.Values(texts), size))(t).(*Pipeline)
}

// tokensOf returns the tokens of a byte-level BPE, beginning with the id first.
func tokensOf(t testing.TB, tok Tokenizer, first int) (tokens []string) {
	t.Helper()
	for id := first; id < tok.Len(); id++ {
		tokens = append(tokens, must.Get(tok.Decode([]int{id}))(t))
	}
	return tokens
}

func TestPieces(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"a sentence", "We'll see it, won't we? It's 10 o'clock.", []string{"We", "'ll", " see", " it", ",", " won", "'t", " we", "?", " It", "'s", " 10", " o", "'", "clock", "."}},
		{"no contractions", "A'S 'tis 's ''s 'lx", []string{"A", "'", "S", " '", "tis", " '", "s", " ''", "s", " '", "lx"}},
		{"numbers", "x2 3½٣ 4,5", []string{"x", "2", " 3½٣", " 4", ",", "5"}},
		{"spaces before a word", "a   b", []string{"a", "  ", " b"}},
		{"other white space before a word", "a\n\n\tb \u00a0c", []string{"a", "\n\n", "\t", "b", " ", "\u00a0", "c"}},
		{"white space at the end", "a \n ", []string{"a", " \n "}},
		{"a space alone", " ", []string{" "}},
		{"marks are no letters", "e\u0301t", []string{"e", "\u0301", "t"}},
		{"the next line is white space, a byte-order mark isn't", "\u0085\u0085a \ufeffb", []string{"\u0085", "\u0085", "a", " \ufeff", "b"}},
		{"control characters", "\x00 \x1b[1m", []string{"\x00", " \x1b[", "1", "m"}},
	} {
		if got := slices.Collect(patterns.Pieces(tc.text)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// slowPieces matches GPT-2's pattern one alternative at a time. Package regexp has no (?!\S).
func slowPieces(text string) (pieces []string) {
	for text != "" {
		var piece string
		for _, alternative := range alternatives {
			piece = alternative.FindString(text)
			if piece != "" && alternative == spacesNotBefore && len(piece) < len(text) {
				_, n := utf8.DecodeLastRuneInString(piece) // white space follows the rest of the piece
				piece = piece[:len(piece)-n]
			}
			if piece != "" {
				break
			}
		}
		pieces, text = append(pieces, piece), text[len(piece):]
	}
	return pieces
}

const whiteSpace = `\t-\r\x{85}\p{Z}`

var (
	spacesNotBefore = regexp.MustCompile(`^[` + whiteSpace + `]+`)
	alternatives    = []*regexp.Regexp{
		regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d)`), regexp.MustCompile(`^ ?\p{L}+`), regexp.MustCompile(`^ ?\p{N}+`),
		regexp.MustCompile(`^ ?[^` + whiteSpace + `\p{L}\p{N}]+`), spacesNotBefore, regexp.MustCompile(`^[` + whiteSpace + `]+`),
	}
)

// A slowBPE is a byte-level BPE that learns and encodes in the simplest way.
type slowBPE struct {
	tokens []string
	merges [][3]int // ids of the left, the right and the joined token
}

// learnSlowly learns like New, but counts all pairs again for each merge. The argument bytes has the first 256 tokens.
func learnSlowly(text string, size int, bytes []string) *slowBPE {
	t := &slowBPE{tokens: slices.Clone(bytes)}
	var words [][]int
	for _, piece := range slowPieces(text) {
		words = append(words, t.bytes(piece))
	}
	for len(t.tokens) < size {
		counts := map[[2]int]int{}
		for _, word := range words {
			for i := range len(word) - 1 {
				counts[[2]int{word[i], word[i+1]}]++
			}
		}
		best, count := [2]int{}, 1
		for p, n := range counts {
			if n > count || n == count && n > 1 && slices.Compare(p[:], best[:]) < 0 {
				best, count = p, n
			}
		}
		if count < 2 {
			break
		}
		token := t.tokens[best[0]] + t.tokens[best[1]]
		id := slices.Index(t.tokens, token)
		if id < 0 {
			id = len(t.tokens)
			t.tokens = append(t.tokens, token)
		}
		t.merges = append(t.merges, [3]int{best[0], best[1], id})
		for i, word := range words {
			var merged []int
			for j := 0; j < len(word); j++ {
				if j+1 < len(word) && [2]int(word[j:j+2]) == best {
					merged = append(merged, id)
					j++
				} else {
					merged = append(merged, word[j])
				}
			}
			words[i] = merged
		}
	}
	return t
}

// bytes returns the ids of the bytes of a piece.
func (t *slowBPE) bytes(piece string) (ids []int) {
	for i := range len(piece) {
		ids = append(ids, slices.Index(t.tokens, piece[i:i+1]))
	}
	return ids
}

// Encode repeatedly merges the leftmost occurrence of the pair that was learned first.
func (t *slowBPE) Encode(text string) (ids []int) {
	for _, piece := range slowPieces(text) {
		word := t.bytes(piece)
		for {
			best, place := len(t.merges), -1
			for i := range len(word) - 1 {
				rank := slices.IndexFunc(t.merges, func(m [3]int) bool { return [2]int(m[:2]) == [2]int(word[i:i+2]) })
				if rank >= 0 && rank < best {
					best, place = rank, i
				}
			}
			if place < 0 {
				break
			}
			word = slices.Replace(word, place, place+2, t.merges[best][2])
		}
		ids = append(ids, word...)
	}
	return ids
}

func TestBPETraining(t *testing.T) {
	// The pairs (l, o) and (o, w) are equally common, and so are (e, r) and (" ", "low"): the pair with the lower ids
	// is merged first.
	tok := newTestBPE(t, 261, "low lower low lower newer")
	if got := tokensOf(t, tok, 256); !slices.Equal(got, []string{"lo", "low", "er", " low", " lower"}) {
		t.Errorf("learned %q", got)
	}
	if tok := newTestBPE(t, 300, "abab ab"); tok.Len() != 257 { // no other pair occurs twice
		t.Errorf("learned %q", tokensOf(t, tok, 256))
	}
	if tok := newTestBPE(t, 256, "aaaa"); tok.Len() != 256 {
		t.Errorf("learned %q", tokensOf(t, tok, 256))
	}
	if tok := newTestBPE(t, 1000, strings.Repeat("a", 1000*256)); tok.Len() != 256+8 || len(tokensOf(t, tok, 263)[0]) != 256 {
		t.Errorf("learned %q", tokensOf(t, tok, 256))
	}
	for _, tc := range []struct {
		size    int
		text    string
		wantErr string
	}{
		{0, "a", "a tokenizer for bpe needs a size of at least 256, got 0"},
		{255, "a", "got 255"},
		{256, "", "can't make a tokenizer for bpe from 1 texts: all of them are empty"},
		{256, "\xff", "text 0 (from 0): not UTF-8"},
	} {
		must.Refuse(New(BPE, slices.Values([]string{tc.text}), tc.size))(t, tc.wantErr)
	}
}

// TestBPEBytes checks that every byte has a token, in the same order as in other libraries' files.
func TestBPEBytes(t *testing.T) {
	tok := newTestBPE(t, 256, "a")
	for id, want := range map[int]string{0: "!", 93: "~", 94: "\xa1", 187: "\xff", 188: "\x00", 220: " ", 255: "\xad"} {
		if got, err := tok.Decode([]int{id}); err != nil || got != want {
			t.Errorf("Decode of id %d: %q, %v; want %q", id, got, err, want)
		}
	}
	ids, err := tok.Encode("é")
	if err != nil || len(ids) != 2 {
		t.Fatalf("got %v, %v", ids, err)
	}
	if part, err := tok.Decode(ids[:1]); err != nil || part != "\xc3" {
		t.Errorf("Decode of the first byte: %q, %v; want \"\\xc3\"", part, err)
	}
	if tok.Unknown() != -1 {
		t.Errorf("the unknown id is %d, want -1", tok.Unknown())
	}
}

// TestBPELongWords checks that a long word doesn't take quadratic time. It also fills the caches of several goroutines.
func TestBPELongWords(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	tok := newTestBPE(t, 270, strings.Repeat("the others ", 9))
	long := strings.Repeat("theothers", 1<<16)
	ids, err := tok.Encode(long)
	if err != nil || len(ids) > len(long)/2 {
		t.Fatalf("%d ids, %v", len(ids), err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var text strings.Builder
			for i := range 2 * models.MaxCached {
				text.WriteString(" x" + strings.Repeat("ab", i%9) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)))
			}
			ids, err := tok.Encode(text.String())
			if err != nil {
				t.Error(err)
			}
			if back, err := tok.Decode(ids); err != nil || back != text.String() {
				t.Errorf("the decoded text differs from the encoded text; error %v", err)
			}
		})
	}
	group.Wait()
}

func FuzzBPE(f *testing.F) {
	f.Add("low lower low lower newest newest", "lowest slow", uint8(9))
	f.Add("aaaaaaaaa aaaa aa aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaa aaa", uint8(20))
	f.Add("it's 's'''ll \n\n  x  \r\n été été 東京都 \u0085\u0085\ufeff", "  \u3000 's ½٣1 e\u0301", uint8(255))
	f.Add("abcabcab abcab bcabc cabc", "cabcabcabc", uint8(40))
	f.Fuzz(func(t *testing.T, text, other string, size uint8) {
		if text == "" || len(text) > 200 || len(other) > 400 || !utf8.ValidString(text) || !utf8.ValidString(other) {
			return
		}
		tok := newTestBPE(t, 256+int(size), text)
		tokens := tokensOf(t, tok, 0)
		slow := learnSlowly(text, 256+int(size), tokens[:256])
		if !slices.Equal(tokens, slow.tokens) {
			t.Fatalf("%q: learned %q, want %q", text, tokens[256:], slow.tokens[256:])
		}
		if got, want := slices.Collect(patterns.Pieces(other)), slowPieces(other); !slices.Equal(got, want) {
			t.Fatalf("%q: pieces %q, want %q", other, got, want)
		}
		for range 2 { // without and with the cache
			ids, err := tok.Encode(other)
			if want := slow.Encode(other); err != nil || !slices.Equal(ids, want) {
				t.Fatalf("Encode(%q) = %v, %v; want %v", other, ids, err, want)
			}
			if back, err := tok.Decode(ids); err != nil || back != other {
				t.Fatalf("%q became %q, %v", other, back, err)
			}
		}
	})
}

// TestFallbackOfAffixes encodes characters that become bytes, with a prefix or a suffix. The prefix and the suffix
// become bytes, too. They aren't in the text, so their bytes have empty parts.
func TestFallbackOfAffixes(t *testing.T) {
	var bytes strings.Builder
	for b := range 256 {
		fmt.Fprintf(&bytes, `"<0x%02X>": %d, `, b, b)
	}
	for option, want := range map[string][]Token{
		`"end_of_word_suffix": "</"`:       {{'a', 0, 1}, {0xC3, 1, 3}, {0xA9, 1, 3}, {'<', 3, 3}, {'/', 3, 3}},
		`"continuing_subword_prefix": "#"`: {{'a', 0, 1}, {'#', 1, 1}, {0xC3, 1, 3}, {0xA9, 1, 3}},
	} {
		tok := must.Get(Read(strings.NewReader(`{"version": "1.0", "model": {"type": "BPE", "byte_fallback": true, ` + option + `, "vocab": {` + bytes.String() + `"x": 256}, "merges": []}}`)))(t)
		got, err := tok.Tokenize("aé", Options{})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", option, got, err, want)
		}
	}
}
