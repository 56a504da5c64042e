package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxFile is the maximum size of a tokenizer's file in bytes.
const maxFile = 64 << 20

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

// readContent reads at most maxFile bytes. It returns an error if there are more.
func readContent(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("a tokenizer's file must have at most %d bytes", maxFile)
	}
	return content, err
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

// An addedToken is a token that a text is searched for before its model sees the text.
type addedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not next to a letter, digit or underscore
	LeftStrip  bool   `json:"lstrip"`      // includes the white space before it
	RightStrip bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // searched for in the normalised text, in its own normalised form
	Special    bool   `json:"special"`     // marks something about a text
}
