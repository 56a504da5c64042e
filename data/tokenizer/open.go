package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
)

// modelNames are the names of SentencePiece models in published folders.
var modelNames = []string{"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"}

// Open opens the tokenizer of a published model: the model's folder, or a file in it. Of a folder, Open reads the first
// of these files:
//
//   - tokenizer.json;
//   - a SentencePiece model: tokenizer.model, spiece.model or sentencepiece.bpe.model;
//   - vocab.txt, the WordPiece vocabulary of BERT;
//   - vocab.json with merges.txt, the byte-level BPE of GPT-2 and RoBERTa.
//
// A file has one of these names, but a SentencePiece model may have any name that ends with .model. For all files but
// tokenizer.json, the settings come from tokenizer_config.json, special_tokens_map.json, added_tokens.json and
// config.json in the same folder. Where these name the kind of tokenizer, it must be BERT's, GPT-2's, RoBERTa's,
// Llama's, Mistral's, Gemma's or T5's. Without them, vocab.txt is BERT's, vocab.json is GPT-2's, and a SentencePiece
// model adds no tokens to an Input.
//
// If the folder has a sentence_bert_config.json, its max_seq_length is the maximum length of an Input, whatever
// tokenizer.json says: the tokenizer.json of published sentence-embedding models often says 128, and the models were
// trained with another length.
//
// Errors name the file. If there is no such file or folder, or the folder has no tokenizer, the error wraps
// fs.ErrNotExist. A file must have at most 64 MiB, and a SentencePiece model at most 8 MiB.
func Open(path string) (*Pipeline, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %q: %w", path, text.Reason(err))
	}
	folder, names := path, append(append([]string{"tokenizer.json"}, modelNames...), "vocab.txt", "vocab.json")
	if !info.IsDir() {
		folder, names = filepath.Dir(path), []string{filepath.Base(path)}
	}
	for _, name := range names {
		file := filepath.Join(folder, name)
		content, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var p *Pipeline
		if err == nil {
			p, err = openFile(folder, name, content)
		}
		if err != nil {
			return nil, fmt.Errorf("tokenizer %q: %w", file, text.Reason(err))
		}
		return p, nil
	}
	return nil, fmt.Errorf("tokenizer %q: the folder must have a tokenizer.json, a SentencePiece model (%s), a vocab.txt, or a vocab.json with a merges.txt: %w",
		path, strings.Join(modelNames, ", "), fs.ErrNotExist)
}

// Files returns the names of all files that Open may read in a folder.
func Files() []string {
	return append(slices.Clone(modelNames), "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt",
		"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json", "sentence_bert_config.json")
}

// openFile makes a Pipeline from a file of a folder.
func openFile(folder, name string, content []byte) (*Pipeline, error) {
	var file fileJSON
	var err error
	switch {
	case strings.HasSuffix(name, ".model"):
		file, err = modelFile(folder, content)
	case name == "vocab.txt":
		file, err = wordPieceFile(folder, content)
	case name == "vocab.json":
		file, err = byteLevelFile(folder, content)
	case strings.HasSuffix(name, ".json"):
	default:
		err = errors.New("expected a tokenizer.json, vocab.txt, vocab.json, or a name that ends with .model")
	}
	if err == nil && file.Version != "" {
		content, err = marshal(file, "")
	}
	if err == nil {
		content, err = sentenceLength(folder, content)
	}
	if err != nil {
		return nil, err
	}
	t, err := readJSON(content)
	if err != nil {
		return nil, err
	}
	p, ok := t.(*Pipeline)
	if !ok {
		return nil, errors.New("it is a vocabulary of characters or tokens: use Read")
	}
	return p, nil
}

// sentenceLength sets the truncation of a tokenizer.json to the length in the folder's sentence_bert_config.json, if
// there is one.
func sentenceLength(folder string, content []byte) ([]byte, error) {
	var config struct {
		Length    *int `json:"max_seq_length"`
		LowerCase bool `json:"do_lower_case"`
	}
	const name = "sentence_bert_config.json"
	if err := readSettings(folder, name, &config); err != nil {
		return nil, err
	}
	switch {
	case config.LowerCase:
		return nil, fmt.Errorf("%s: do_lower_case isn't supported", name)
	case config.Length == nil:
		return content, nil
	case *config.Length < 1:
		return nil, fmt.Errorf("%s: its max_seq_length must be at least 1, got %d", name, *config.Length)
	}
	if err := jsonkeys.Check(content, nil); err != nil {
		return nil, fmt.Errorf("a tokenizer's file must be a tokenizer.json: %w", err)
	}
	file, err := object(content)
	if err != nil {
		return nil, fmt.Errorf("a tokenizer.json: %w", err)
	}
	file["truncation"] = fmt.Appendf(nil, `{"direction": "Right", "max_length": %d, "strategy": "LongestFirst", "stride": 0}`, *config.Length)
	file["padding"] = json.RawMessage("null")
	return json.Marshal(file)
}

// readFile reads a regular file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // before opening, because opening a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it isn't a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxFile)+bytes.MinRead))
	if _, err = content.ReadFrom(io.LimitReader(f, maxFile+1)); err == nil && content.Len() > maxFile {
		err = fmt.Errorf("it must have at most %d bytes", maxFile)
	}
	return content.Bytes(), err
}

// readSettings decodes a JSON file of a folder. A missing file changes nothing. Keys without a field are ignored.
func readSettings(folder, name string, into any) error {
	content, err := readFile(filepath.Join(folder, name))
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
		err = wrongType(wrong)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, text.Reason(err))
	}
	return nil
}
