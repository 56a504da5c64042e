package tokenizer

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"

	"github.com/heed-go/heed/internal/testseed"
)

var (
	everyCharacter = flag.String("characters", "testdata/characters.json.gz", "the reference library's results for characters, from testdata/characters.py")
	writeTables    = flag.Bool("tables", false, "write unicodetables.go from the file of characters")
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
	Classes    map[string]characterRanges
	Lower      map[string]string
	Characters map[string]characterRanges
	Parts      []struct {
		Name, Context, Characters, Checksums string
		Tokenizer                            json.RawMessage // if it isn't one of the published families
	}
}

// TestCharacters compares the classes of all characters, and the ids, parts of the text and decoded text of texts with
// them, with the reference library's.
func TestCharacters(t *testing.T) {
	testseed.Slow(t)
	var file characterFile
	readGzip(t, *everyCharacter, &file)
	if *writeTables {
		file.writeTables(t)
		return
	}
	t.Run("classes", file.testClasses)
	for _, part := range file.Parts {
		t.Run(part.Name, func(t *testing.T) {
			if part.Tokenizer == nil {
				part.Tokenizer = readFamily(t, part.Name).Tokenizer
			}
			tok, err := Read(bytes.NewReader(part.Tokenizer))
			if err != nil {
				t.Fatal(err)
			}
			i := 0
			for some := range slices.Chunk(file.Characters[part.Characters].all(), 256) {
				var text strings.Builder
				for _, r := range some {
					text.WriteString(strings.ReplaceAll(part.Context, "@", string(r)))
				}
				if got, want := fmt.Sprintf("%08x", resultChecksum(t, tok, text.String())), part.Checksums[i:i+8]; got != want {
					t.Errorf("%q with characters from %U to %U: checksum %s, want %s", part.Context, some[0], some[len(some)-1], got, want)
				}
				i += 8
			}
		})
	}
}

