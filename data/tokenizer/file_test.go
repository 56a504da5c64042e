package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

func tokenizerFile(t testing.TB, tok Tokenizer) []byte {
	t.Helper()
	var file bytes.Buffer
	must.Do(t, Write(&file, tok))
	return file.Bytes()
}

const charactersFile = `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [],
  "normalizer": null,
  "pre_tokenizer": {
    "behavior": "Isolated",
    "invert": false,
    "pattern": {
      "String": ""
    },
    "type": "Split"
  },
  "post_processor": null,
  "decoder": {
    "type": "Fuse"
  },
  "model": {
    "type": "WordLevel",
    "vocab": {
      "<": 0,
      "b": 1,
      "�": 2
    },
    "unk_token": "�"
  }
}
`

func TestTokenizerFileBytes(t *testing.T) {
	if got := tokenizerFile(t, must.Get(New(Characters, slices.Values([]string{"b<"}), 0))(t)); string(got) != charactersFile {
		t.Errorf("got %s", got)
	}
}

func TestReadErrors(t *testing.T) {
	vocab := func(s string) string { return strings.Replace(charactersFile, `"<": 0,`, s, 1) }
	tokens := strings.NewReplacer(`"decoder": {
    "type": "Fuse"
  }`, `"decoder": null`, `"behavior": "Isolated",
    "invert": false,
    "pattern": {
      "String": ""
    },
    "type": "Split"`, `"type": "WhitespaceSplit"`).Replace(charactersFile)
	must.Get(Read(strings.NewReader("\r\n\t " + tokens)))(t)
	for _, tc := range []struct{ name, file, wantErr string }{
		{"nothing", "", "tokenizer.json"},
		{"another JSON", "[1]", "expected an object, got [1]"},
		{"null", "null", "expected an object"},
		{"cut", charactersFile[:len(charactersFile)/2], "unexpected end"},
		{"more than one value", charactersFile + "{}", "after top-level value"},
		{"not UTF-8", vocab("\"\xff\": 0,"), "UTF-8"},
		{"a repeated key", vocab(`"<": 0, "<": 0,`), `"<" in "model.vocab" is given twice`},
		{"a repeated id", vocab(`"<": 1,`), `gives the id 1 to "<" and to "b"`},
		{"a negative id", vocab(`"<": -1,`), `an id from 0 on, got -1 for "<"`},
		{"no id", vocab(`"<": null,`), `an id from 0 on, got null for "<"`},
		{"a huge id", vocab(`"<": 1e300,`), "an id from 0 on, got 1e300"},
		{"a fraction", vocab(`"<": 0.5,`), "an id from 0 on, got 0.5"},
		{"an id as text", vocab(`"<": "0",`), "an id from 0 on"},
		{"a character too many", vocab(`"<<": 0,`), `token 0 of a vocabulary of characters must be one character, got "<<"`},
		{"no character", vocab(`"": 0,`), `must be one character, got ""`},
		{"half a surrogate", vocab(`"\ud800": 0,`), "half of a character"}, // encoding/json turns it into U+FFFD
		{"an unknown token that isn't text", strings.Replace(charactersFile, `"unk_token": "�"`, `"unk_token": [1]`, 1), "its unk_token has the wrong type, array"},
		{"a list for truncation", `{"version": "1.0", "truncation": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}`, "its truncation: it has the wrong type, array"},
		{"a text for split", `{"version": "1.0", "pre_tokenizer": {"type": "Metaspace", "split": "a"}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}`, "its pre_tokenizer: its split has the wrong type, string"},
		{"a long number", `{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": ` + strings.Repeat("1", 5000) + `}, "merges": []}}`, "an id from 0 on, got 111"},
		{"no vocab", `{"version": "1.0", "model": {"type": "WordLevel"}}`, "its vocab must be an object, got nothing"},
		{"a key beside the vocab", vocab(`"<": 0}, "other": {"a": 0,`), `"other" isn't supported`},
		{"an unknown token elsewhere", strings.Replace(charactersFile, `"unk_token": "�"`, `"unk_token": "<"`, 1), `its unk_token must be "�", the last token of the vocab, got "<"`},
		{"another version", strings.Replace(charactersFile, `"1.0"`, `"2.0"`, 1), `its version must be "1.0", got "2.0"`},
		{"another key", strings.Replace(charactersFile, `"padding"`, `"Padding"`, 1), `"Padding" isn't supported`},
		{"a normaliser", strings.Replace(charactersFile, `"normalizer": null`, `"normalizer": {"type": "Lowercase"}`, 1), `its normalizer must be null, got {"type": "Lowercase"}`},
		{"a long normaliser", strings.Replace(charactersFile, `"normalizer": null`, `"normalizer": {"type": "Lowercase"`+strings.Repeat(" ", 5000)+`}`, 1), `its normalizer must be null, got {"type": "Lowercase"`},
		{"an empty unknown token", `{"version": "1.0", "model": {"type": "WordPiece", "unk_token": "", "vocab": {"a": 0, "b": 2}}}`, `its unk_token "" isn't in the vocab`},
		{"added tokens", strings.Replace(charactersFile, `"added_tokens": []`, `"added_tokens": [{"id": 0}]`, 1), "its model is of type \"WordLevel\", which is supported only in files that Heed wrote: its added_tokens must be null or []"},
		{"a published WordLevel", `{"version": "1.0", "added_tokens": [{"id": 0}], "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Whitespace"},
			"model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}}`, `its model is of type "WordLevel"`},
		{"a WordLevel of transformers", strings.Replace(charactersFile, `"unk_token"`, `"dropout": null, "unk_token"`, 1), `its model is of type "WordLevel"`},
		{"another model", strings.Replace(charactersFile, `"WordLevel"`, `"WordPieces"`, 1), `its model: the type "WordPieces" isn't supported`},
		{"no model", `{"version": "1.0"}`, "its model: expected an object"},
		{"characters split away", strings.Replace(charactersFile, `"Isolated"`, `"Removed"`, 1), "its pre_tokenizer must be"},
		{"another decoder", strings.Replace(charactersFile, `"Fuse"`, `"WordPiece"`, 1), "its decoder must be"},
		{"tokens without an unknown one", strings.Replace(tokens, `"unk_token": "�"`, `"unk_token": ""`, 1), "its unk_token must be"},
		{"white space in a token", strings.Replace(tokens, `"<": 0`, `"a\u2029b": 0`, 1), "must be one of them, without white space"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tc.file))
			must.Fail(t, err, tc.wantErr)
			if strings.Contains(err.Error(), "Go ") || len(err.Error()) > 1000 {
				t.Errorf("the error mentions Go types or is too long: %.2000v", err)
			}
		})
	}
	if _, err := Read(iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
	must.Refuse(Read(io.LimitReader(spaces{}, format.MaxFile+100)))(t, "at most 67108864 bytes")
}

