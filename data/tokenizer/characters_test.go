package tokenizer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

var (
	everyCharacter = flag.String("characters", "testdata/characters.json.gz", "the reference library's results for characters, from testdata/characters.py")
)

// characterRanges are ranges of characters, without the surrogates.
type characterRanges [][2]rune

// all returns the characters of the ranges.
func (ranges characterRanges) all() (runes []rune) {
	for _, r := range ranges {
		for c := r[0]; c <= r[1]; c++ {
			if utf8.ValidRune(c) {
				runes = append(runes, c)
			}
		}
	}
	return runes
}

// A characterFile has the reference library's results for characters.
type characterFile struct {
	Characters map[string]characterRanges
	Parts      []struct {
		Name, Context, Characters, Checksums string
		Tokenizer                            json.RawMessage // if it isn't one of the published families
	}
}

// TestCharacters compares the ids, parts of the text and decoded text of texts with all characters, with the reference
// library's.
func TestCharacters(t *testing.T) {
	testseed.Proof(t)
	var file characterFile
	readGzip(t, *everyCharacter, &file)
	for _, part := range file.Parts {
		t.Run(part.Name, func(t *testing.T) {
			if part.Tokenizer == nil {
				part.Tokenizer = readFamily(t, part.Name).Tokenizer
			}
			tok := must.Get(Read(bytes.NewReader(part.Tokenizer)))(t)
			i := 0
			for chunk := range slices.Chunk(file.Characters[part.Characters].all(), 256) {
				var text strings.Builder
				for _, r := range chunk {
					text.WriteString(strings.ReplaceAll(part.Context, "@", string(r)))
				}
				if got, want := fmt.Sprintf("%08x", resultChecksum(t, tok, text.String())), part.Checksums[i:i+8]; got != want {
					t.Errorf("%q with characters from %U to %U: checksum %s, want %s", part.Context, chunk[0], chunk[len(chunk)-1], got, want)
				}
				i += 8
			}
		})
	}
}

// resultChecksum returns the checksum of a text's ids, their parts of the text, and the decoded text.
func resultChecksum(t *testing.T, tok Tokenizer, text string) uint32 {
	t.Helper()
	tokens := must.Get(tok.Tokenize(text, Options{}))(t)
	var result []byte
	for _, token := range tokens {
		result = fmt.Appendf(result, "%d %d %d\n", token.ID, token.Start, token.End)
	}
	return crc32.ChecksumIEEE(append(result, valid(must.Get(tok.Decode(idsOf(tokens)))(t))...))
}
