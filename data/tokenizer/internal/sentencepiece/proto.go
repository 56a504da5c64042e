package sentencepiece

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/trie"
	"google.golang.org/protobuf/encoding/protowire"
)

// Parse reads a ModelProto. Before the model encodes, it needs a call of prepare.
func Parse(proto []byte) (*Model, error) {
	if len(proto) > maxModel {
		return nil, fmt.Errorf("a SentencePiece model must have at most %d bytes, got %d", maxModel, len(proto))
	}
	m := &Model{
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
		return nil, fmt.Errorf("its %d pieces must have an unknown one", len(m.Pieces))
	}
	if !utf8.ValidString(m.unknownSurface) {
		return nil, errors.New("its unk_surface isn't UTF-8")
	}
	if err := m.checkBytes(); err != nil {
		return nil, err
	}
	if charsmap != "" {
		if m.rules, err = trie.NewCharsmap([]byte(charsmap)); err != nil {
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
func (m *Model) addPiece(message []byte) error {
	id := len(m.Pieces)
	if id == MaxPieces {
		return fmt.Errorf("it has more than %d pieces", MaxPieces)
	}
	var piece string
	var score float32
	kind := Normal
	err := eachField(message, func(number protowire.Number, value uint64, content []byte) error {
		switch number {
		case 1:
			piece = string(content)
		case 2:
			score = math.Float32frombits(uint32(value))
		case 3:
			if kind = Type(value); value < uint64(Normal) || value > uint64(Byte) {
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
	case kind == Unknown && m.unknownID >= 0:
		return fmt.Errorf("pieces %d and %d are both unknown ones", m.unknownID, id)
	case kind == Unknown:
		m.unknownID = id
	}
	m.Pieces, m.scores, m.Types = append(m.Pieces, piece), append(m.scores, score), append(m.Types, kind)
	m.ids[piece] = int32(id)
	return nil
}

// checkBytes sets m.bytes.
func (m *Model) checkBytes() error {
	for b := range m.bytes {
		id, ok := m.ids[fmt.Sprintf("<0x%02X>", b)]
		if m.bytes[b] = id; m.byteFallback && (!ok || m.Types[id] != Byte) {
			return fmt.Errorf("it has byte_fallback, but no byte piece for %#02x", b)
		}
	}
	for id, kind := range m.Types {
		if b, ok := models.ByteOf(m.Pieces[id]); kind == Byte && (!ok || !m.byteFallback || m.bytes[b] != int32(id)) {
			return fmt.Errorf("the byte piece %.100q needs byte_fallback and a byte", m.Pieces[id])
		}
	}
	return nil
}
