package tokenizer

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heed-go/heed/internal/must"
)

// ownTokenizers returns tokenizers that New and NewVocab made.
func ownTokenizers(t testing.TB) (toks []Tokenizer) {
	text := "\"So\" said <she> & he \u2028 \\ \x00 cafe\u0301 世 😀 <unk> {} 1 0 the then the then there"
	for _, units := range []Units{Characters, Tokens, Words, BPE} {
		for _, size := range []int{0, 5, 256, 275} {
			if units == BPE && size < 256 {
				continue
			}
			toks = append(toks, must.Get(New(units, slices.Values([]string{text, text}), size))(t))
		}
	}
	for _, symbols := range []string{"ba", "b\ufffd", "\ufffd", "\"\\\n<"} {
		toks = append(toks, must.Get(NewVocab(symbols))(t))
	}
	return toks
}

// TestReadOwn reads what Write writes, and writes it again. The bytes must be the same.
func TestReadOwn(t *testing.T) {
	for _, tok := range ownTokenizers(t) {
		file := tokenizerFile(t, tok)
		for _, read := range []func(r io.Reader) (Tokenizer, error){Read, ReadOwn} {
			back := must.Get(read(iotest.OneByteReader(bytes.NewReader(file))))(t)
			if !bytes.Equal(tokenizerFile(t, back), file) || back.Len() != tok.Len() || back.Unknown() != tok.Unknown() {
				t.Errorf("%v became %v", tok, back)
			}
		}
	}
}

// TestReadOwnErrors reads files that differ from what Write writes. ReadOwn must refuse each, even if Read reads it.
func TestReadOwnErrors(t *testing.T) {
	var files []string
	for _, tok := range ownTokenizers(t) {
		files = append(files, string(tokenizerFile(t, tok)))
	}
	bpe := string(tokenizerFile(t, newTestBPE(t, 258, "aa aa aa")))
	vocabulary := string(tokenizerFile(t, ownTokenizers(t)[4]))
	words := string(tokenizerFile(t, ownTokenizers(t)[8]))
	for _, tc := range []struct{ name, file, old, new, wantErr string }{
		{"nothing", "", "", "", "for characters, tokens, words or bpe that heed has written: a tokenizer's file must be a tokenizer.json"},
		{"no line", bpe, "\n", " ", `line 1 must be "{\n", got "{`},
		{"more at the end", bpe, "  }\n}\n", "  }\n}\n\n", `must be "", got "\n"`},
		{"less at the end", bpe, "  }\n}\n", "  }\n}", `must be "}\n", got "}"`},
		{"a normalizer", bpe, `"normalizer": null`, `"normalizer": {"type": "NFC"}`, `line 6 must be "  \"normalizer\": null,\n", got "  \"normalizer\": {`},
		{"added tokens", bpe, `"added_tokens": []`, `"added_tokens": [{"id": 258, "content": "x"}]`, `line 5 must be`},
		{"truncation", bpe, `"truncation": null`, `"truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}`, `line 3 must be`},
		{"a post-processor", bpe, `"post_processor": null`, `"post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false}`, `"post_processor\": null`},
		{"a prefix of spaces", bpe, `"add_prefix_space": false`, `"add_prefix_space": true`, `line 8 must be`},
		{"another decoder", bpe, `"decoder": {`, `"decoder": { `, `"decoder\": {\n`},
		{"an unknown token", bpe, `"unk_token": null`, `"unk_token": "a"`, `"unk_token\": null`},
		{"byte fallback", bpe, `"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{"a prefix", bpe, `"continuing_subword_prefix": null`, `"continuing_subword_prefix": ""`, `"continuing_subword_prefix\": null`},
		{"a suffix", bpe, `"end_of_word_suffix": null`, `"end_of_word_suffix": ""`, `"end_of_word_suffix\": null`},
		{"ignored merges", bpe, `"ignore_merges": false`, `"ignore_merges": true`, `"ignore_merges\": false`},
		{"another model", bpe, `"type": "BPE"`, `"type": "Unigram"`, "its vocab must be an array"},
		{"a token that no merge makes", bpe, `"aa": 256,`, "\"aa\": 256,\n      \"zz\": 258,", `must be "      \"Ġaa\": 257\n", got "      \"zz\": 258,\n"`},
		{"a missing byte", bpe, `"!": 0,`, ``, `"!\": 0,\n", got "      \n"`},
		{"other ids", bpe, `"!": 0,`, `"!": 1,`, "gives the id 1 to"},
		{"merges as arrays", bpe, `"a a"`, `["a", "a"]`, "must be"},
		{"another order of merges", bpe, "\"a a\",\n      \"Ġ aa\"", "\"Ġ aa\",\n      \"a a\"", "merge 0 (from 0)"},
		{"an escape that isn't needed", bpe, `"aa": 256`, `"\u0061a": 256`, `got "      \"\\u0061a\": 256`},
		{"a token twice", vocabulary, `"he": `, `"the": `, "given twice"},
		{"a token of two words", vocabulary, `"he": `, `"h e": `, "white space"},
		{"two words", words, `"there": `, `"the:": `, "token 15 of a vocabulary of words is \"the:\": it must be one of them"},
		{"a word of white space", words, `"there": `, `" ": `, "white space"},
		{"words with a pre-tokenizer", words, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "Whitespace"}`, "its pre_tokenizer must be null"},
		{"tokens that claim to be words", vocabulary, `"WordLevel"`, `"Words"`, "its pre_tokenizer must be null"},
		{"words that claim to be tokens", words, `"Words"`, `"WordLevel"`, "its pre_tokenizer must be"},
		{"no unknown token", vocabulary, `"unk_token": "�"`, `"unk_token": ""`, "its unk_token must be"},
		{"an unknown character twice", files[0], `": 0,`, `": 0, `, `got`},
		{"two unknown characters", charactersFile, `"b": 1`, `"�": 1`, "given twice"},
		{"two characters", charactersFile, `"b": 1`, `"bc": 1`, "must be one character"},
		{"no tokens", charactersFile, "      \"<\": 0,\n      \"b\": 1,\n      \"�\": 2\n", "", "its unk_token must be"},
	} {
		file := strings.Replace(tc.file, tc.old, tc.new, 1)
		if file == tc.file && tc.old != "" {
			t.Errorf("%s: the file has no %q", tc.name, tc.old)
		}
		_, err := ReadOwn(strings.NewReader(file))
		must.Fail(t, err, tc.wantErr)
		if len(err.Error()) > 600 {
			t.Errorf("%s: got error %v, want at most 600 bytes", tc.name, err)
		}
	}
	if _, err := ReadOwn(iotest.ErrReader(os.ErrClosed)); err != os.ErrClosed {
		t.Errorf("got %v", err)
	}
}
