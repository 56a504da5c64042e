package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// forms has the parts of a tokenizer's file that depend only on the units.
var forms = map[Units]form{
	Characters: {
		Pre:     map[string]any{"type": "Split", "pattern": map[string]any{"String": ""}, "behavior": "Isolated", "invert": false},
		Decoder: map[string]any{"type": "Fuse"},
	},
	Tokens: {
		Pre: map[string]any{"type": "WhitespaceSplit"},
	},
	BPE: {
		Pre:     map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		Decoder: map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	},
}

type form struct{ Pre, Decoder any }

// tokenizerJSON returns a tokenizer.json for a model.
func tokenizerJSON(units Units, model any) ([]byte, error) {
	form := forms[units]
	return marshal(fileJSON{Version: "1.0", AddedTokens: []any{}, PreTokenizer: form.Pre, Decoder: form.Decoder, Model: model}, "  ")
}

type wordLevelJSON struct {
	Type         string    `json:"type"`
	Vocab        vocabJSON `json:"vocab"`
	UnknownToken string    `json:"unk_token"`
}

// wordLevel returns the model for tokens. If unknown is at least 0, it is the id after the last token. Otherwise the
// model's unknown token is missing from the vocabulary, so that unknown text is an error in other libraries, too.
func wordLevel(tokens []string, unknown int) wordLevelJSON {
	if unknown < 0 {
		return wordLevelJSON{"WordLevel", tokens, ""}
	}
	return wordLevelJSON{"WordLevel", append(slices.Clone(tokens), unknownToken), unknownToken}
}

// bpeJSON is the model of a tokenizer.json with byte-pair encoding. A merge is its two tokens with a space between them,
// because all libraries can read that. Newer libraries write an array.
type bpeJSON struct {
	Type                    string     `json:"type"`
	Dropout                 any        `json:"dropout"`
	UnknownToken            any        `json:"unk_token"`
	ContinuingSubwordPrefix any        `json:"continuing_subword_prefix"`
	EndOfWordSuffix         any        `json:"end_of_word_suffix"`
	FuseUnknown             bool       `json:"fuse_unk"`
	ByteFallback            bool       `json:"byte_fallback"`
	IgnoreMerges            bool       `json:"ignore_merges"`
	Vocab                   vocabJSON  `json:"vocab"`
	Merges                  []joinJSON `json:"merges"`
}

// joinJSON is the two tokens of a merge. It escapes <, > and &, unlike the rest of the file.
type joinJSON string

func (m joinJSON) MarshalJSON() ([]byte, error) { return json.Marshal(string(m)) }

// bpeFile returns a tokenizer.json for a learned vocabulary.
func bpeFile(v *learnedBPE) ([]byte, error) {
	model := bpeJSON{Type: "BPE", Vocab: make(vocabJSON, len(v.tokens)), Merges: make([]joinJSON, len(v.pairs))}
	for id, token := range v.tokens {
		model.Vocab[id] = spell(token)
	}
	for rank, p := range v.pairs {
		model.Merges[rank] = joinJSON(model.Vocab[p.left] + " " + model.Vocab[p.right])
	}
	return tokenizerJSON(BPE, model)
}

func parseWordLevel(file members) (Tokenizer, error) {
	var tokens []string
	model, err := object(file["model"], "type", "vocab", "unk_token")
	if err == nil {
		tokens, err = model.takeVocab()
	}
	var level struct {
		Type         string `json:"type"`
		UnknownToken string `json:"unk_token"`
	}
	if err == nil {
		err = model.decode(&level)
	}
	if err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	units := Tokens
	if file.isOneOf("pre_tokenizer", forms[Characters].Pre) == nil {
		units = Characters
	}
	form := forms[units]
	err = cmp.Or(file.isOneOf("truncation", nil), file.isOneOf("padding", nil), file.isOneOf("added_tokens", nil, []any{}), file.isOneOf("normalizer", nil),
		file.isOneOf("pre_tokenizer", form.Pre), file.isOneOf("decoder", form.Decoder), file.isOneOf("post_processor", nil))
	if err != nil {
		return nil, err
	}
	last := len(tokens) - 1
	unknown := last >= 0 && tokens[last] == unknownToken && level.UnknownToken == unknownToken
	if unknown {
		tokens = tokens[:last]
	} else if units == Tokens || level.UnknownToken != "" {
		return nil, fmt.Errorf("its unk_token must be %q, the last token of the vocab, got %.100q", unknownToken, level.UnknownToken)
	}
	if units == Tokens {
		return newTokens(tokens)
	}
	for id, token := range tokens {
		if len([]rune(token)) != 1 {
			return nil, fmt.Errorf("token %d of a vocabulary of characters must be one character, got %.100q", id, token)
		}
	}
	v, err := NewVocab(strings.Join(tokens, ""))
	if err == nil {
		v.unknown = unknown
	}
	return v, err
}

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
	read, ok := p.pipeline.model.(*bpe)
	if !ok {
		return nil, errors.New("it has another model")
	}
	v := newLearnedBPE()
	for rank, next := range read.merges {
		if size := int32(len(v.tokens)); next.left >= size || next.right >= size {
			return nil, fmt.Errorf("merge %d (from 0) joins tokens that later merges make", rank)
		}
		v.learn(next.pair)
	}
	return bpeFile(v)
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
