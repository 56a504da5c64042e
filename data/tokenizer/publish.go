package tokenizer

import (
	"fmt"
	"io"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
)

// WritePublished is like Write, but writes a tokenizer.json of a published model: a file that Open reads, and other
// libraries with the same ids. A Vocab becomes a byte-pair encoding of characters without merges. If it has no unknown
// id, the tokenizer of that file leaves out unknown characters, which are errors of Vocab.Encode.
//
// WritePublished returns an error for units other than Characters and BPE, and the errors of Write.
func WritePublished(w io.Writer, t Tokenizer) error {
	v, ok := t.(*Vocab)
	if !ok {
		if s, ok := t.(*spaced); ok {
			return fmt.Errorf("a tokenizer for %s can't be written as a published one: it must be for %s or %s", s.units, Characters, BPE)
		}
		return Write(w, t)
	}
	model := bpeJSON{Type: "BPE", Vocab: strings.Split(v.Symbols(), ""), Merges: []joinJSON{}}
	if v.unknown {
		model.Vocab, model.UnknownToken = append(model.Vocab, unknownToken), unknownToken
	}
	content, err := format.Marshal(format.File{Version: "1.0", AddedTokens: []any{}, Decoder: forms[Characters].Decoder, Model: model}, "  ")
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}
