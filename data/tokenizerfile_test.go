package data

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func tokenizerFile(t testing.TB, tok Tokenizer) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := WriteTokenizer(&file, tok); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestTokenizerFile: what is written is the same tokenizer when it is read, and when written again the same bytes.
func TestTokenizerFile(t *testing.T) {
	texts := []string{"\"So\" said <she> & he \u2028 \\ \x00 cafe\u0301 世 😀", "<unk> {} 1 0"}
	var toks []Tokenizer
	for _, units := range []Units{Characters, Tokens} {
		tok, err := NewTokenizer(units, slices.Values(texts), 0)
		if err != nil {
			t.Fatal(err)
		}
		toks = append(toks, tok)
	}
	for _, symbols := range []string{"ba", "b\ufffd", "\ufffd"} { // without an unknown id
		v, err := NewVocab(symbols)
		if err != nil {
			t.Fatal(err)
		}
		toks = append(toks, v)
	}
	for _, tok := range toks {
		file := tokenizerFile(t, tok)
		back, err := ReadTokenizer(iotest.OneByteReader(bytes.NewReader(file)))
		if err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
		if !reflect.DeepEqual(back, tok) || !bytes.Equal(tokenizerFile(t, back), file) {
			t.Errorf("%v became %v", tok, back)
		}
	}
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
	tok, err := NewTokenizer(Characters, slices.Values([]string{"b<"}), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := tokenizerFile(t, tok); string(got) != charactersFile {
		t.Errorf("got %s", got)
	}
}

func TestReadTokenizerErrors(t *testing.T) {
	vocab := func(s string) string { return strings.Replace(charactersFile, `"<": 0,`, s, 1) }
	tokens := strings.NewReplacer(`"decoder": {
    "type": "Fuse"
  }`, `"decoder": null`, `"behavior": "Isolated",
    "invert": false,
    "pattern": {
      "String": ""
    },
    "type": "Split"`, `"type": "WhitespaceSplit"`).Replace(charactersFile)
	if _, err := ReadTokenizer(strings.NewReader(tokens)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, file, wantErr string }{
		{"nothing", "", "tokenizer.json"},
		{"another JSON", "[1]", "expected an object with the keys version,"},
		{"null", "null", "expected an object"},
		{"cut", charactersFile[:len(charactersFile)/2], "unexpected end"},
		{"more than one value", charactersFile + "{}", "after top-level value"},
		{"not UTF-8", vocab("\"\xff\": 0,"), "UTF-8"},
		{"a repeated key", vocab(`"<": 0, "<": 0,`), `"<" in "model.vocab" is given twice`},
		{"a repeated id", vocab(`"<": 1,`), `ids from 0 to 2, each once, which token "b" doesn't have`},
		{"a hole", vocab(`"<": 3,`), `which token "<" doesn't have`},
		{"a negative id", vocab(`"<": -1,`), `which token "<" doesn't have`},
		{"no id", vocab(`"<": null,`), `which token "<" doesn't have`},
		{"a huge id", vocab(`"<": 1e300,`), "cannot unmarshal number 1e300"},
		{"a fraction", vocab(`"<": 0.5,`), "cannot unmarshal number 0.5"},
		{"an id as text", vocab(`"<": "0",`), "cannot unmarshal string"},
		{"a character too many", vocab(`"<<": 0,`), `token 0 of a vocabulary of characters must be one character, got "<<"`},
		{"no character", vocab(`"": 0,`), `must be one character, got ""`},
		{"half a surrogate", vocab(`"\ud800": 0,`), "is given twice"}, // encoding/json takes it for U+FFFD
		{"no vocab", `{"version": "1.0", "model": {"type": "WordLevel"}}`, "its pre_tokenizer must be"},
		{"a vocab that is none", vocab(`"<": 0}, "other": {"a": 0,`), `"other" isn't supported`},
		{"an unknown token elsewhere", strings.Replace(charactersFile, `"unk_token": "�"`, `"unk_token": "<"`, 1), `its unk_token must be "�", the last token of the vocab, got "<"`},
		{"another version", strings.Replace(charactersFile, `"1.0"`, `"2.0"`, 1), `its version must be "1.0", got "2.0"`},
		{"another key", strings.Replace(charactersFile, `"padding"`, `"Padding"`, 1), `"Padding" isn't supported`},
		{"a normaliser", strings.Replace(charactersFile, `"normalizer": null`, `"normalizer": {"type": "Lowercase"}`, 1), `its normalizer must be null, got {"type": "Lowercase"}`},
		{"added tokens", strings.Replace(charactersFile, `"added_tokens": []`, `"added_tokens": [{"id": 0}]`, 1), "its added_tokens must be null or []"},
		{"another model", strings.Replace(charactersFile, `"WordLevel"`, `"WordPiece"`, 1), `its model: its type must be "WordLevel", got "WordPiece"`},
		{"no model", `{"version": "1.0"}`, "its model: expected an object"},
		{"characters split away", strings.Replace(charactersFile, `"Isolated"`, `"Removed"`, 1), "its pre_tokenizer must be"},
		{"another decoder", strings.Replace(charactersFile, `"Fuse"`, `"WordPiece"`, 1), "its decoder must be"},
		{"tokens without an unknown one", strings.Replace(tokens, `"unk_token": "�"`, `"unk_token": ""`, 1), "its unk_token must be"},
		{"white space in a token", strings.Replace(tokens, `"<": 0`, `"a\u2029b": 0`, 1), "no white space"},
		{"an empty token", strings.Replace(tokens, `"<": 0`, `"": 0`, 1), "must have something in it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadTokenizer(strings.NewReader(tc.file))
			wantError(t, err, tc.wantErr)
		})
	}
	if _, err := ReadTokenizer(iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadTokenizer(io.LimitReader(spaces{}, maxTokenizerFile+100)); err == nil || !strings.Contains(err.Error(), "at most 67108864 bytes") {
		t.Errorf("got %v", err)
	}
}

// spaces is a Reader of spaces without end.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestWriteTokenizerErrors(t *testing.T) {
	wantError(t, WriteTokenizer(io.Discard, other{}), "of type data.other has no form as a file")
	v, err := NewVocab("a")
	if err != nil {
		t.Fatal(err)
	}
	file, end := io.Pipe()
	file.CloseWithError(io.ErrShortWrite)
	if err := WriteTokenizer(end, v); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("got %v", err)
	}
}

// TestWriteTokenizerTooLarge: what couldn't be read again isn't written.
func TestWriteTokenizerTooLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 64 MiB")
	}
	long, err := newTokens([]string{strings.Repeat("a", maxTokenizerFile)})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, WriteTokenizer(io.Discard, long), "with 2 ids makes a file of", "give it a smaller size")
}

// other is a Tokenizer of another package.
type other struct{ Tokenizer }

func FuzzReadTokenizer(f *testing.F) {
	for _, units := range []Units{Characters, Tokens} {
		tok, err := NewTokenizer(units, slices.Values([]string{"a b é"}), 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(tokenizerFile(f, tok), "a c")
	}
	f.Add([]byte(`{"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": ""}}`), "")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		tok, err := ReadTokenizer(bytes.NewReader(file))
		if err != nil {
			return
		}
		written := tokenizerFile(t, tok)
		back, err := ReadTokenizer(bytes.NewReader(written))
		if err != nil || !reflect.DeepEqual(back, tok) {
			t.Fatalf("%s became %s, %v", file, written, err)
		}
		ids, err := tok.Encode(text)
		if err != nil {
			return
		}
		if _, err := tok.Decode(ids); err != nil {
			t.Fatal(err)
		}
	})
}
