package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// TestStrippedSpaces encodes many spaces with an added token that is a space. The token includes the white space beside
// it.
func TestStrippedSpaces(t *testing.T) {
	for _, side := range []string{"lstrip", "rstrip", "single_word"} {
		tok := must.Get(Read(strings.NewReader(`{"version": "1.0", "added_tokens": [{"id": 1, "content": " ", "` + side + `": true}], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}`)))(t)
		ids := must.Get(tok.Encode(strings.Repeat(" ", 1<<18)))(t)
		if side != "rstrip" && len(ids) != 1<<18 {
			t.Errorf("%s: %d ids, want one for each space", side, len(ids))
		}
	}
}

// TestHostileFiles reads files that were made to take much time or memory. Read must refuse the file, or the tokenizer
// must encode and decode a text or return an error, all in bounded memory.
func TestHostileFiles(t *testing.T) {
	testseed.Slow(t)
	const plain = `"model": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}`
	many := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	deep := func(typ, key string, n int) string {
		return strings.Repeat(`{"type": "`+typ+`", "`+key+`": [`, n) + strings.Repeat("]}", n)
	}
	charsmap := func(units, texts string) string {
		return `"normalizer": ` + precompiledJSON(units, texts) + `, ` + plain
	}
	numbered := func(n int, format string) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, format+",", i)
		}
		return strings.TrimSuffix(s.String(), ",")
	}
	times := func(n int) string {
		return `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("a", n) + `"}`
	}
	sequence := func(key string, parts string) string { return `{"type": "Sequence", "` + key + `": ` + parts + `}` }
	long := strings.Repeat("a", format.MaxTokenBytes-1)
	longMap := precompiledJSON(longMapUnits, strings.Repeat("a", 256)+"\x00")
	nested := func(n int, format string) string {
		var s strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&s, format, strings.Repeat("a", i), i)
		}
		return s.String()
	}
	fallback := func(option string) string {
		var s strings.Builder
		for b := range 256 {
			fmt.Fprintf(&s, `"<0x%02X>": %d,`, b, b)
		}
		return `"model": {"type": "BPE", "byte_fallback": true, ` + option + `, "vocab": {` + s.String() + `"x": 256}, "merges": []}`
	}
	const grows, slow, plenty = "grow to more than 16 times", "more than 400 steps", "more than 4 tokens per byte"
	template := func(single string, ids string) string {
		return `"post_processor": {"type": "TemplateProcessing", "single": ` + single + `, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
			"special_tokens": {"x": {"id": "x", "ids": ` + ids + `, "tokens": []}}}, ` + plain
	}
	for name, tc := range map[string]struct{ file, wantErr string }{
		"a merge that makes its own left token": {`"model": {"type": "BPE", "vocab": {"a": 0, "##": 1}, "merges": ["a ##"], "continuing_subword_prefix": "##"}`, ""},
		"a merge that makes its own right one":  {`"model": {"type": "BPE", "vocab": {"": 0, "a": 1}, "merges": [["", "a"], ["a", ""]]}`, "must join two tokens"},
		"a merge twice":                         {`"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ` + many(100000, `"a a"`) + `}`, "repeats merge 0"},
		"a huge id":                             {`"model": {"type": "BPE", "vocab": {"a": 0, "b": 16000000}, "merges": []}`, "must be below 65540, got 16000000"},
		"an id beyond integers":                 {`"model": {"type": "BPE", "vocab": {"a": 99999999999999999999}, "merges": []}`, "an id from 0 on, got 99999999999999999999"},
		"a huge id of an added token":           {`"added_tokens": [{"id": 16000000, "content": "x"}], ` + plain, "an id from 0 to"},
		"a huge unk_id":                         {`"model": {"type": "Unigram", "unk_id": 100000000, "vocab": [["a", 0]]}`, "unk_id must be an id of the vocab"},
		"a long token":                          {`"model": {"type": "Unigram", "unk_id": 0, "vocab": [["` + strings.Repeat("a", 5000) + `", 0]]}`, "must have at most 2048 bytes"},
		"a long word":                           {`"model": {"type": "WordPiece", "unk_token": "` + strings.Repeat("a", 5000) + `", "vocab": {"` + strings.Repeat("a", 5000) + `": 0}}`, "must have at most 2048 bytes"},
		"a long added token":                    {`"added_tokens": [{"id": 3, "content": "` + strings.Repeat("a", 5000) + `"}], ` + plain, "1 to 2048 bytes"},
		"many tokens":                           {`"model": {"type": "WordPiece", "unk_token": "0", "vocab": {` + numbered(50000, `"%[1]d": %[1]d`) + `}}`, ""},
		"many added tokens":                     {`"added_tokens": [` + numbered(20000, `{"id": %[1]d, "content": "x%[1]d", "normalized": true}`) + `], "normalizer": {"type": "NFC"}, ` + plain, ""},
		"a normalizer nested deep":              {`"normalizer": ` + deep("Sequence", "normalizers", 4000) + `, ` + plain, "levels deep"},
		"a pre-tokenizer nested deep":           {`"pre_tokenizer": ` + deep("Sequence", "pretokenizers", 4000) + `, ` + plain, "levels deep"},
		"a post-processor nested deep":          {`"post_processor": ` + deep("Sequence", "processors", 4000) + `, ` + plain, "levels deep"},
		"a decoder nested deep":                 {`"decoder": ` + deep("Sequence", "decoders", 4000) + `, ` + plain, "levels deep"},
		"nested deeper than JSON":               {`"decoder": ` + deep("Sequence", "decoders", 100000) + `, ` + plain, "max depth"},
		"many normalizers":                      {`"normalizer": ` + sequence("normalizers", many(50000, `{"type": "NFC"}`)) + `, ` + plain, "at most 20 parts"},
		"many normalizers in sequences":         {`"normalizer": ` + sequence("normalizers", many(3, sequence("normalizers", many(7, `{"type": "NFC"}`)))) + `, ` + plain, "at most 20 parts, got 21"},
		"normalizers that double":               {`"normalizer": ` + sequence("normalizers", many(20, times(2))) + `, ` + plain, grows},
		"a normalizer that makes much longer":   {`"normalizer": ` + times(4096) + `, ` + plain, grows},
		"four maps":                             {`"normalizer": ` + sequence("normalizers", many(4, longMap)) + `, ` + plain, grows},
		"slow normalizers":                      {`"normalizer": ` + sequence("normalizers", many(10, `{"type": "NFD"}, {"type": "NFC"}`)) + `, ` + plain, slow},
		"long added tokens":                     {`"added_tokens": [` + numbered(500, `{"id": %d, "content": "aa%[1]d", "normalized": true}`) + `], "normalizer": ` + times(4096) + `, ` + plain, "becomes longer than 2048 bytes"},
		"a long continuing_subword_prefix":      {fallback(`"continuing_subword_prefix": "` + strings.Repeat("#", 65) + `"`), "at most 64 bytes"},
		"a continuing_subword_prefix":           {fallback(`"continuing_subword_prefix": "` + strings.Repeat("#", 20) + `"`), slow},
		"nested tokens":                         {`"model": {"type": "Unigram", "unk_id": 0, "vocab": [["x", 0]` + nested(format.MaxTokenBytes, `, ["%s", -%d]`) + `]}`, slow},
		"nested words":                          {`"model": {"type": "WordPiece", "unk_token": "x", "max_input_chars_per_word": 1000000, "vocab": {"x": 0` + nested(format.MaxTokenBytes-1, `, "%sb": %d`) + `}}`, ""},
		"a long word's token":                   {`"model": {"type": "WordPiece", "unk_token": "x", "max_input_chars_per_word": 1000000, "vocab": {"x": 0, "` + long + `": 1, "##a": 2}}`, ""},
		"a token per byte":                      {`"normalizer": ` + times(64) + `, "model": {"type": "WordPiece", "unk_token": "x", "max_input_chars_per_word": 10000000, "vocab": {"x": 0, "a": 1, "##a": 2, "##b": 3, "###": 4, "##é": 5}}`, plenty},
		"a long name":                           {`"added_tokens": [{"id": 3, "content": "` + long + `b"}], ` + plain, ""},
		"a decoder that makes much longer":      {`"decoder": ` + times(40) + `, ` + plain, grows},
		"decoders that put spaces":              {`"decoder": ` + sequence("decoders", many(20, `{"type": "BPEDecoder", "suffix": ""}`)) + `, ` + plain, slow},
		"a long prefix":                         {`"normalizer": {"type": "Prepend", "prepend": "` + strings.Repeat("a", 2<<20-50) + `"}, ` + plain, grows},
		"a part that is too large":              {`"normalizer": {"type": "Prepend", "prepend": "` + strings.Repeat("a", 3<<20) + `"}, ` + plain, "at most 2097152 bytes"},
		"a decoder that strips nothing":         {`"decoder": {"type": "Strip", "content": "", "start": 1000000000000, "stop": 0}, ` + plain, "must be one character"},
		"a trie that points outside":            {charsmap("\xff\xff\xff\xff"+"\x61\xff\xff\xff", "x\x00"), ""},
		"a trie that points to itself":          {charsmap(strings.Repeat("\x00\x00\x00\x00", 300), ""), ""},
		"a trie that is cut":                    {charsmap("\x00\x00\x00", "x\x00"), "units of 4 bytes"},
		"a replacement without an end":          {charsmap("\x00\x00\x00\x00", strings.Repeat("x", 5000)), "a replacement of 5000 bytes"},
		"replacements that aren't UTF-8":        {charsmap("\x00\x00\x00\x00", "\xff\x00"), "aren't UTF-8"},
		"a template that repeats a text":        {template(many(10000, `{"Sequence": {"id": "A", "type_id": 0}}`), "[0]"), "each text once"},
		"a template of many tokens": {template(`[{"Sequence": {"id": "A", "type_id": 0}}, `+many(5000, `{"SpecialToken": {"id": "x", "type_id": 0}}`)[1:], many(5000, "0")),
			"adds 25000000 special tokens"},
		"a template with a foreign id":   {template(`[{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "x", "type_id": 0}}]`, "[9]"), "adds the id 9"},
		"a template with a type below 0": {template(`[{"Sequence": {"id": "A", "type_id": -1}}]`, "[0]"), "type_id below 0"},
	} {
		file := `{"version": "1.0", ` + tc.file + `}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		err := roundTrip(file, strings.Repeat("ab##", 1000)+strings.Repeat("a", 20000)+strings.Repeat("é", 20000))
		took := time.Since(start)
		if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(err.Error()) > 1000) {
			t.Errorf("%s: got error %.2000v, want %q", name, err, tc.wantErr)
		}
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		if t.Logf("%s: %d bytes took %v and %d MiB", name, len(file), took, allocated); allocated > 300 {
			t.Errorf("%s: %d bytes took %d MiB", name, len(file), allocated)
		}
	}
}

// TestSlowSplitters checks that there is an error if a splitter runs out of steps, so that no text is lost unnoticed.
func TestSlowSplitters(t *testing.T) {
	testseed.Slow(t)
	split := `{"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": false}`
	file := `{"version": "1.0", "pre_tokenizer": {"type": "Sequence", "pretokenizers": [` + strings.Repeat(split+",", 19) + split + `]},
		"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}`
	must.Fail(t, roundTrip(file, strings.Repeat("a", 1<<17)), "more than 400 steps")
}

// roundTrip reads a file, and encodes and decodes a text with it.
func roundTrip(file, text string) error {
	tok, err := Read(strings.NewReader(file))
	if err != nil {
		return err
	}
	ids, err := tok.Encode(text)
	if err != nil {
		return err
	}
	_, err = tok.Decode(ids)
	return err
}

// precompiledJSON returns a normalizer with a precompiled_charsmap.
func precompiledJSON(units, texts string) string {
	table := string(binary.LittleEndian.AppendUint32(nil, uint32(len(units)))) + units + texts
	return `{"type": "Precompiled", "precompiled_charsmap": "` + base64.StdEncoding.EncodeToString([]byte(table)) + `"}`
}

// longMapUnits is the trie of a precompiled_charsmap. Its only key is "a", which the first text replaces.
var longMapUnits = func() string {
	units := make([]byte, 4*1024)
	set := func(index, unit uint32) { binary.LittleEndian.PutUint32(units[4*index:], unit) }
	const first, second = 256, 512 // distances from a unit to its children
	set(0, first<<10)
	set(first^'a', 'a'|1<<8|second<<10)
	return string(units)
}()