// resultChecksum returns the checksum of a text's ids, their parts of the text, and the decoded text.
func resultChecksum(t *testing.T, tok Tokenizer, text string) uint32 {
	t.Helper()
	tokens, err := tok.Tokenize(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var result []byte
	ids := make([]int, len(tokens))
	for i, token := range tokens {
		ids[i] = token.ID
		result = append(strconv.AppendInt(result, int64(token.ID), 10), ' ')
		result = append(strconv.AppendInt(result, int64(token.Start), 10), ' ')
		result = append(strconv.AppendInt(result, int64(token.End), 10), '\n')
	}
	decoded, err := tok.Decode(ids)
	if err != nil {
		t.Fatal(err)
	}
	return crc32.ChecksumIEEE(append(result, valid(decoded)...))
}

// testClasses compares the classes of characters and their lower case: of all characters in planes with assigned ones,
// and of some in the others.
func (file *characterFile) testClasses(t *testing.T) {
	characters := characterRanges{{0, 0x3FFFF}, {0xE0000, 0xE0FFF}}.all()
	for r := rune(0x40000); r <= unicode.MaxRune; r += 251 {
		characters = append(characters, r)
	}
	compatible := unicodeForm{norm.NFKD, false}
	for name, in := range map[string]func(r rune) bool{
		"letters":     func(r rune) bool { return classOf(r) == letterClass },
		"digits":      func(r rune) bool { return classOf(r) == numberClass },
		"spaces":      func(r rune) bool { return classOf(r) == spaceClass },
		"uppers":      func(r rune) bool { upper, lower := caseOf(r); return upper && !lower },
		"lowers":      func(r rune) bool { upper, lower := caseOf(r); return lower && !upper },
		"marks":       func(r rune) bool { upper, lower := caseOf(r); return upper && lower && classOf(r) != letterClass },
		"words":       isWord,
		"numbers":     isNumber,
		"punctuation": isPunctuation,
		"nonspacing":  func(r rune) bool { return unicode.Is(nonspacing8, r) },
		"accents":     func(r rune) bool { return unicode.Is(marks9, r) },
		"removed":     func(r rune) bool { return cleaned(r) == "" },
		"blanks":      func(r rune) bool { return cleaned(r) == " " },
		"decomposed": func(r rune) bool {
			return compatible.normalize(aligned{text: string(r), budget: newBudget(8)}).text != string(r)
		},
	} {
		want := rangetable.New(file.Classes[name].all()...)
		if len(want.R16) == 0 {
			t.Fatalf("no %s", name)
		}
		for _, r := range characters {
			if in(r) != unicode.Is(want, r) {
				t.Errorf("%s: %U is %t, want %t", name, r, in(r), !in(r))
			}
		}
	}
	if len(file.Lower) == 0 {
		t.Fatal("no lower case")
	}
	for _, r := range characters {
		want, ok := file.Lower[string(r)]
		if !ok {
			want = string(r)
		}
		if lower(r) != want {
			t.Errorf("%U in lower case is %q, want %q", r, lower(r), want)
		}
	}
}

// writeTables writes unicodetables.go.
func (file *characterFile) writeTables(t *testing.T) {
	var out strings.Builder
	out.WriteString(`// Code generated by go test -run TestCharacters -tables. DO NOT EDIT.

package tokenizer

import "unicode"

// The parts of the reference library have tables of different versions of Unicode. The number in a table's name is its
// version: 17 for Rust's standard library and unicode-segmentation, 16 for Oniguruma and the crate regex, 9 for
// unicode-normalization-alignments, and 8 for unicode_categories.
`)
	table := func(name, text string, runes []rune) {
		table := rangetable.New(runes...)
		fmt.Fprintf(&out, "\n// %s has %s.\nvar %[1]s = &unicode.RangeTable{\n\tR16: []unicode.Range16{\n", name, text)
		var ranges []string
		for _, r := range table.R16 {
			ranges = append(ranges, fmt.Sprintf("{%#x, %#x, %d}", r.Lo, r.Hi, r.Stride))
		}
		writeLines(&out, ranges)
		ranges = nil
		for _, r := range table.R32 {
			ranges = append(ranges, fmt.Sprintf("{%#x, %#x, %d}", r.Lo, r.Hi, r.Stride))
		}
		out.WriteString("\t},\n\tR32: []unicode.Range32{\n")
		writeLines(&out, ranges)
		out.WriteString("\t},\n}\n")
	}
	class := func(name string, except ...string) []rune {
		runes := file.Classes[name].all()
		for _, name := range except {
			known := rangetable.New(file.Classes[name].all()...)
			runes = slices.DeleteFunc(runes, func(r rune) bool { return unicode.Is(known, r) })
		}
		return runes
	}
	table("letters16", `\p{L}`, class("letters"))
	table("uppers16", `[\p{Lu}\p{Lt}]`, class("uppers"))
	table("lowers16", `\p{Ll}`, class("lowers"))
	table("marks16", `\p{M}`, class("marks"))
	table("numbers16", `\p{N}`, class("digits"))
	table("otherWords16", `the characters of \w that are neither letters nor marks`, class("words", "letters", "marks"))
	table("otherNumbers17", "the numbers that aren't in numbers16", class("numbers", "digits"))
	table("punctuation8", "the characters that are punctuation for BERT", class("punctuation"))
	table("nonspacing8", "the characters that BERT removes as accents", class("nonspacing"))
	table("removed8", "the characters that BERT removes as control characters", class("removed"))
	table("marks9", "the combining marks, which StripAccents removes", class("accents"))
	table("decomposed9", "the characters that NFKD decomposes", class("decomposed"))
	table("extends17", "the characters that continue a grapheme cluster, but not in uniseg's tables of Unicode 15", slices.DeleteFunc(class("extends"), func(r rune) bool {
		return uniseg.GraphemeClusterCount("a"+string(r)) == 1
	}))
	out.WriteString("\n// lower17 has the lower case of characters. It leaves out İ, which has two.\nvar lower17 = []lowering{\n")
	writeLines(&out, file.lowerings())
	out.WriteString("}\n")
	content, err := format.Source([]byte(out.String()))
	if err == nil {
		err = os.WriteFile("unicodetables.go", content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeLines writes elements of a list, several per line.
func writeLines(out *strings.Builder, elements []string) {
	line := ""
	for i, e := range elements {
		line += e + ", "
		if i == len(elements)-1 || len(line)+len(elements[i+1]) > 140 {
			fmt.Fprintf(out, "\t\t%s\n", strings.TrimSuffix(line, " "))
			line = ""
		}
	}
}

// lowerings returns the elements of lower17.
func (file *characterFile) lowerings() (elements []string) {
	var all []lowering
	for r := range rune(unicode.MaxRune + 1) {
		text, ok := file.Lower[string(r)]
		if !ok || r == 'İ' {
			continue
		}
		by := firstRune(text) - r
		if n := len(all) - 1; n >= 0 && all[n].by == by {
			if step := r - all[n].last; step <= 2 && (all[n].first == all[n].last || all[n].step == step) {
				all[n].last, all[n].step = r, step
				continue
			}
		}
		all = append(all, lowering{r, r, 1, by})
	}
	for _, l := range all {
		elements = append(elements, fmt.Sprintf("{%#x, %#x, %d, %d}", l.first, l.last, l.step, l.by))
	}
	return elements
}
