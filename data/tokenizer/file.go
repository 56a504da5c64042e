package tokenizer

import (
	"fmt"
	"io"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/published"
	"github.com/heed-go/heed/internal/jsonkeys"
)

// Write writes a tokenizer of this package as a tokenizer.json, which Hugging Face's libraries can read. With
// Characters and Tokens, the file's model is WordLevel. With BPE, it is the byte-level BPE. The same tokenizer always
// gives the same bytes. With Words, the file's model is "Words", and for a SentencePiece model "SentencePiece". Only
// Read knows these two, because the types of other libraries give other ids. Write returns an error if t comes from
// another package, or if the file would be larger than 64 MiB.
func Write(w io.Writer, t Tokenizer) error {
	var units Units
	var model any
	switch t := t.(type) {
	case *Vocab:
		units, model = Characters, wordLevel(Characters, strings.Split(t.Symbols(), ""), t.Unknown())
	case *spaced:
		units, model = t.units, wordLevel(t.units, t.tokens, t.Unknown())
	case *Pipeline:
		_, err := w.Write(t.pipeline.File)
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

// Read reads a tokenizer.json that Write has written. It also reads a published model's tokenizer.json, and returns a
// *Pipeline for it. The Tokenizer gives the same ids as Hugging Face's tokenizers give with this file. If the file has
// a part that isn't supported, or more than 64 MiB, Read returns an error that says so.
func Read(r io.Reader) (Tokenizer, error) {
	content, err := format.Read(r)
	if err != nil {
		return nil, err
	}
	return readJSON(content)
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

// parse makes the Tokenizer of a tokenizer.json.
func parse(content []byte) (Tokenizer, error) {
	file, err := format.Object(content, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
	if err == nil {
		err = file.IsOneOf("version", "1.0")
	}
	if err != nil {
		return nil, err
	}
	model, err := format.Object(file["model"])
	if typ := string(model["type"]); err != nil || typ != `"WordLevel"` && typ != `"Words"` {
		p, err := published.Parse(content, file)
		return &Pipeline{pipeline: p}, err
	}
	t, err := parseWordLevel(file)
	if err != nil {
		return nil, fmt.Errorf("its model is of type %s, which is supported only in files that Heed wrote: %w", model["type"], err)
	}
	return t, nil
}
