package tokenizer

import (
	"flag"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer/internal/folder"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/sentencepiece"
	"github.com/heed-go/heed/internal/must"
	"google.golang.org/protobuf/encoding/protowire"
)

var modelFolder = flag.String("sentencepiece", "testdata/sentencepiece", "folder of SentencePiece models with the reference library's results, from testdata/spm.py")

// A pieceSet is a SentencePiece model and texts with the reference library's results.
type pieceSet struct {
	Model []byte
	Texts []struct {
		Text string
		familyTokens
		Decoded       string
		Random        []int // random ids
		RandomDecoded string
	}
}

// wholeCharacters changes the ends of byte pieces. In the reference library, the last byte piece of a character has the
// character as its part, and the others have an empty part before it. Here, the whole character is the part of each.
func wholeCharacters(p *Pipeline, ids, ends []int) {
	m, ok := p.pipeline.Model.(*sentencepiece.Model)
	for i, id := range ids {
		if !ok || m.Types[id] != sentencepiece.Byte {
			continue
		}
		if b, _ := models.ByteOf(m.Pieces[id]); b >= 0xC0 { // the first byte of a character
			n := bits.LeadingZeros8(^b)
			for j := range n {
				ends[i+j] = ends[i+n-1]
			}
		}
	}
}

// openModel opens a SentencePiece model without the settings of a folder.
func openModel(proto []byte) (*Pipeline, error) {
	content, err := folder.Convert(os.DirFS("no folder"), "a.model", proto)
	if err != nil {
		return nil, err
	}
	tok, err := readJSON(content)
	if err != nil {
		return nil, err
	}
	return tok.(*Pipeline), nil
}

// TestSentencePiece compares ids, parts of the text and decoded text with the reference library's.
func TestSentencePiece(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*modelFolder, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no models in %s: %v", *modelFolder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			var set pieceSet
			readGzip(t, file, &set)
			tok := must.Get(openModel(set.Model))(t)
			bad := 0
			wrong := func(format string, args ...any) {
				if bad++; bad < 6 {
					t.Errorf(format, args...)
				}
			}
			for _, c := range set.Texts {
				wholeCharacters(tok, c.IDs, c.Ends)
				var got familyTokens
				got.add(must.Get(tok.Tokenize(c.Text, Options{}))(t))
				if !got.equal(c.familyTokens) {
					wrong("%q:\n got %v\nwant %v", c.Text, got, c.familyTokens)
				}
				if text, err := tok.Decode(c.IDs); err != nil || text != c.Decoded {
					wrong("Decode(%v) = %q, %v; want %q", c.IDs, text, err, c.Decoded)
				}
				if text, err := tok.Decode(c.Random); err != nil || text != c.RandomDecoded {
					wrong("Decode(%v) = %q, %v; want %q", c.Random, text, err, c.RandomDecoded)
				}
				if streamed := strings.Join(oneByOne(t, &Decoder{Tokenizer: tok}, c.Random), ""); streamed != c.RandomDecoded {
					wrong("%v id by id: %q, want %q", c.Random, streamed, c.RandomDecoded)
				}
			}
			if bad > 0 {
				t.Errorf("%d of %d wrong", bad, 4*len(set.Texts))
			}
		})
	}
}

// piece returns a field of a model: a piece of this type.
func piece(text string, typ uint64) []byte {
	return message(1, append(message(1, []byte(text)), varint(3, typ)...))
}

// message returns a field of a protobuf message that is a message or text.
func message(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}

// varint returns a field of a protobuf message that is a number.
func varint(field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), value)
}

