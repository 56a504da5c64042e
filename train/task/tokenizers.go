package task

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/atomicfile"
)

// The tokenizers of a run folder: one, or one of sources and one of answers.
const (
	TokenizerFile       = "tokenizer.json"
	SourceTokenizerFile = "source.json"
	TargetTokenizerFile = "target.json"
)

// tokenizerFiles returns the names of so many tokenizers.
func tokenizerFiles(n int) []string {
	switch n {
	case 1:
		return []string{TokenizerFile}
	case 2:
		return []string{SourceTokenizerFile, TargetTokenizerFile}
	}
	return nil
}

// tokenizers returns those of a rule.
func tokenizers(r data.Rule) (all []tokenizer.Tokenizer) {
	for _, t := range []tokenizer.Tokenizer{r.Source, r.Target} {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

// tokenizerSums returns the SHA-256 of the files of a rule's tokenizers.
func tokenizerSums(r data.Rule) (sums []string, err error) {
	for _, t := range tokenizers(r) {
		var content bytes.Buffer
		if err := tokenizer.Write(&content, t); err != nil {
			return nil, err
		}
		sums = append(sums, hexSum(content.Bytes()))
	}
	return sums, nil
}

// writeTokenizers writes the files of a rule's tokenizers.
func writeTokenizers(dir string, r data.Rule) error {
	all := tokenizers(r)
	for i, name := range tokenizerFiles(len(all)) {
		err := atomicfile.WriteFile(filepath.Join(dir, name), func(w io.Writer) error { return tokenizer.Write(w, all[i]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// readTokenizers gives a configuration the tokenizers of its run folder, which it has the sums of.
func (c *Config) readTokenizers(fsys fs.FS) error {
	names := tokenizerFiles(len(c.Data.Tokenizers))
	if names == nil && c.fromRows() {
		return fmt.Errorf("data.tokenizers_sha256 must have the sum of %s, or those of %s and %s", TokenizerFile, SourceTokenizerFile, TargetTokenizerFile)
	}
	if c.Kind().Columns == nil && (c.Data.SourceUnits == tokenizer.BPE) != (len(names) == 1) {
		return fmt.Errorf("data.tokenizers_sha256 must have the sum of %s where data.source_units are %s, and else none", TokenizerFile, tokenizer.BPE)
	}
	for i, name := range names {
		content, err := readRegular(fsys, name, maxTokenizer)
		if err == nil && hexSum(content) != c.Data.Tokenizers[i] {
			err = fmt.Errorf("it isn't the one that data.tokenizers_sha256 is of: restore it")
		}
		if err == nil {
			*[]*tokenizer.Tokenizer{&c.Task.Source, &c.Task.Target}[i], err = tokenizer.Read(bytes.NewReader(content))
		}
		if err != nil {
			return fmt.Errorf("its %s: %w", name, err)
		}
	}
	return nil
}

// maxTokenizer is the most bytes of a tokenizer's file to find the sum of. tokenizer.Read takes fewer, and says so.
const maxTokenizer = 1 << 27
