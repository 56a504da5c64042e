package tokenizer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heed-go/heed/data/tokenizer/internal/folder"
	"github.com/heed-go/heed/internal/text"
)

// Open opens the tokenizer of a published model. The argument path is the model's folder, or a file in it. In a folder,
// Open reads the first of these files that exists:
//
//   - source.spm, a SentencePiece model of Marian, with the ids of its pieces in vocab.json;
//   - tokenizer.json;
//   - a SentencePiece model: tokenizer.model, spiece.model, sentencepiece.bpe.model or spm.model;
//   - vocab.txt, the WordPiece vocabulary of BERT;
//   - vocab.json with merges.txt, the byte-level BPE of GPT-2, RoBERTa and DeBERTa.
//
// A file must have one of these names, but a SentencePiece model may have any name that ends with .model, and Marian's
// any that ends with .spm. Except for tokenizer.json, the settings come from tokenizer_config.json,
// special_tokens_map.json, added_tokens.json and config.json in the same folder. If these name a class of tokenizers,
// it must be BERT's, GPT-2's, RoBERTa's, BART's, Llama's, Mistral's, Gemma's, T5's, mBART's, mBART-50's, Pegasus',
// Marian's, ALBERT's, DeBERTa's or DeBERTa-v2's. Without them, vocab.txt is BERT's, vocab.json is GPT-2's, and a
// SentencePiece model adds no tokens to an Input.
//
// A tokenizer.json with a tokenizer_config.json beside it is read as transformers 5.24 reads both. The maximum length
// of an Input, and the side on which texts are cut, come from tokenizer_config.json. Tokens in its added_tokens_decoder
// are added. Some classes of tokenizers, which tokenizer_class or model_type name, take only the vocabulary and the
// template from tokenizer.json: BERT's, DistilBERT's and MPNet's obey do_lower_case, strip_accents and
// tokenize_chinese_chars, ALBERT's do_lower_case, keep_accents and add_prefix_space, DeBERTa-v2's do_lower_case,
// split_by_punct and add_prefix_space, mBART's and mBART-50's src_lang, and GPT-2's, RoBERTa's, BART's, GPT-NeoX's,
// Qwen2's, DeBERTa's, Llama's, XLM-RoBERTa's and CamemBERT's obey add_prefix_space, also where a setting is missing and
// has its default; T5's and Pegasus' have no such setting. With
// clean_up_tokenization_spaces, Decode removes spaces before punctuation, but not for byte pairs. The padding_side has
// no effect, because nothing is padded.
//
// If the folder has a sentence_bert_config.json, its max_seq_length comes first: the tokenizer.json of published
// sentence-embedding models often says 128, and the models were trained with another length. If its do_lower_case is
// true, texts are converted to lower case first.
//
// Errors name the file. If there is no such file or folder, or the folder has no tokenizer, the error wraps
// fs.ErrNotExist. A file must have at most 64 MiB, and a SentencePiece model at most 8 MiB.
func Open(path string) (*Pipeline, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("tokenizer %q: %w", path, text.Reason(err))
	case info.IsDir():
		return open(folder.Read(os.DirFS(path), path))
	}
	dir, name := filepath.Split(path)
	return open(folder.Read(os.DirFS(cmp.Or(dir, ".")), dir, name))
}

// OpenFS is like Open for the root folder of fsys.
func OpenFS(fsys fs.FS) (*Pipeline, error) { return open(folder.Read(fsys, "")) }

// OpenTarget is like OpenFS, for the texts that a model writes: Marian's target.spm with the ids in vocab.json or
// target_vocab.json. A folder without a source.spm and a target.spm has one tokenizer.
func OpenTarget(fsys fs.FS) (*Pipeline, error) {
	_, source := fs.Stat(fsys, folder.SourceModel)
	switch _, err := fs.Stat(fsys, folder.TargetModel); {
	case !errors.Is(err, fs.ErrNotExist):
		return open(folder.Read(fsys, "", folder.TargetModel))
	case source == nil:
		return nil, fmt.Errorf("a folder with a %s must also have a %s, for the texts that the model writes: %w", folder.SourceModel, folder.TargetModel, err)
	}
	return OpenFS(fsys)
}

func open(file string, content []byte, err error) (*Pipeline, error) {
	if err != nil {
		return nil, err
	}
	t, err := readJSON(content)
	p, ok := t.(*Pipeline)
	if err == nil && !ok {
		err = errors.New("it is a vocabulary of characters, tokens or words: use Read")
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer %q: %w", file, text.Reason(err))
	}
	return p, nil
}

// Files returns the names of all files that Open may read in a folder.
func Files() []string { return folder.Files() }
