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

// A File is what the file of a model says: the ModelProto of
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto.
type File struct {
	Pieces    []string
	Types     []Type // of the pieces
	scores    []float32
	ids       map[string]int32 // of the pieces
	unknownID int
	bytes     [256]int32 // id of each byte's piece, if byteFallback is set

	unigram        bool   // the model is Unigram; otherwise, it is BPE
	byteFallback   bool   // unknown characters become their bytes
	unknownSurface string // decoded text of the unknown piece

	charsmap      string         // the content of rules
	rules         *trie.Charsmap // nil changes nothing
	dummyPrefix   bool           // adds a space before the text or, with spaceAsSuffix, after it
	trimSpaces    bool           // removes spaces at both ends, and all but one between words
	escapeSpaces  bool           // spaces become ▁
	spaceAsSuffix bool
}

// UnigramJSON returns the model as the Unigram model of a tokenizer.json, and the rules of its normalizer; nil if there
// are none. The model is nil if it isn't Unigram.
func (f *File) UnigramJSON() (model map[string]any, rules []byte) {
	if !f.unigram {
		return nil, nil
	}
	vocab := make([][2]any, len(f.Pieces))
	for id, piece := range f.Pieces {
		vocab[id] = [2]any{piece, float64(f.scores[id])}
	}
	if f.charsmap != "" {
		rules = []byte(f.charsmap)
	}
	return map[string]any{"type": "Unigram", "unk_id": f.unknownID, "vocab": vocab, "byte_fallback": false}, rules
}

// A Type is the type of a piece.
type Type uint8

const (
	Normal  Type = iota + 1
	Unknown      // stands for unknown text
	Control      // marks something about a text, and never comes from it
	Defined      // user-defined: found in the text before all other pieces
	Unused       // replaced by the two pieces that it was merged from
	Byte         // stands for a byte of an unknown character
)

const (
	MaxPieces       = 1 << 19 // of a SentencePiece model; also lines of a vocab.txt or merges.txt
	longestSpelling = 8000    // bytes; SentencePiece's own limit
	maxFile         = 8 << 20 // bytes
	spaceSymbol     = "▁"
	unknownSymbol   = " ⁇ " // the default text of the unknown piece
)

// Parse reads the file of a model.
func Parse(proto []byte) (*File, error) {
	if len(proto) > maxFile {
		return nil, fmt.Errorf("a SentencePiece model must have at most %d bytes, got %d", maxFile, len(proto))
	}
	f := &File{
		ids: map[string]int32{}, unknownID: -1, unknownSurface: unknownSymbol,
		dummyPrefix: true, trimSpaces: true, escapeSpaces: true,
	}
	modelType := uint64(1)
	err := eachField(proto, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case 1: // pieces
			return f.addPiece(content)
		case 2: // trainer_spec
			return eachField(content, func(number protowire.Number, value uint64, content []byte) error {
				switch number {
				case 3:
					modelType = value
				case 24:
					f.spaceAsSuffix = value != 0
				case 35:
					f.byteFallback = value != 0
				case 44:
					f.unknownSurface = string(content)
				}
				return nil
			})
		case 3: // normalizer_spec
			return eachField(content, func(number protowire.Number, value uint64, content []byte) error {
				switch number {
				case 2:
					f.charsmap = string(content)
				case 3:
					f.dummyPrefix = value != 0
				case 4:
					f.trimSpaces = value != 0
				case 5:
					f.escapeSpaces = value != 0
				}
				return nil
			})
		case 5: // denormalizer_spec
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
	if f.unknownID < 0 {
		return nil, fmt.Errorf("its %d pieces must have an unknown one", len(f.Pieces))
	}
	if !utf8.ValidString(f.unknownSurface) {
		return nil, errors.New("its unk_surface isn't UTF-8")
	}
	if err := f.checkBytes(); err != nil {
		return nil, err
	}
	if f.charsmap != "" {
		if f.rules, err = trie.NewCharsmap([]byte(f.charsmap)); err != nil {
			return nil, err
		}
	}
	switch modelType {
	case 1:
		f.unigram = true
	case 2:
	default:
		return nil, fmt.Errorf("its model_type must be 1 (unigram) or 2 (BPE), got %d", modelType)
	}
	return f, nil
}

// eachField calls do for each field of a protobuf message: with its value if it is a number, otherwise with its
// content.
func eachField(message []byte, do func(number protowire.Number, value uint64, content []byte) error) error {
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
		if err := do(number, value, content); err != nil {
			return err
		}
	}
	return nil
}

// addPiece adds a piece of the vocabulary.
func (f *File) addPiece(message []byte) error {
	id := len(f.Pieces)
	if id == MaxPieces {
		return fmt.Errorf("it has more than %d pieces", MaxPieces)
	}
	var piece string
	var score float32
	typ := Normal
	err := eachField(message, func(number protowire.Number, value uint64, content []byte) error {
		switch number {
		case 1:
			piece = string(content)
		case 2:
			score = math.Float32frombits(uint32(value))
		case 3:
			if typ = Type(value); value < uint64(Normal) || value > uint64(Byte) {
				return fmt.Errorf("piece %d has the unknown type %d", id, value)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	first, taken := f.ids[piece]
	switch {
	case piece == "" || len(piece) >= longestSpelling || strings.Contains(piece, "\x00") || !utf8.ValidString(piece):
		return fmt.Errorf("piece %d must be UTF-8 text of 1 to %d bytes without NUL, got %.100q", id, longestSpelling-1, piece)
	case taken:
		return fmt.Errorf("pieces %d and %d are both %.100q", first, id, piece)
	case score != score:
		return fmt.Errorf("piece %d has no score but NaN", id)
	case typ == Unknown && f.unknownID >= 0:
		return fmt.Errorf("pieces %d and %d are both unknown ones", f.unknownID, id)
	case typ == Unknown:
		f.unknownID = id
	}
	f.Pieces, f.scores, f.Types = append(f.Pieces, piece), append(f.scores, score), append(f.Types, typ)
	f.ids[piece] = int32(id)
	return nil
}

// checkBytes sets f.bytes.
func (f *File) checkBytes() error {
	for b := range f.bytes {
		id, ok := f.ids[fmt.Sprintf("<0x%02X>", b)]
		if f.bytes[b] = id; f.byteFallback && (!ok || f.Types[id] != Byte) {
			return fmt.Errorf("it has byte_fallback, but no byte piece for %#02x", b)
		}
	}
	for id, typ := range f.Types {
		if b, ok := models.ByteOf(f.Pieces[id]); typ == Byte && (!ok || !f.byteFallback || f.bytes[b] != int32(id)) {
			return fmt.Errorf("the byte piece %.100q needs byte_fallback and a byte", f.Pieces[id])
		}
	}
	return nil
}

// ordinary reports whether a part of a text can become a piece.
func (f *File) ordinary(id int32) bool {
	typ := f.Types[id]
	return typ == Normal || typ == Defined || typ == Unused
}
