// Package folder finds the tokenizer in the folder of a published model. Files of older formats become a
// tokenizer.json, so that there is one reader for all of them.
package folder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
)

// modelNames are the names of SentencePiece models in published folders.
var modelNames = []string{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model"}

// settingsFiles are the names of the files with settings that change ids.
var settingsFiles = []string{"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json", "sentence_bert_config.json"}

// Marian's names: SentencePiece models whose pieces have their ids in another file.
const (
	SourceModel = "source.spm"
	TargetModel = "target.spm"
	targetVocab = "target_vocab.json"
)

// tokenizerFiles returns the names of files with a tokenizer. Of several files in a folder, the first one counts.
func tokenizerFiles() []string {
	return slices.Concat([]string{SourceModel, "tokenizer.json"}, modelNames, []string{"vocab.txt", "vocab.json"})
}

// Files returns the names of all files that Read may read in a folder.
func Files() []string {
	return slices.Concat(tokenizerFiles(), []string{"merges.txt", TargetModel, targetVocab}, settingsFiles)
}

// Read finds a tokenizer in a folder, and returns the path of its file and its content as a tokenizer.json. If names is
// nil, the file may have any of the usual names. The argument path is the path of the folder.
func Read(folder fs.FS, path string, names ...string) (file string, content []byte, err error) {
	if names == nil {
		names = tokenizerFiles()
	}
	for _, name := range names {
		file := filepath.Join(path, name)
		content, err := ReadFile(folder, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			content, err = Convert(folder, name, content)
		}
		if err != nil {
			return "", nil, fmt.Errorf("tokenizer %q: %w", file, text.Reason(err))
		}
		return file, content, nil
	}
	return "", nil, fmt.Errorf("tokenizer %q: the folder must have a tokenizer.json, a SentencePiece model (%s), a vocab.txt, or a vocab.json with a merges.txt: %w",
		cmp.Or(path, "."), strings.Join(modelNames, ", "), fs.ErrNotExist)
}

// Convert returns the tokenizer.json for a file in a folder.
func Convert(folder fs.FS, name string, content []byte) ([]byte, error) {
	var file format.File
	var err error
	switch {
	case strings.HasSuffix(name, ".model"):
		file, err = modelFile(folder, content)
	case strings.HasSuffix(name, ".spm"):
		file, err = marianFile(folder, name, content)
	case name == "vocab.txt":
		file, err = wordPieceFile(folder, content)
	case name == "vocab.json":
		file, err = byteLevelFile(folder, content)
	case strings.HasSuffix(name, ".json"):
	default:
		err = errors.New("expected a tokenizer.json, vocab.txt, vocab.json, or a name that ends with .model or .spm")
	}
	if err == nil && file.Version != "" {
		content, err = format.Marshal(file, "")
	}
	if err != nil {
		return nil, err
	}
	return adjust(folder, content, file.Version == "")
}

// ReadFile reads a regular file of at most format.MaxFile bytes.
func ReadFile(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name) // before opening, because opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it isn't a regular file")
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := bytes.NewBuffer(make([]byte, 0, min(info.Size(), format.MaxFile)+bytes.MinRead))
	if _, err = content.ReadFrom(io.LimitReader(f, format.MaxFile+1)); err == nil && content.Len() > format.MaxFile {
		err = fmt.Errorf("it must have at most %d bytes", format.MaxFile)
	}
	if bytes.HasPrefix(content.Bytes(), []byte("version https://git-lfs")) {
		return nil, errors.New("it is a Git LFS pointer, not the file itself: run git lfs pull")
	}
	return content.Bytes(), err
}

// readSettings decodes a JSON file of a folder. A missing file changes nothing. Keys without a field are ignored.
func readSettings(folder fs.FS, name string, into any) error {
	content, err := ReadFile(folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = jsonkeys.Check(content, nil)
	}
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = format.WrongType(wrong)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, text.Reason(err))
	}
	return nil
}
