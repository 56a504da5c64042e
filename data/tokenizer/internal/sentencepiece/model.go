// Package sentencepiece reads the models of SentencePiece, which are files like tokenizer.model, and encodes and
// decodes like SentencePiece itself. Parse reads a file. A Model is a normalizer, a model and a decoder in one.
package sentencepiece

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
)

// JSON is the model of a tokenizer.json that holds a SentencePiece file. The type is Heed's own. With the types of the
// reference library, ids, parts of the text and decoded text would differ in rare cases.
type JSON struct {
	Type  string `json:"type"`
	Proto []byte `json:"proto"` // the file, in base64

	// Vocab has the ids of the pieces, in place of the file's ids, and Unknown is the piece for those without an id. A
	// text may then begin with the code of a language, such as >>fra<<, which is one piece.
	Vocab   json.RawMessage `json:"vocab,omitempty"`
	Unknown string          `json:"unk_token,omitempty"`
}

// ParseJSON makes the model SentencePiece of a tokenizer.json.
func ParseJSON(members format.Members) (*Model, error) {
	encoded, other := members["proto"], members["vocab"] != nil
	delete(members, "proto")
	var vocab format.Vocab
	if other {
		var err error
		if vocab, err = members.TakeVocab(); err != nil {
			return nil, err
		}
	}
	if len(encoded) > base64.StdEncoding.EncodedLen(maxFile)+len(`""`) {
		return nil, fmt.Errorf("its proto must have at most %d bytes", maxFile)
	}
	var file JSON
	if err := members.Decode(&file); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &file.Proto); err != nil {
		return nil, fmt.Errorf("its proto must be in base64: %w", err)
	}
	parsed, err := Parse(file.Proto)
	if err != nil {
		return nil, err
	}
	m := New(parsed)
	if other {
		m.vocab, m.published = vocab, map[string]int{}
		for id, piece := range vocab {
			if piece != "" {
				m.published[piece] = id
			}
		}
		if _, ok := m.published[file.Unknown]; !ok {
			return nil, fmt.Errorf("its vocab must have the unk_token, %.100q", file.Unknown)
		}
		m.unknownPiece = file.Unknown
	}
	return m, nil
}

// A Model is the normalizer, the model and the decoder of a file.
type Model struct {
	*File
	defined *trie.Trie // user-defined symbols, or nil
	lattice *lattice   // for Unigram
	merger  *merger    // for BPE

	vocab        []string // see JSON.Vocab; nil if ids are the file's
	published    map[string]int
	unknownPiece string
}

// New makes the tables for encoding.
func New(f *File) *Model {
	m := &Model{File: f}
	keys := func(types ...Type) *trie.Trie {
		keys := make([]string, len(f.Pieces))
		for id, piece := range f.Pieces {
			if slices.Contains(types, f.Types[id]) {
				keys[id] = piece
			}
		}
		return trie.New(keys)
	}
	if slices.Contains(f.Types, Defined) {
		m.defined = keys(Defined)
	}
	if f.unigram {
		m.lattice = newLattice(f, keys(Normal, Defined, Unused))
	} else {
		m.merger = newMerger(f, m.defined)
	}
	return m
}

// Vocabulary returns the pieces by their ids.
func (m *Model) Vocabulary() []string {
	if m.vocab != nil {
		return m.vocab
	}
	return m.Pieces
}

// Unknown returns the id of the unknown piece.
func (m *Model) Unknown() int {
	if m.vocab != nil {
		return m.published[m.unknownPiece]
	}
	return m.unknownID
}

// code returns the number of bytes of the code of a language that begins a text.
func (m *Model) code(text string) int {
	if m.vocab == nil || !strings.HasPrefix(text, ">>") {
		return 0
	}
	if i := strings.Index(text, "<<"); i >= 0 {
		return i + 2
	}
	return 0
}

