package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/learn"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
)

// ReadOwn reads a tokenizer.json that Write has written for a tokenizer of New or NewVocab. The file must have exactly
// the bytes that Write writes for its tokenizer. ReadOwn returns an error for any other file, even if Read can read it.
// Use ReadOwn for a file that must be Heed's own.
func ReadOwn(r io.Reader) (Tokenizer, error) {
	content, err := format.Read(r)
	if err != nil {
		return nil, err
	}
	t, err := readJSON(content)
	var own []byte
	if err == nil {
		own, err = rewritten(t)
	}
	if err == nil && !bytes.Equal(content, own) {
		err = differ(content, own)
	}
	if err != nil {
		return nil, fmt.Errorf("it isn't a tokenizer.json for %s, %s, %s or %s that heed has written: %w", Characters, Tokens, Words, BPE, err)
	}
	return t, nil
}

// rewritten returns the file that Write would have written for a tokenizer of New or NewVocab. With BPE, everything in
// it follows from the merges.
func rewritten(t Tokenizer) ([]byte, error) {
	p, ok := t.(*Pipeline)
	if !ok {
		var file bytes.Buffer
		err := Write(&file, t)
		return file.Bytes(), err
	}
	read, ok := p.pipeline.Model.(*models.BPE)
	if !ok {
		return nil, errors.New("it has another model")
	}
	v := learn.NewBPE()
	for rank, next := range read.Merges {
		if size := int32(len(v.Tokens)); next.Left >= size || next.Right >= size {
			return nil, fmt.Errorf("merge %d (from 0) joins tokens that later merges make", rank)
		}
		v.Merge(next.Pair)
	}
	return bpeFile(v)
}

// differ returns an error with the first line of content that differs from the line in want.
func differ(content, want []byte) error {
	n := 0
	for n < min(len(content), len(want)) && content[n] == want[n] {
		n++
	}
	start := bytes.LastIndexByte(want[:n], '\n') + 1
	line := func(text []byte) []byte {
		end := bytes.IndexByte(text[start:], '\n')
		if end < 0 {
			return text[start:]
		}
		return text[start : start+end+1]
	}
	return fmt.Errorf("line %d must be %.100q, got %.100q", bytes.Count(want[:n], []byte("\n"))+1, line(want), line(content))
}
