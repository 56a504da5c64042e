package tokenizer

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
)

// WritePublished is like Write, but writes a tokenizer.json of a published model: a file that Open reads, and other
// libraries with the same ids. A Vocab becomes a byte-pair encoding of characters without merges. If it has no unknown
// id, the tokenizer of that file leaves out unknown characters, which are errors of Vocab.Encode. Tokens become a
// WordPiece vocabulary in which no token continues another.
//
// WritePublished returns an error for Words, because no published tokenizer looks for the lower-case form of an unknown
// word, and the errors of Write.
func WritePublished(w io.Writer, t Tokenizer) error {
	file := format.File{Version: "1.0", AddedTokens: []any{}}
	switch t := t.(type) {
	case *Vocab:
		model := bpeJSON{Type: "BPE", Vocab: strings.Split(t.Symbols(), ""), Merges: []joinJSON{}}
		if t.unknown {
			model.Vocab, model.UnknownToken = append(model.Vocab, unknownToken), unknownToken
		}
		file.Decoder, file.Model = forms[Characters].Decoder, model
	case *spaced:
		if t.units == Words {
			return fmt.Errorf("a tokenizer for %s can't be written as a published one, which wouldn't look for the lower-case form of an unknown word: use %s, %s or %s", Words, Tokens, Characters, BPE)
		}
		longest := 0
		for _, token := range t.tokens {
			longest = max(longest, utf8.RuneCountInString(token))
		}
		file.PreTokenizer = forms[Tokens].PreTokenizer
		file.Model = map[string]any{"type": "WordPiece", "unk_token": unknownToken, "continuing_subword_prefix": " ", "max_input_chars_per_word": longest,
			"vocab": wordLevel(Tokens, t.tokens, t.Unknown()).Vocab}
	default:
		return Write(w, t)
	}
	content, err := format.Marshal(file, "  ")
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}
