package data

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/text"
)

// LearnBPE replaces the characters by BPE tokens, which it learns from the training part, the first nine tenths of the
// characters. For the argument size, see tokenizer.New. After an error, the Text still has characters. LearnBPE must
// not be called twice.
func (t *Text) LearnBPE(size int) error {
	if err := t.tokenize(nil, size); err != nil {
		return fmt.Errorf("text %q: %w", t.name, err)
	}
	return nil
}

// tokenize replaces characters by tok's tokens. If tok is nil, it learns a BPE tokenizer of this size. It encodes the
// training part separately, so that the part ends at the same character for every tokenizer.
func (t *Text) tokenize(tok tokenizer.Tokenizer, size int) error {
	cut, err := t.offset(t.trainLen())
	if err != nil {
		return err
	}
	if t.whole {
		return t.tokenizeWhole(tok, cut)
	}
	free := memory.Free()
	var failed error
	parts := func(from, limit int64) iter.Seq[string] {
		return func(yield func(string) bool) { failed = t.parts(from, limit, free, yield) }
	}
	if tok == nil {
		tok, err = tokenizer.New(tokenizer.BPE, parts(0, cut), size)
		if failed != nil {
			return failed
		}
		if err != nil {
			return err
		}
	}
	var tokens []uint32
	encode := func(from, limit int64) error {
		for part := range parts(from, limit) {
			ids, err := tok.Encode(part)
			if err != nil {
				return fmt.Errorf("from byte %d on: %w", from, err)
			}
			from += int64(len(part))
			for _, id := range ids {
				tokens = append(tokens, uint32(id))
			}
			if need := 4 * cap(tokens); need > free {
				return fmt.Errorf("its tokens up to byte %d take %s of memory, but there is only %s: use a smaller file", from, text.Bytes(need+memory.Limit()-free), memory.LimitText())
			}
		}
		return failed
	}
	if err := encode(0, cut); err != nil {
		return err
	}
	train := len(tokens)
	if err := encode(cut, t.size); err != nil {
		return err
	}
	t.vocab, t.tokenizer, t.tokens, t.trainTokens = nil, tok, tokens, train
	if len(t.starts) < 2 {
		return nil
	}
	t.documents = nil
	lengths, end := make([]int64, tok.Len()), int64(0)
	for id := range lengths {
		piece, err := tok.Decode([]int{id})
		if err != nil {
			return err
		}
		lengths[id] = int64(len(piece))
	}
	for i, id := range tokens {
		end += lengths[id]
		t.beginDocuments(end, i)
	}
	return nil
}

// tokenizeWhole replaces characters by the tokens of the whole text. Tokens that begin before the offset cut are for
// training.
func (t *Text) tokenizeWhole(tok tokenizer.Tokenizer, cut int64) error {
	content, err := t.Content()
	if err != nil {
		return err
	}
	tokens, err := tok.Tokenize(content, tokenizer.Options{})
	if err != nil {
		return err
	}
	t.vocab, t.tokenizer, t.tokens = nil, tok, make([]uint32, len(tokens))
	t.documents = nil
	for i, token := range tokens {
		t.tokens[i] = uint32(token.ID)
		t.beginDocuments(int64(token.End), i)
		if token.Start < int(cut) {
			t.trainTokens = i + 1
		}
	}
	return nil
}

// offset returns the byte offset of a character in the file.
func (t *Text) offset(character int) (int64, error) {
	place := t.places[character/stride]
	reader := bufio.NewReader(io.NewSectionReader(t.source, place, t.size-place))
	for range character % stride {
		_, n, err := reader.ReadRune()
		if err == io.EOF {
			err = errChanged
		}
		if err != nil {
			return 0, err
		}
		place += int64(n)
	}
	return place, nil
}

// partBytes is the approximate size of a part in bytes.
const partBytes = 1 << 20

// parts yields the bytes between two offsets in parts that can be encoded separately. A part ends before white space
// that follows a character other than white space; BPE tokens and word tokens also end there. Text without such a place
// is one part, which is an error if encoding it needs more than free bytes of memory.
func (t *Text) parts(from, limit int64, free int, yield func(string) bool) error {
	reader := io.NewSectionReader(t.source, from, limit-from)
	block := make([]byte, partBytes)
	var part []byte
	for left := limit - from; ; {
		n, err := io.ReadFull(reader, block)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return err
		}
		part, left = append(part, block[:n]...), left-int64(n)
		if need := perByte * len(part); need > free {
			return fmt.Errorf("%s without white space before byte %d take %s of memory, but there is only %s: use another text",
				text.Bytes(len(part)), limit-left, text.Bytes(need+memory.Limit()-free), memory.LimitText())
		}
		if last && left != 0 {
			return errChanged
		}
		end := len(part)
		if !last {
			end = partEnd(part, len(part)-n)
		}
		if end > 0 && !yield(string(part[:end])) || last {
			return nil
		}
		part = append(part[:0], part[end:]...)
	}
}

// partEnd returns the last index i ≥ from where a part may end, or 0 if there is none.
func partEnd(text []byte, from int) int {
	for i := len(text) - 1; i >= max(1, from); i-- {
		if text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t' {
			if r, _ := utf8.DecodeLastRune(text[:i]); !unicode.IsSpace(r) {
				return i
			}
		}
	}
	return 0
}