// TestSentencePieceErrors makes models that SentencePiece refuses, and some that this package doesn't read.
func TestSentencePieceErrors(t *testing.T) {
	unknown, a := piece("<unk>", 2), piece("a", 1)
	nan := message(1, protowire.AppendFixed32(protowire.AppendTag(message(1, []byte("b")), 2, protowire.Fixed32Type), 0x7fc00000))
	for _, c := range []struct {
		name, want string
		parts      [][]byte
	}{
		{"valid", "", [][]byte{unknown, a}},
		{"empty", "must have an unknown one", nil},
		{"no unknown piece", "must have an unknown one", [][]byte{a}},
		{"two unknown pieces", "both unknown", [][]byte{unknown, piece("?", 2)}},
		{"repeated piece", `both "a"`, [][]byte{unknown, a, a}},
		{"empty piece", "1 to 7999 bytes", [][]byte{unknown, piece("", 1)}},
		{"NUL", "without NUL", [][]byte{unknown, piece("a\x00", 1)}},
		{"not UTF-8", "must be UTF-8", [][]byte{unknown, piece("\xff", 1)}},
		{"long piece", "1 to 7999 bytes", [][]byte{unknown, piece(strings.Repeat("a", 8000), 1)}},
		{"unknown type", "unknown type 7", [][]byte{unknown, piece("a", 7)}},
		{"type of 64 bits", "unknown type", [][]byte{unknown, piece("a", 1<<32|1)}},
		{"NaN", "NaN", [][]byte{unknown, nan}},
		{"byte without fallback", "byte_fallback", [][]byte{unknown, piece("<0x41>", 6)}},
		{"fallback without bytes", "no byte piece for 0x00", [][]byte{unknown, message(2, varint(35, 1))}},
		{"words", "model_type must be 1 (unigram) or 2 (BPE), got 3", [][]byte{unknown, message(2, varint(3, 3))}},
		{"denormalizer", "denormalizer_spec", [][]byte{unknown, message(5, message(2, []byte("x")))}},
		{"short rules", "precompiled_charsmap", [][]byte{unknown, message(3, message(2, []byte("x")))}},
		{"rules longer than the file", "precompiled_charsmap", [][]byte{unknown, message(3, message(2, []byte("\xff\xff\xff\xff1234")))}},
		{"unk_surface", "unk_surface", [][]byte{unknown, message(2, message(44, []byte("\xff")))}},
		{"cut", "field 1", [][]byte{unknown, a[:len(a)-1]}},
		{"no message", "protobuf", [][]byte{[]byte("\xff\xff")}},
	} {
		_, err := sentencepiece.Parse(slices.Concat(c.parts...))
		must.Match(t, err, c.want)
	}
}

// FuzzSentencePiece reads any model, and encodes and decodes a text with it.
func FuzzSentencePiece(f *testing.F) {
	for modelType := range uint64(2) {
		model := message(2, varint(3, modelType+1))
		for i, text := range []string{"<unk>", "<s>", "▁", "a", "b", "ab", "▁ab", "ba", "bab", "é", "a b"} {
			model = append(model, piece(text, []uint64{2, 3, 1, 1, 1, 5, 1, 4, 1, 1, 4}[i])...)
		}
		f.Add(model, "ab <s>bab  a béé ü")
	}
	f.Add([]byte("\x0a\x09\x0a\x05<unk>\x18\x02"), "a b")
	f.Fuzz(func(t *testing.T, proto []byte, text string) {
		tok, err := openModel(proto)
		if err != nil {
			return
		}
		checkTokens(t, tok, text)
	})
}

// checkTokens fails if an id or a part of the text is out of range, parts aren't in order, or ids can't be decoded.
func checkTokens(t *testing.T, tok Tokenizer, text string) {
	t.Helper()
	if tokens, err := tok.Tokenize(text, Options{}); err == nil {
		must.Do(t, checkParts(tok, text, tokens))
		if !slices.IsSortedFunc(tokens, func(a, b Token) int { return a.Start - b.Start }) {
			t.Fatalf("Tokenize(%q) has the parts %v", text, tokens)
		}
		must.Get(tok.Decode(idsOf(tokens)))(t)
	}
}

// TestSentencePieceRounding checks that scores are summed in 32 bits, and start from 0 again after 100,000, like in the
// reference library. The pieces xy and z score 2^-8 more than x and yz. In the sum for a text of almost 100,000 pieces,
// this difference is lost.
func TestSentencePieceRounding(t *testing.T) {
	var model []byte
	for _, p := range []struct {
		text  string
		score float32
		kind  uint64
	}{{"<unk>", 0, 2}, {"a", -1, 1}, {"x", -1, 1}, {"yz", -1, 1}, {"xy", -1, 1}, {"z", -1 + 0x1p-8, 1}, {"y", -50, 1}} {
		score := protowire.AppendFixed32(protowire.AppendTag(nil, 2, protowire.Fixed32Type), math.Float32bits(p.score))
		model = append(model, message(1, slices.Concat(message(1, []byte(p.text)), score, varint(3, p.kind)))...)
	}
	m := sentencepiece.New(must.Get(sentencepiece.Parse(model))(t))
	for n, want := range map[int][]int{1000: {4, 5}, 65536: {2, 3}, 99999: {2, 3}, 100000: {4, 5}, 131072: {4, 5}, 196608: {2, 3}} {
		tokens := must.Get(m.Encode(nil, strings.Repeat("a", n)+"xyz", pipe.NewBudget(n)))(t)
		if got := []int{tokens[len(tokens)-2].ID, tokens[len(tokens)-1].ID}; !slices.Equal(got, want) {
			t.Errorf("after %d pieces: ids %v, want %v", n, got, want)
		}
	}
}
