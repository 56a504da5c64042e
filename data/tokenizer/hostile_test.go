package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestStrippedSpaces encodes many spaces with an added token that is a space and takes the spaces beside it.
func TestStrippedSpaces(t *testing.T) {
	for _, side := range []string{"lstrip", "rstrip", "single_word"} {
		tok, err := Read(strings.NewReader(`{"version": "1.0", "added_tokens": [{"id": 1, "content": " ", "` + side + `": true}], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}`))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ids, err := tok.Encode(strings.Repeat(" ", 1<<18))
		if err != nil {
			t.Fatal(err)
		}
		if side != "rstrip" && len(ids) != 1<<18 {
			t.Errorf("%s: %d ids, want one for each space", side, len(ids))
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", side, took)
		}
	}
}

// TestHostileFiles reads files that were made to take much time or memory. Each must be refused, or encode and decode a
// text, in bounded time and memory.
func TestHostileFiles(t *testing.T) {
	const plain = `"model": {"type": "BPE", "unk_token": "a", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}`
	many := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	deep := func(typ, key string, n int) string {
		return strings.Repeat(`{"type": "`+typ+`", "`+key+`": [`, n) + strings.Repeat("]}", n)
	}
	charsmap := func(units, texts string) string {
		table := string(binary.LittleEndian.AppendUint32(nil, uint32(len(units)))) + units + texts
		return `"normalizer": {"type": "Precompiled", "precompiled_charsmap": "` + base64.StdEncoding.EncodeToString([]byte(table)) + `"}, ` + plain
	}
	numbered := func(n int, format string) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, format+",", i)
		}
		return strings.TrimSuffix(s.String(), ",")
	}
	doubling := `{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}`
	template := func(single string, ids string) string {
		return `"post_processor": {"type": "TemplateProcessing", "single": ` + single + `, "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
			"special_tokens": {"x": {"id": "x", "ids": ` + ids + `, "tokens": []}}}, ` + plain
	}
	for name, tc := range map[string]struct{ file, wantErr string }{
		"a merge that makes its own left token": {`"model": {"type": "BPE", "vocab": {"a": 0, "##": 1}, "merges": ["a ##"], "continuing_subword_prefix": "##"}`, ""},
		"a merge that makes its own right one":  {`"model": {"type": "BPE", "vocab": {"": 0, "a": 1}, "merges": [["", "a"], ["a", ""]]}`, ""},
		"a merge twice":                         {`"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1}, "merges": ` + many(100000, `"a a"`) + `}`, "repeats merge 0"},
		"a huge id":                             {`"model": {"type": "BPE", "vocab": {"a": 0, "b": 16000000}, "merges": []}`, "must be below 65552, got 16000000"},
		"an id beyond integers":                 {`"model": {"type": "BPE", "vocab": {"a": 99999999999999999999}, "merges": []}`, "wrong type"},
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
		"many normalizers":                      {`"normalizer": {"type": "Sequence", "normalizers": ` + many(50000, `{"type": "NFC"}`) + `}, ` + plain, "at most 20 parts"},
		"a normalizer that doubles":             {`"normalizer": {"type": "Sequence", "normalizers": ` + many(20, doubling) + `}, ` + plain, "more than 4096 times longer"},
		"a decoder that doubles":                {`"decoder": {"type": "Sequence", "decoders": ` + many(20, doubling) + `}, ` + plain, "more than 4096 times longer"},
		"a long prefix":                         {`"normalizer": {"type": "Prepend", "prepend": "` + strings.Repeat("a", 5000) + `"}, ` + plain, "more than 4096 times longer"},
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
		tok, err := Read(strings.NewReader(file))
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) || len(err.Error()) > 1000 {
				t.Errorf("%s: got error %.2000v, want %q", name, err, tc.wantErr)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			ids, err := tok.Encode(strings.Repeat("ab##", 1000))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := tok.Decode(ids); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 5*time.Second || allocated > 100 {
			t.Errorf("%s: %d bytes took %v and %d MiB", name, len(file), took, allocated)
		} else {
			t.Logf("%s: %d bytes took %v and %d MiB", name, len(file), took, allocated)
		}
	}
}
