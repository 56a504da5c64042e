package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// maxFile is the maximum size of a tokenizer's file in bytes.
const maxFile = 64 << 20

// forms has the parts of a tokenizer's file that depend only on the units.
var forms = map[Units]form{
	Characters: {
		Pre:     map[string]any{"type": "Split", "pattern": map[string]any{"String": ""}, "behavior": "Isolated", "invert": false},
		Decoder: map[string]any{"type": "Fuse"},
	},
	Tokens: {
		Pre: map[string]any{"type": "WhitespaceSplit"},
	},
	BPE: {
		Pre:     map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		Decoder: map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	},
}

type form struct{ Pre, Decoder any }

// Write writes a tokenizer of this package as a tokenizer.json, which Hugging Face's libraries can read. With
// Characters and Tokens, the file's model is WordLevel. With BPE, it is the byte-level BPE. The same tokenizer always
// gives the same bytes. A SentencePiece model stays one: the file's model is "SentencePiece", which only Read knows,
// because the types of other libraries give other ids in rare cases. Write returns an error if t comes from another
// package, or if the file would be larger than 64 MiB.
func Write(w io.Writer, t Tokenizer) error {
	var units Units
	var model any
	switch t := t.(type) {
	case *Vocab:
		units, model = Characters, wordLevel(strings.Split(t.Symbols(), ""), t.Unknown())
	case *spaced:
		units, model = Tokens, wordLevel(t.tokens, t.Unknown())
	case *Pipeline:
		_, err := w.Write(t.file)
		return err
	default:
		return fmt.Errorf("can't write a tokenizer of type %T: only tokenizers of package tokenizer can be written", t)
	}
	content, err := tokenizerJSON(units, model)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}

// tokenizerJSON returns a tokenizer.json for a model.
func tokenizerJSON(units Units, model any) ([]byte, error) {
	form := forms[units]
	return marshal(fileJSON{Version: "1.0", AddedTokens: []any{}, PreTokenizer: form.Pre, Decoder: form.Decoder, Model: model}, "  ")
}

// marshal returns the bytes of a tokenizer.json.
func marshal(content fileJSON, indent string) ([]byte, error) {
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(content)
	if err == nil && file.Len() > maxFile {
		err = fmt.Errorf("the file of the tokenizer would have %d bytes, more than the limit of %d: give it a smaller size", file.Len(), maxFile)
	}
	return file.Bytes(), err
}

// fileJSON is a tokenizer.json. The file has all keys, in this order.
type fileJSON struct {
	Version       string `json:"version"`
	Truncation    any    `json:"truncation"`
	Padding       any    `json:"padding"`
	AddedTokens   []any  `json:"added_tokens"`
	Normalizer    any    `json:"normalizer"`
	PreTokenizer  any    `json:"pre_tokenizer"`
	PostProcessor any    `json:"post_processor"`
	Decoder       any    `json:"decoder"`
	Model         any    `json:"model"`
}

type wordLevelJSON struct {
	Type         string    `json:"type"`
	Vocab        vocabJSON `json:"vocab"`
	UnknownToken string    `json:"unk_token"`
}

// wordLevel returns the model for tokens. If unknown is at least 0, it is the id after the last token. Otherwise the
// model's unknown token is missing from the vocabulary, so that unknown text is an error in other libraries, too.
func wordLevel(tokens []string, unknown int) wordLevelJSON {
	if unknown < 0 {
		return wordLevelJSON{"WordLevel", tokens, ""}
	}
	return wordLevelJSON{"WordLevel", append(slices.Clone(tokens), unknownToken), unknownToken}
}

// vocabJSON lists the tokens in the order of their ids. In JSON, it is an object with the id of each token that isn't
// empty.
type vocabJSON []string

func (v vocabJSON) MarshalJSON() ([]byte, error) {
	object := bytes.NewBufferString("{")
	enc := json.NewEncoder(object)
	enc.SetEscapeHTML(false)
	for id, token := range v {
		if token == "" {
			continue
		}
		if object.Len() > 1 {
			object.WriteByte(',')
		}
		if err := enc.Encode(token); err != nil {
			return nil, err
		}
		fmt.Fprintf(object, ":%d", id)
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

// Read reads a tokenizer.json that Write has written, or the one of a published model, which becomes a *Pipeline. The
// Tokenizer gives the same ids as Hugging Face's tokenizers give with this file. If the file has a part that isn't
// supported, or more than 64 MiB, Read returns an error that says so.
func Read(r io.Reader) (Tokenizer, error) {
	content, err := readContent(r)
	if err != nil {
		return nil, err
	}
	return readJSON(content)
}

// readContent reads at most maxFile bytes. It returns an error if there are more.
func readContent(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("a tokenizer's file must have at most %d bytes", maxFile)
	}
	return content, err
}

// readJSON reads a tokenizer.json. A Pipeline keeps content.
func readJSON(content []byte) (Tokenizer, error) {
	if err := jsonkeys.Check(content, nil); err != nil {
		return nil, fmt.Errorf("a tokenizer's file must be a tokenizer.json: %w", err)
	}
	t, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("a tokenizer.json: %w", err)
	}
	return t, nil
}

