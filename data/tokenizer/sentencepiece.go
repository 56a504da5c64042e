package tokenizer

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// sentencePiece is the normalizer, the model and the decoder of a SentencePiece file, the ModelProto of
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto.
type sentencePiece struct {
	pieces    []string
	scores    []float32
	kinds     []pieceKind
	ids       map[string]int32 // every piece
	unknownID int
	bytes     [256]int32 // id of each byte's piece, if byteFallback is set
	defined   *trie      // user-defined symbols

	unigram        bool // otherwise, byte-pair encoding
	byteFallback   bool // unknown characters become their bytes
	unknownSurface string

	rules         *charsmap // nil changes nothing
	dummyPrefix   bool      // a space is added before the text or, with spaceAsSuffix, after it
	trimSpaces    bool      // spaces at both ends, and all but one between words, are removed
	escapeSpaces  bool      // spaces become ▁
	spaceAsSuffix bool

	lattice *lattice
	merger  *merger
}

// A pieceKind is the type of a piece.
type pieceKind uint8

const (
	normalPiece  pieceKind = iota + 1
	unknownPiece           // stands for unknown text
	controlPiece           // marks something about a text, and never comes from it
	definedPiece           // user-defined: found in the text before all others
	unusedPiece            // split into its parts
	bytePiece
)

const (
	mostPieces      = 1 << 19 // of a SentencePiece model; also lines of a vocab.txt or merges.txt
	longestSpelling = 8000    // bytes; SentencePiece's own limit
	maxModel        = 8 << 20 // bytes
	spaceSymbol     = "▁"
	unknownSymbol   = " ⁇ " // the default text of the unknown piece
)

// sentencePieceJSON is the model of a tokenizer.json that holds a SentencePiece file. It is Heed's own type: the parts
// that the reference library has give other ids, parts of the text and decoded text in rare cases.
type sentencePieceJSON struct {
	Type  string `json:"type"`
	Proto []byte `json:"proto"` // the file, in base64
}

// parseSentencePieceJSON makes the model SentencePiece of a tokenizer.json.
func parseSentencePieceJSON(members members) (model, error) {
	encoded := members["proto"]
	delete(members, "proto")
	if len(encoded) > base64.StdEncoding.EncodedLen(maxModel)+len(`""`) {
		return nil, fmt.Errorf("its proto must have at most %d bytes", maxModel)
	}
	var file sentencePieceJSON
	if err := members.decode(&file); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(encoded, &file.Proto); err != nil {
		return nil, fmt.Errorf("its proto must be in base64: %w", err)
	}
	m, err := parseSentencePiece(file.Proto)
	if err != nil {
		return nil, err
	}
	m.prepare()
	return m, nil
}

// prepare makes the tables for encoding.
func (m *sentencePiece) prepare() {
	keys := func(kinds ...pieceKind) *trie {
		keys := make([]string, len(m.pieces))
		for id, piece := range m.pieces {
			if slices.Contains(kinds, m.kinds[id]) {
				keys[id] = piece
			}
		}
		return newTrie(keys)
	}
	if slices.Contains(m.kinds, definedPiece) {
		m.defined = keys(definedPiece)
	}
	if m.unigram {
		m.lattice = newLattice(m, keys(normalPiece, definedPiece, unusedPiece))
	} else {
		m.merger = newMerger(m)
	}
}

func (m *sentencePiece) vocabulary() []string { return m.pieces }
func (m *sentencePiece) unknown() int         { return m.unknownID }

// ordinary reports whether a part of a text can become a piece.
func (m *sentencePiece) ordinary(id int32) bool {
	kind := m.kinds[id]
	return kind == normalPiece || kind == definedPiece || kind == unusedPiece
}

func (m *sentencePiece) encode(tokens []ptoken, text string, b *budget) ([]ptoken, error) {
	first := len(tokens)
	if m.unigram {
		tokens = m.lattice.encode(tokens, text, b)
	} else {
		tokens = m.merger.encode(tokens, text, b)
	}
	if b.spent() {
		return tokens[:first], b.err
	}
	if !slices.ContainsFunc(tokens[first:], func(t ptoken) bool { return t.ID == m.unknownID }) {
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
				tokens = append(tokens, ptoken{int(m.bytes[text[j]]), t.Start, t.End})
			}
		case i > 0 && all[i-1].ID == m.unknownID: // neighbouring unknown characters are one token
			tokens[len(tokens)-1].End = t.End
		default:
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

// stream decodes one token at a time. It calls next with text as soon as later tokens can't change it, and returns a
// function for the tokens and one for their end.
func (m *sentencePiece) stream(_ *budget, next sink) (sink, func()) {
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
		if ok && m.kinds[id] == bytePiece {
			b, _ := byteToken(token)
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
		case ok && m.kinds[id] == controlPiece:
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