// Encode appends the tokens of a text.
func (m *Model) Encode(tokens []pipe.Token, text string, b *pipe.Budget) ([]pipe.Token, error) {
	first, n := len(tokens), m.code(text)
	tokens, err := m.encode(tokens, text[n:], b)
	if m.vocab == nil || err != nil {
		return tokens, err
	}
	for i, t := range tokens[first:] {
		t.Start, t.End = t.Start+n, t.End+n
		piece := text[t.Start:t.End] // of neighbouring unknown characters
		if t.ID != m.unknownID {
			piece = m.Pieces[t.ID]
		}
		t.ID = m.idOf(piece)
		tokens[first+i] = t
	}
	if n > 0 {
		tokens = slices.Insert(tokens, first, pipe.Token{ID: m.idOf(text[:n]), End: n})
	}
	return tokens, nil
}

// idOf returns the published id of a piece.
func (m *Model) idOf(piece string) int {
	if id, ok := m.published[piece]; ok {
		return id
	}
	return m.Unknown()
}

// encode is Encode with the ids of the file.
func (m *Model) encode(tokens []pipe.Token, text string, b *pipe.Budget) ([]pipe.Token, error) {
	first := len(tokens)
	if m.unigram {
		tokens = m.lattice.encode(tokens, text, b)
	} else {
		tokens = m.merger.encode(tokens, text, b)
	}
	if b.Spent() {
		return tokens[:first], b.Err
	}
	if !slices.ContainsFunc(tokens[first:], func(t pipe.Token) bool { return t.ID == m.unknownID }) {
		return tokens, nil
	}
	encoded := slices.Clone(tokens[first:])
	tokens = tokens[:first]
	for i, t := range encoded {
		switch {
		case t.ID != m.unknownID:
			tokens = append(tokens, t)
		case m.byteFallback:
			for j := t.Start; j < t.End; j++ {
				tokens = append(tokens, pipe.Token{ID: int(m.bytes[text[j]]), Start: t.Start, End: t.End})
			}
		case i > 0 && encoded[i-1].ID == m.unknownID: // neighbouring unknown characters are one token
			tokens[len(tokens)-1].End = t.End
		default:
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

// Stream returns functions that decode the next token, and the end of a text. They pass text on to next as soon as
// later tokens can't change it.
func (m *Model) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	var held []byte
	started := false   // whether there is text
	lostSpace := false // whether the last token lost its space
	put := func(text string) {
		started = started || text != ""
		next(text, true, true)
	}
	if m.vocab != nil { // the text is trimmed
		spaces := ""
		put = func(text string) {
			text = spaces + text
			kept := strings.TrimRight(text, " ")
			if spaces = text[len(kept):]; !started {
				kept = strings.TrimLeft(kept, " ")
			}
			if kept == "" && !started {
				spaces = ""
			}
			started = started || kept != ""
			next(kept, true, true)
		}
	}
	flush := func() {
		if len(held) > 0 {
			put(string([]rune(string(held)))) // U+FFFD for each byte
			held = held[:0]
		}
	}
	return func(token string, _, _ bool) {
		id, ok := m.ids[token]
		if ok && m.Types[id] == Byte {
			b, _ := models.ByteOf(token)
			for held = append(held, b); utf8.FullRune(held); {
				r, n := utf8.DecodeRune(held)
				put(string(r)) // U+FFFD for a byte that isn't part of a character
				held = held[:copy(held, held[n:])]
			}
			return
		}
		flush()
		first := !started && !lostSpace
		started, lostSpace = started || lostSpace, false
		switch {
		case ok && m.Types[id] == Control:
		case ok && int(id) == m.unknownID:
			put(m.unknownSurface)
		default:
			if first && (m.dummyPrefix || m.trimSpaces) {
				token, lostSpace = strings.CutPrefix(token, spaceSymbol)
				lostSpace = lostSpace && !m.trimSpaces
			}
			put(strings.ReplaceAll(token, spaceSymbol, " "))
		}
	}, flush
}