func parse(content []byte) (Tokenizer, error) {
	file, err := object(content, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
	if err == nil {
		err = file.isOneOf("version", "1.0")
	}
	if err != nil {
		return nil, err
	}
	model, err := object(file["model"])
	if err != nil || string(model["type"]) != `"WordLevel"` {
		return parsePipeline(content, file)
	}
	t, err := parseWordLevel(file)
	if err != nil {
		return nil, fmt.Errorf("its model is of type \"WordLevel\", which is supported only in files that Heed wrote: %w", err)
	}
	return t, nil
}

func parseWordLevel(file members) (Tokenizer, error) {
	var tokens []string
	model, err := object(file["model"], "type", "vocab", "unk_token")
	if err == nil {
		tokens, err = model.takeVocab()
	}
	var level struct {
		Type         string `json:"type"`
		UnknownToken string `json:"unk_token"`
	}
	if err == nil {
		err = model.decode(&level)
	}
	if err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	units := Tokens
	if file.isOneOf("pre_tokenizer", forms[Characters].Pre) == nil {
		units = Characters
	}
	form := forms[units]
	err = cmp.Or(file.isOneOf("truncation", nil), file.isOneOf("padding", nil), file.isOneOf("added_tokens", nil, []any{}), file.isOneOf("normalizer", nil),
		file.isOneOf("pre_tokenizer", form.Pre), file.isOneOf("decoder", form.Decoder), file.isOneOf("post_processor", nil))
	if err != nil {
		return nil, err
	}
	last := len(tokens) - 1
	unknown := last >= 0 && tokens[last] == unknownToken && level.UnknownToken == unknownToken
	if unknown {
		tokens = tokens[:last]
	} else if units == Tokens || level.UnknownToken != "" {
		return nil, fmt.Errorf("its unk_token must be %q, the last token of the vocab, got %.100q", unknownToken, level.UnknownToken)
	}
	if units == Tokens {
		return newTokens(tokens)
	}
	for id, token := range tokens {
		if len([]rune(token)) != 1 {
			return nil, fmt.Errorf("token %d of a vocabulary of characters must be one character, got %.100q", id, token)
		}
	}
	v, err := NewVocab(strings.Join(tokens, ""))
	if err == nil {
		v.unknown = unknown
	}
	return v, err
}

// decode is like json.Unmarshal, but its error doesn't mention Go types, and a key without a field is an error.
func decode(value []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return wrongType(wrong)
	}
	if err != nil {
		if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("%.100s isn't supported", key)
		}
	}
	return err
}

// wrongType returns an error for a value of JSON. A number may have as many digits as a file, and a field of an
// embedded struct has the struct's name, which isn't in the file.
func wrongType(wrong *json.UnmarshalTypeError) error {
	field := strings.TrimPrefix(wrong.Field, "metaspaceJSON.")
	if field == "" {
		return fmt.Errorf("it has the wrong type, %.100s", wrong.Value)
	}
	return fmt.Errorf("its %.100s has the wrong type, %.100s", field, wrong.Value)
}

// members has the values of a JSON object by key.
type members map[string]json.RawMessage

// object returns the members of a JSON object, which jsonkeys.Check has accepted. It copies no value. If keys are
// given, any other key is an error.
func object(content []byte, keys ...string) (members, error) {
	content = bytes.TrimLeft(content, " \t\r\n")
	if len(content) == 0 || content[0] != '{' {
		return nil, fmt.Errorf("expected an object, got %.200s", cmp.Or(string(content), "nothing"))
	}
	m := members{}
	err := jsonkeys.Members(content, func(key string, value []byte) error {
		if len(keys) > 0 && !slices.Contains(keys, key) {
			return fmt.Errorf("%.100q isn't supported", key)
		}
		m[key] = value
		return nil
	})
	return m, err
}

// decode decodes the members into the fields of a struct. A key without a field is an error.
func (m members) decode(into any) error {
	const size = 2 << 20
	total := 0
	for _, value := range m {
		if total += len(value); total > size {
			return fmt.Errorf("without its lists, it must have at most %d bytes", size)
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return decode(content, into)
}

// take removes the value of a key and returns it. The value must be an object if first is '{', or an array if it is
// '['.
func (m members) take(key string, first byte) (json.RawMessage, error) {
	value := m[key]
	delete(m, key)
	if len(value) > 0 && value[0] == first {
		return value, nil
	}
	kind, got := map[byte]string{'{': "object", '[': "array"}[first], string(value)
	return nil, fmt.Errorf("its %s must be an %s, got %.100s", key, kind, cmp.Or(got, "nothing"))
}

// isOneOf returns an error unless the value of key is in values. A missing value is null.
func (m members) isOneOf(key string, values ...any) error {
	value := m[key]
	if value == nil {
		value = json.RawMessage("null")
	}
	const size = 1 << 12 // the values are shorter
	var got any
	if len(value) <= size {
		if err := json.Unmarshal(value, &got); err != nil {
			return err
		}
	}
	if len(value) <= size && slices.ContainsFunc(values, func(want any) bool { return reflect.DeepEqual(got, want) }) {
		return nil
	}
	var wants []string
	for _, want := range values {
		text, err := json.Marshal(want)
		if err != nil {
			return err
		}
		wants = append(wants, string(text))
	}
	return fmt.Errorf("its %s must be %s, got %.200s", key, strings.Join(wants, " or "), value)
}
