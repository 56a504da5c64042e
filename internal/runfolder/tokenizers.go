package runfolder

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/heed-go/heed/data/tokenizer"
)

// TokenizerFiles returns the names of the files for n tokenizers.
func TokenizerFiles(n int) []string {
	switch n {
	case 1:
		return []string{TokenizerFile}
	case 2:
		return []string{SourceTokenizerFile, TargetTokenizerFile}
	}
	return nil
}

// TokenizerSums returns the checksum of each tokenizer's file. It returns an error if Tokenizers would refuse a file.
func TokenizerSums(tokenizers []tokenizer.Tokenizer) (sums []string, err error) {
	for _, t := range tokenizers {
		var content bytes.Buffer
		if err := tokenizer.Write(&content, t); err != nil {
			return nil, err
		}
		sums = append(sums, Sum(content.Bytes()))
		if _, err := tokenizer.ReadOwn(&content); err != nil {
			return nil, fmt.Errorf("a run folder can't have this tokenizer, a %T: %w", t, err)
		}
	}
	return sums, nil
}

// Tokenizers reads the tokenizers with these checksums. Other tokenizers than Heed's own are errors, because they could
// take much time or memory.
func (f Folder) Tokenizers(sums []string) (tokenizers []tokenizer.Tokenizer, err error) {
	for i, name := range TokenizerFiles(len(sums)) {
		content, err := f.Read(name, maxTokenizer)
		if err == nil && Sum(content) != sums[i] {
			err = errors.New("its content doesn't match data.tokenizers_sha256: restore it")
		}
		var t tokenizer.Tokenizer
		if err == nil {
			if t, err = tokenizer.ReadOwn(bytes.NewReader(content)); err != nil {
				err = fmt.Errorf("%w: restore it", err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", name, err)
		}
		tokenizers = append(tokenizers, t)
	}
	return tokenizers, nil
}

// WriteTokenizers writes the files of tokenizers.
func (w *Writer) WriteTokenizers(tokenizers []tokenizer.Tokenizer) error {
	for i, name := range TokenizerFiles(len(tokenizers)) {
		if err := w.Write(name, func(file io.Writer) error { return tokenizer.Write(file, tokenizers[i]) }); err != nil {
			return err
		}
	}
	return nil
}
