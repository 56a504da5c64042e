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

// Model is the normalizer, the model and the decoder of a SentencePiece file, the ModelProto of
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto.
type Model struct {
	Pieces    []string
	scores    []float32
	Types     []Type
	ids       map[string]int32 // every piece
	unknownID int
	bytes     [256]int32 // id of each byte's piece, if byteFallback is set
	defined   *trie.Trie // user-defined symbols

	unigram        bool // otherwise, byte-pair encoding
	byteFallback   bool // unknown characters become their bytes
	unknownSurface string

	rules         *trie.Charsmap // nil changes nothing
	dummyPrefix   bool           // a space is added before the text or, with spaceAsSuffix, after it
	trimSpaces    bool           // spaces at both ends, and all but one between words, are removed
	escapeSpaces  bool           // spaces become ▁
	spaceAsSuffix bool

	lattice *lattice
	merger  *merger
}

// A Type is the type of a piece.
type Type uint8

const (
	Normal  Type = iota + 1
	Unknown      // stands for unknown text
	Control      // marks something about a text, and never comes from it
	Defined      // user-defined: found in the text before all others
	Unused       // split into its parts
	Byte
)

const (
	MaxPieces       = 1 << 19 // of a SentencePiece model; also lines of a vocab.txt or merges.txt
	longestSpelling = 8000    // bytes; SentencePiece's own limit
	maxModel        = 8 << 20 // bytes
	spaceSymbol     = "▁"
	unknownSymbol   = " ⁇ " // the default text of the unknown piece
)

// JSON is the model of a tokenizer.json that holds a SentencePiece file. It is Heed's own type: the parts
// that the reference library has give other ids, parts of the text and decoded text in rare cases.
type JSON struct {
	Type  string `json:"type"`
	Proto []byte `json:"proto"` // the file, in base64
}

// ParseJSON makes the model SentencePiece of a tokenizer.json.
func ParseJSON(members format.Members) (*Model, error) {
	encoded := members["proto"]
	delete(members, "proto")
	if len(encoded) > base64.StdEncoding.EncodedLen(maxModel)+len(`""`) {
		return nil, fmt.Errorf("its proto must have at most %d bytes", maxModel)
	}
	var file JSON
	if err := members.Decode(&file); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &file.Proto); err != nil {
		return nil, fmt.Errorf("its proto must be in base64: %w", err)
	}
	m, err := Parse(file.Proto)
	if err != nil {
		return nil, err
	}
	m.Prepare()
	return m, nil
}

// Prepare makes the tables for encoding.
func (m *Model) Prepare() {
	keys := func(kinds ...Type) *trie.Trie {
		keys := make([]string, len(m.Pieces))
		for id, piece := range m.Pieces {
			if slices.Contains(kinds, m.Types[id]) {
				keys[id] = piece
			}
		}
		return trie.New(keys)
	}
	if slices.Contains(m.Types, Defined) {
		m.defined = keys(Defined)
	}
	if m.unigram {
		m.lattice = newLattice(m, keys(Normal, Defined, Unused))
	} else {
		m.merger = newMerger(m)
	}
}

func (m *Model) Vocabulary() []string { return m.Pieces }
func (m *Model) Unknown() int         { return m.unknownID }

// ordinary reports whether a part of a text can become a piece.
func (m *Model) ordinary(id int32) bool {
	kind := m.Types[id]
	return kind == Normal || kind == Defined || kind == Unused
}

func (m *Model) Encode(tokens []pipe.Token, text string, b *pipe.Budget) ([]pipe.Token, error) {
	first := len(tokens)
	if m.unigram {
		tokens = m.lattice.Encode(tokens, text, b)
	} else {
		tokens = m.merger.Encode(tokens, text, b)
	}
	if b.Spent() {
		return tokens[:first], b.Err
	}
	if !slices.ContainsFunc(tokens[first:], func(t pipe.Token) bool { return t.ID == m.unknownID }) {
		return tokens, nil
	}
	all := slices.Clone(tokens[first:])
	tokens = tokens[:first]
	for i, t := range all {
		switch {
		case t.ID != m.unknownID:
			tokens = append(tokens, t)
		case m.byteFallback:
			for j := t.Start; j < t.End; j++ {
				tokens = append(tokens, pipe.Token{ID: int(m.bytes[text[j]]), Start: t.Start, End: t.End})
			}
		case i > 0 && all[i-1].ID == m.unknownID: // neighbouring unknown characters are one token
			tokens[len(tokens)-1].End = t.End
		default:
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

// Stream decodes one token at a time. It calls next with text as soon as later tokens can't change it, and returns a
// function for the tokens and one for their end.
func (m *Model) Stream(_ *pipe.Budget, next pipe.Sink) (pipe.Sink, func()) {
	var held []byte
	started, spaced := false, false // whether there is text; whether the last token lost its space
	put := func(text string) {
		started = started || text != ""
		next(text, true, true)
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
		start := !started && !spaced
		started, spaced = started || spaced, false
		switch {
		case ok && m.Types[id] == Control:
		case ok && int(id) == m.unknownID:
			put(m.unknownSurface)
		default:
			if start && (m.dummyPrefix || m.trimSpaces) {
				token, spaced = strings.CutPrefix(token, spaceSymbol)
				spaced = spaced && !m.trimSpaces
			}
			put(strings.ReplaceAll(token, spaceSymbol, " "))
		}
	}, flush
}
