package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/text"
)

// A Text gives access to the characters of files. They stay on disk and may be larger than memory: a Text keeps the
// offset of one character in 1024, and reads only the requested windows. It changes no characters, not even line ends.
//
// A single file of plain UTF-8 is read where it is. It must not change while the Text is open; reading a changed part
// returns an error. Other texts are copied to a temporary file: several files, gzip, JSONL, and encodings other than
// UTF-8. So is a file with a byte-order mark, which is no part of the text.
//
// Instead of characters, a Text can have the tokens of a Tokenizer. It keeps tokens in memory, with 4 bytes per token.
//
// To make a Text, use OpenText.
type Text struct {
	name    string
	source  io.ReaderAt
	size    int64 // bytes
	sum     string
	chars   int
	places  []int64 // byte offsets of characters 0, stride, 2·stride, …
	vocab   *tokenizer.Vocab
	readers sync.Pool // of *bufio.Reader
	close   func() error

	starts    []int64 // byte offsets of the documents; nil for one document
	documents []int   // indices of the characters or tokens at which documents begin, ascending
	packed    bool    // see Pack

	// For tokens only:
	whole       bool // see TextFiles.Whole
	tokenizer   tokenizer.Tokenizer
	tokens      []uint32 // ids
	trainTokens int      // number of tokens for training, at the beginning
}

// stride is the number of characters between two known offsets. A window reads half a stride too much on average.
const stride = 1024

// perByte is the memory to encode a byte of text, if it is a token.
const perByte = 100

var errChanged = errors.New("the file changed while it was open")

// Size returns the number of bytes of the text in UTF-8.
func (t *Text) Size() int64 { return t.size }

// SHA256 returns the checksum of the text in UTF-8, in hexadecimal; see also Pack.
func (t *Text) SHA256() string { return t.sum }

// Content returns the whole text. It returns an error if encoding the text at once would take more memory than there
// is.
func (t *Text) Content() (string, error) {
	if t.size > math.MaxInt32 || perByte*t.size > int64(memory.Free()) {
		return "", fmt.Errorf("text %q: %s are too many to encode at once: give a shorter text", t.name, text.Bytes(int(min(t.size, math.MaxInt))))
	}
	content := make([]byte, t.size)
	if _, err := t.source.ReadAt(content, 0); err != nil && err != io.EOF {
		return "", fmt.Errorf("text %q: %w", t.name, err)
	}
	return string(content), nil
}

// Close closes the file. Reading a window of characters then returns an error.
func (t *Text) Close() error { return t.close() }

// Len returns the number of characters or tokens.
func (t *Text) Len() int {
	if t.tokenizer != nil {
		return len(t.tokens)
	}
	return t.chars
}

// Characters returns the number of characters, also if the Text has tokens.
func (t *Text) Characters() int { return t.chars }

// units returns the name of what Len counts: characters or tokens.
func (t *Text) units() string {
	if t.tokenizer != nil {
		return "tokens"
	}
	return "characters"
}

// Tokenizer returns the Tokenizer of the tokens, or the Vocab if the Text has characters.
func (t *Text) Tokenizer() tokenizer.Tokenizer {
	if t.tokenizer != nil {
		return t.tokenizer
	}
	return t.vocab
}

// Window fills ids with the ids of len(ids) characters or tokens, beginning at index start, from 0. It returns an error
// if the window isn't within the text, if the file has changed, or if the Text is closed and has characters. The
// content of ids is then undefined.
func (t *Text) Window(ids []int, start int) error {
	if n := t.Len(); start < 0 || start > n || len(ids) > n-start {
		return fmt.Errorf("text %q has %d %s: there is no window of length %d at index %d", t.name, n, t.units(), len(ids), start)
	}
	if t.tokenizer != nil {
		for i, id := range t.tokens[start:][:len(ids)] {
			ids[i] = int(id)
		}
		return nil
	}
	if len(ids) == 0 {
		return nil
	}
	if err := t.read(ids, start); err != nil {
		return fmt.Errorf("text %q: %w", t.name, err)
	}
	return nil
}

func (t *Text) read(ids []int, start int) error {
	// The window is within these bytes, between two known offsets.
	first, skip := start/stride, start%stride
	from, end := t.places[first], t.size
	if next := (start+len(ids)-1)/stride + 1; next < len(t.places) {
		end = t.places[next]
	}
	if first+1 < len(t.places) && t.places[first+1]-from == stride { // only one-byte characters: skip them by offset
		from, skip = from+int64(skip), 0
	}
	reader := t.readers.Get().(*bufio.Reader)
	defer t.readers.Put(reader)
	reader.Reset(io.NewSectionReader(t.source, from, end-from))
	for i := -skip; i < len(ids); i++ {
		r, n, err := reader.ReadRune()
		if err == io.EOF {
			return errChanged
		}
		if err != nil {
			return err
		}
		id, ok := t.vocab.ID(r)
		if !ok || r == utf8.RuneError && n == 1 {
			return errChanged
		}
		if i >= 0 {
			ids[i] = id
		}
	}
	return nil
}
