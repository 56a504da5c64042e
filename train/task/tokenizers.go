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

// The tokenizer files of a run folder: either one file, or one for sources and one for answers.
const (
	TokenizerFile       = "tokenizer.json"
	SourceTokenizerFile = "source.json"
	TargetTokenizerFile = "target.json"
)

// tokenizerFiles returns the names of the files for n tokenizers.
func tokenizerFiles(n int) []string {
	switch n {
	case 1:
		return []string{TokenizerFile}
	case 2:
		return []string{SourceTokenizerFile, TargetTokenizerFile}
	}
	return nil
}

// tokenizers returns the tokenizers of a rule.
func tokenizers(r data.Rule) (all []tokenizer.Tokenizer) {
	for _, t := range []tokenizer.Tokenizer{r.Source, r.Target} {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

// tokenizerSums returns the SHA-256 of each tokenizer file of a rule. It returns an error if readTokenizers would
// refuse a file.
func tokenizerSums(r data.Rule) (sums []string, err error) {
	for _, t := range tokenizers(r) {
		var content bytes.Buffer
		if err := tokenizer.Write(&content, t); err != nil {
			return nil, err
		}
		sums = append(sums, hexSum(content.Bytes()))
		if _, err := tokenizer.ReadOwn(&content); err != nil {
			return nil, fmt.Errorf("a run folder can't have this tokenizer, a %T: %w", t, err)
		}
	}
	return sums, nil
}

// writeTokenizers writes the tokenizer files of a rule.
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

// readTokenizers reads the tokenizers of a run folder into the configuration, and compares their checksums. The folder
// may come from someone else, and other tokenizers than Heed's own could take much time or memory, so they are errors.
func (c *Config) readTokenizers(fsys fs.FS) error {
	names := tokenizerFiles(len(c.Data.Tokenizers))
	if names == nil && c.fromRows() {
		return fmt.Errorf("data.tokenizers_sha256 must have the checksum of %s, or of %s and %s", TokenizerFile, SourceTokenizerFile, TargetTokenizerFile)
	}
	if c.Kind().Columns == nil && (c.Data.SourceUnits == tokenizer.BPE) != (len(names) == 1) {
		return fmt.Errorf("data.tokenizers_sha256 must have the checksum of %s if data.source_units are %s, and otherwise be empty", TokenizerFile, tokenizer.BPE)
	}
	for i, name := range names {
		content, err := readRegular(fsys, name, maxTokenizer)
		if err == nil && hexSum(content) != c.Data.Tokenizers[i] {
			err = fmt.Errorf("its content doesn't match data.tokenizers_sha256: restore it")
		}
		if err == nil {
			*[]*tokenizer.Tokenizer{&c.Task.Source, &c.Task.Target}[i], err = tokenizer.ReadOwn(bytes.NewReader(content))
			if err != nil {
				err = fmt.Errorf("%w: restore it", err)
			}
		}
		if err != nil {
			return fmt.Errorf("its %s: %w", name, err)
		}
	}
	return nil
}

// maxTokenizer is the greatest size of a tokenizer file in bytes, as in tokenizer.ReadOwn.
const maxTokenizer = 64 << 20
