// Package format reads and writes the parts of a tokenizer.json, the file of Hugging Face's tokenizers, and has the
// limits of such a file.
//
// A File is what Marshal writes. To read a file, Object returns its Members, and Decode reads each part strictly: a key
// that the reader doesn't know is an error.
package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/heed-go/heed/internal/jsonkeys"
)

// MaxFile is the maximum size of a tokenizer's file in bytes.
const MaxFile = 64 << 20

// Marshal returns the bytes of a tokenizer.json. It returns an error if there are more than MaxFile.
func Marshal(content File, indent string) ([]byte, error) {
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(content)
	if err == nil && file.Len() > MaxFile {
		err = fmt.Errorf("the file of the tokenizer would have %d bytes, more than the limit of %d: give it a smaller size", file.Len(), MaxFile)
	}
	return file.Bytes(), err
}

// File is a tokenizer.json. The file has all keys, in this order.
type File struct {
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

// Vocab has the token of each id. In JSON, it is an object with the id of each token. A token that is empty is left
// out.
type Vocab []string

func (v Vocab) MarshalJSON() ([]byte, error) {
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

// Read reads everything. It returns an error if there are more than MaxFile bytes.
func Read(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err == nil && len(content) > MaxFile {
		err = fmt.Errorf("a tokenizer's file must have at most %d bytes", MaxFile)
	}
	return content, err
}

// An AddedToken is a token that is found in a text before the model encodes the rest.
type AddedToken struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // not found beside a letter, digit or underscore
	LeftStrip  bool   `json:"lstrip"`      // includes the white space before it
	RightStrip bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // the normalised token is found in the normalised text
	Special    bool   `json:"special"`     // marks something about a text
}

// AddedTokens returns the added_tokens of a tokenizer.json. The argument part may be missing or null.
func AddedTokens(part json.RawMessage) (added []AddedToken, err error) {
	if len(part) == 0 || string(part) == "null" {
		return nil, nil
	}
	if part, err = (Members{"added_tokens": part}).Take("added_tokens", '['); err != nil {
		return nil, err
	}
	err = jsonkeys.Elements(part, func(value []byte) error {
		if len(added) == MaxAddedTokens {
			return fmt.Errorf("it must have at most %d added_tokens", MaxAddedTokens)
		}
		var token AddedToken
		if err := Decode(value, &token); err != nil {
			return fmt.Errorf("its added token %d (from 0): %w", len(added), err)
		}
		added = append(added, token)
		return nil
	})
	return added, err
}