// TestReadOthersBPE reads files of other libraries, with ids in any order.
func TestReadOthersBPE(t *testing.T) {
	file := string(tokenizerFile(t, newTestBPE(t, 258, "aa aa aa")))
	replace := func(pairs ...string) string {
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(file, pairs[i]) {
				t.Fatalf("no %q in the file", pairs[i])
			}
		}
		return strings.NewReplacer(pairs...).Replace(file)
	}
	for _, tc := range []struct {
		name, file string
		ids        []int // of " aa!"
		wantErr    string
	}{
		{"ours", file, []int{257, 0}, ""},
		{"GPT-2's", replace(`"unk_token": null`, `"unk_token": null`, `"continuing_subword_prefix": null`, `"continuing_subword_prefix": ""`,
			`"end_of_word_suffix": null`, `"end_of_word_suffix": ""`, `"post_processor": null`, `"post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false}`), []int{257, 0}, ""},
		{"merges as arrays", replace(`"a a"`, `["a", "a"]`, `"Ġ aa"`, `["Ġ", "aa"]`), []int{257, 0}, ""},
		{"other ids", replace(`"!": 0`, `"!": 256`, `"aa": 256`, `"aa": 0`), []int{257, 256}, ""},
		{"a token that no merge makes", replace(`"aa": 256`, `"aa": 256, "zz": 258`), []int{257, 0}, ""},
		{"without its byte fallback", replace(`    "byte_fallback": false,`, ``), []int{257, 0}, ""},
		{"a merge twice", replace(`"a a"`, `"a a", "a a"`), nil, "merge 1 (from 0) repeats merge 0"},
		{"a merge of unknown tokens", replace(`"a a"`, `"aaa a"`), nil, "merge 0 (from 0) must join two tokens of the vocab into a third"},
		{"a merge into none", replace(`"a a"`, `"a b"`), nil, "merge 0 (from 0) must join"},
		{"a merge of one", replace(`"a a"`, `"aa"`), nil, `a merge must be two tokens, got "aa"`},
		{"a merge of three", replace(`"a a"`, `["a", "a", "a"]`), nil, "a merge must be two tokens"},
		{"a merge of nothing", replace(`"a a"`, `null`), nil, "a merge must be two tokens"},
		{"a merge of numbers", replace(`"a a"`, `[1, 2]`), nil, "a merge must be two tokens, got [1, 2]"},
		{"no merge list", replace(`"merges": [`, `"merges": 1, "x": [`), nil, "its merges must be an array, got 1"},
		{"a token of other characters", replace(`"aa": 256`, `"a a": 256`), nil, "must join two tokens of the vocab into a third"},
		{"another pattern", replace(`"type": "ByteLevel"`, `"type": "Whitespac"`), nil, `its pre_tokenizer: "add_prefix_space" isn't supported`},
		{"dropout", replace(`"dropout": null`, `"dropout": 0.1`), nil, "its dropout must be null, got 0.1"},
		{"a suffix", replace(`"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`), nil, "can't have a continuing_subword_prefix, an end_of_word_suffix"},
		{"a template that isn't known", replace(`"post_processor": null`, `"post_processor": {"type": "Templat"}`), nil, `its post_processor: the type "Templat" isn't supported`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tok, err := Read(strings.NewReader(tc.file))
			if must.Match(t, err, tc.wantErr) {
				return
			}
			ids, err := tok.Encode(" aa!")
			if err != nil || !slices.Equal(ids, tc.ids) {
				t.Errorf("got %v, %v; want %v", ids, err, tc.ids)
			}
			if back, err := tok.Decode(ids); err != nil || back != " aa!" {
				t.Errorf("got %q, %v", back, err)
			}
		})
	}
}

