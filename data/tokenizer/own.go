package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ReadOwn reads a tokenizer.json that Write has written for a tokenizer of New or NewVocab. Any other file is an error,
// even if Read can read it: the file must have exactly the bytes that Write writes for its tokenizer. Use ReadOwn for a
// file that must be Heed's own, whoever changed it.
func ReadOwn(r io.Reader) (Tokenizer, error) {
	content, err := readContent(r)
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
		return nil, fmt.Errorf("it isn't a tokenizer.json for %s, %s or %s that heed has written: %w", Characters, Tokens, BPE, err)
	}
	return t, nil
}

// rewritten returns the file of a tokenizer that New or NewVocab could have made: with BPE, from nothing but its
// merges.
func rewritten(t Tokenizer) ([]byte, error) {
	p, ok := t.(*Pipeline)
	if !ok {
		var file bytes.Buffer
		err := Write(&file, t)
		return file.Bytes(), err
	}
	read, ok := p.model.(*bpe)
	if !ok {
		return nil, errors.New("it has another model")
	}
	m := newBPE()
	for rank, next := range read.merges {
		if size := int32(len(m.tokens)); next.left >= size || next.right >= size {
			return nil, fmt.Errorf("merge %d (from 0) joins tokens that later merges make", rank)
		}
		m.learn(next.pair)
	}
	return bpeFile(m)
}

// differ returns an error that names the first line of content that isn't as in want.
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
