package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
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

	rules         *precompiled // nil changes nothing
	dummyPrefix   bool         // a space is added before the text or, with spaceAsSuffix, after it
	trimSpaces    bool         // spaces at both ends, and all but one between words, are removed
	escapeSpaces  bool         // spaces become ▁
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
func parseSentencePieceJSON(part json.RawMessage) (model, error) {
	var file sentencePieceJSON
	if err := decode(part, &file); err != nil {
		return nil, fmt.Errorf("its proto must be in base64: %w", err)
	}
	m, err := parseSentencePiece(file.Proto)
	if err != nil {
		return nil, err
	}
	m.prepare()
	return m, nil
}

// parseSentencePiece reads a ModelProto. Before the model encodes, it needs a call of prepare.
func parseSentencePiece(proto []byte) (*sentencePiece, error) {
	if len(proto) > maxModel {
		return nil, fmt.Errorf("a SentencePiece model must have at most %d bytes, got %d", maxModel, len(proto))
	}
	m := &sentencePiece{
		ids: map[string]int32{}, unknownID: -1, unknownSurface: unknownSymbol,
		dummyPrefix: true, trimSpaces: true, escapeSpaces: true,
	}
	kind := uint64(1) // of model
	var charsmap string
	err := eachField(proto, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case 1:
			return m.addPiece(content)
		case 2:
			return eachField(content, func(number protowire.Number, value uint64, content []byte) error {
				switch number {
				case 3:
					kind = value
				case 24:
					m.spaceAsSuffix = value != 0
				case 35:
					m.byteFallback = value != 0
				case 44:
					m.unknownSurface = string(content)
				}
				return nil
			})
		case 3:
			return eachField(content, func(number protowire.Number, value uint64, content []byte) error {
				switch number {
				case 2:
					charsmap = string(content)
				case 3:
					m.dummyPrefix = value != 0
				case 4:
					m.trimSpaces = value != 0
				case 5:
					m.escapeSpaces = value != 0
				}
				return nil
			})
		case 5:
			return eachField(content, func(number protowire.Number, _ uint64, content []byte) error {
				if number == 2 && len(content) > 0 {
					return errors.New("its denormalizer_spec isn't supported")
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.unknownID < 0 {
		return nil, fmt.Errorf("its %d pieces must have an unknown one", len(m.pieces))
	}
	if !utf8.ValidString(m.unknownSurface) {
		return nil, errors.New("its unk_surface isn't UTF-8")
	}
	if err := m.checkBytes(); err != nil {
		return nil, err
	}
	if charsmap != "" {
		if m.rules, err = newPrecompiled([]byte(charsmap)); err != nil {
			return nil, err
		}
	}
	switch kind {
	case 1:
		m.unigram = true
	case 2:
	default:
		return nil, fmt.Errorf("its model_type must be 1 (unigram) or 2 (BPE), got %d", kind)
	}
	return m, nil
}

// eachField calls f for each field of a protobuf message: with its value if it is a number, otherwise with its content.
func eachField(message []byte, f func(number protowire.Number, value uint64, content []byte) error) error {
	for len(message) > 0 {
		number, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("a SentencePiece model must be a protobuf message: %w", protowire.ParseError(n))
		}
		message = message[n:]
		var value uint64
		var content []byte
		switch typ {
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(message)
			value = uint64(bits)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, typ, message)
		}
		if n < 0 {
			return fmt.Errorf("a SentencePiece model must be a protobuf message: field %d: %w", number, protowire.ParseError(n))
		}
		message = message[n:]
		if err := f(number, value, content); err != nil {
			return err
		}
	}
	return nil
}

// addPiece adds a piece of the vocabulary.
func (m *sentencePiece) addPiece(message []byte) error {
	id := len(m.pieces)
	if id == mostPieces {
		return fmt.Errorf("it has more than %d pieces", mostPieces)
	}
	var piece string
	var score float32
	kind := normalPiece
	err := eachField(message, func(number protowire.Number, value uint64, content []byte) error {
		switch number {
		case 1:
			piece = string(content)
		case 2:
			score = math.Float32frombits(uint32(value))
		case 3:
			if kind = pieceKind(value); value < uint64(normalPiece) || value > uint64(bytePiece) {
				return fmt.Errorf("piece %d has the unknown type %d", id, value)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	first, taken := m.ids[piece]
	switch {
	case piece == "" || len(piece) >= longestSpelling || strings.Contains(piece, "\x00") || !utf8.ValidString(piece):
		return fmt.Errorf("piece %d must be UTF-8 text of 1 to %d bytes without NUL, got %.100q", id, longestSpelling-1, piece)
	case taken:
		return fmt.Errorf("pieces %d and %d are both %.100q", first, id, piece)
	case score != score:
		return fmt.Errorf("piece %d has no score but NaN", id)
	case kind == unknownPiece && m.unknownID >= 0:
		return fmt.Errorf("pieces %d and %d are both unknown ones", m.unknownID, id)
	case kind == unknownPiece:
		m.unknownID = id
	}
	m.pieces, m.scores, m.kinds = append(m.pieces, piece), append(m.scores, score), append(m.kinds, kind)
	m.ids[piece] = int32(id)
	return nil
}

// checkBytes sets m.bytes.
func (m *sentencePiece) checkBytes() error {
	for b := range m.bytes {
		id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]
		if m.bytes[b] = id; m.byteFallback && (!ok || m.kinds[id] != bytePiece) {
			return fmt.Errorf("it has byte_fallback, but no byte piece for %#02x", b)
		}
	}
	for id, kind := range m.kinds {
		if b, ok := byteToken(m.pieces[id]); kind == bytePiece && (!ok || !m.byteFallback || m.bytes[b] != int32(id)) {
			return fmt.Errorf("the byte piece %.100q needs byte_fallback and a byte", m.pieces[id])
		}
	}
	return nil
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

func (m *sentencePiece) encode(tokens []Token, text string) ([]Token, error) {
	first := len(tokens)
	if m.unigram {
		tokens = m.lattice.encode(tokens, text)
	} else {
		tokens = m.merger.encode(tokens, text)
	}
	if !slices.ContainsFunc(tokens[first:], func(t Token) bool { return t.ID == m.unknownID }) {
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
				tokens = append(tokens, Token{int(m.bytes[text[j]]), t.Start, t.End})
			}
		case i > 0 && all[i-1].ID == m.unknownID: // neighbouring unknown characters are one token
			tokens[len(tokens)-1].End = t.End
		default:
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

func (m *sentencePiece) decode(tokens []string) (out []string) {
	next, end := m.stream(func(part string, _, _ bool) { out = append(out, part) })
	for _, token := range tokens {
		next(token, true, true)
	}
	end()
	return out
}

// stream decodes one token at a time. It calls next with text as soon as later tokens can't change it, and returns a
// function for the tokens and one for their end.
func (m *sentencePiece) stream(next func(text string, first, last bool)) (func(token string, first, last bool), func()) {
	var held []byte
	started, spaced := false, false // whether there is text; whether the last token lost its space
	put := func(text string) {
		started = started || text != ""
		next(text, true, true)
	}
	flush := func() {
		if len(held) > 0 {
			put(valid(string(held)))
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