// spaces is an endless Reader of spaces.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	must.Fail(t, Write(io.Discard, other{}), "can't write a tokenizer of type tokenizer.other")
	v := must.Get(NewVocab("a"))(t)
	file, end := io.Pipe()
	file.CloseWithError(io.ErrShortWrite)
	if err := Write(end, v); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

// TestWriteTokenizerTooLarge checks that Write refuses a file that Read would refuse.
func TestWriteTokenizerTooLarge(t *testing.T) {
	t.Parallel()
	testseed.Proof(t)
	long, err := newSpaced(Tokens, []string{strings.Repeat("\x01", format.MaxFile/6)}) // JSON has \u0001
	if err != nil {
		t.Fatal(err)
	}
	must.Fail(t, Write(io.Discard, long), "the file of the tokenizer would have", "give it a smaller size")
}

// other is a Tokenizer from another package.
type other struct{ Tokenizer }

// FuzzRead writes every file that it can read, and encodes and decodes a text. The parts of tokens must be whole
// characters. The ids must give the same text at once and one by one.
func FuzzRead(f *testing.F) {
	for _, units := range []Units{Characters, Tokens, Words} {
		f.Add(tokenizerFile(f, must.Get(New(units, slices.Values([]string{"a b é"}), 0))(f)), "a c")
	}
	f.Add(tokenizerFile(f, newTestBPE(f, 260, "a bb aa bb aa")), "aa bb c")
	f.Add([]byte(`{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": ""}}`), "")
	for _, parts := range []string{
		`"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
			"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
			"model": {"type": "BPE", "unk_token": "a", "fuse_unk": true, "byte_fallback": true, "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2, "<0x41>": 3}, "merges": [["a", "b"]]}`,
		`"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
			"post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 1]}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
			"truncation": {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
			"model": {"type": "WordPiece", "unk_token": "a", "max_input_chars_per_word": 9, "continuing_subword_prefix": "##", "vocab": {"a": 0, "##b": 1}}`,
		`"added_tokens": [{"id": 3, "content": "x", "single_word": true, "lstrip": true, "rstrip": true, "normalized": true, "special": true}],
			"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAeAA="},
			"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}]},
			"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "x", "type_id": 1}}],
				"pair": [{"Sequence": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"x": {"id": "x", "ids": [3], "tokens": ["x"]}}},
			"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [["a", 0], ["▁a", -1.5], ["b", 2]]}`,
	} {
		file := []byte(`{"version": "1.0", ` + parts + `}`)
		must.Get(Read(bytes.NewReader(file)))(f)
		f.Add(file, "a ab c x")
	}
	vocab := `{"<unk>": 0, "a": 1, "##b": 2, "b</w>": 3, "##b</w>": 4`
	for b := range 256 {
		vocab += fmt.Sprintf(`, "<0x%02X>": %d`, b, 5+b)
	}
	for _, parts := range []string{
		`"byte_fallback": true, "end_of_word_suffix": "</w>"`,
		`"byte_fallback": true, "continuing_subword_prefix": "##"`,
		`"end_of_word_suffix": "</w>", "continuing_subword_prefix": "##", "unk_token": "<unk>"`,
		`"byte_fallback": true, "continuing_subword_prefix": "é", "unk_token": "<unk>", "fuse_unk": true`,
	} {
		file := `{"version": "1.0", "decoder": {"type": "ByteFallback"}, "model": {"type": "BPE", ` + parts + `, "vocab": ` + vocab + `}, "merges": []}}`
		for _, text := range []string{"é", "aé", "éa é", "abé#"} {
			f.Add([]byte(file), text)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		written := tokenizerFile(t, tok)
		back, err := Read(bytes.NewReader(written))
		if err != nil || !bytes.Equal(tokenizerFile(t, back), written) {
			t.Fatalf("%s became %s, %v", file, written, err)
		}
		if p, ok := tok.(*Pipeline); ok {
			p.Input(text, text) // may be an error, but must return
		}
		ids, err := tok.Encode(text)
		if err != nil {
			return
		}
		must.Get(tok.Decode(ids))(t)
		tokens, err := tok.Tokenize(text, Options{})
		if err != nil || !slices.Equal(idsOf(tokens), ids) {
			t.Fatalf("%q: Encode returns %v, Tokenize %v, %v", text, ids, tokens, err)
		}
		must.Do(t, checkParts(tok, text, tokens))
	})
}
