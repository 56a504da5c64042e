package tokenizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/learn"
	"github.com/heed-go/heed/data/tokenizer/internal/models"
)

// forms has the parts of our own files that depend only on the units.
var forms = map[Units]form{
	Characters: {
		PreTokenizer: map[string]any{"type": "Split", "pattern": map[string]any{"String": ""}, "behavior": "Isolated", "invert": false},
		Decoder:      map[string]any{"type": "Fuse"},
	},
	Tokens: {
		PreTokenizer: map[string]any{"type": "WhitespaceSplit"},
	},
	Words: {},
	BPE: {
		PreTokenizer: map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		Decoder:      map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
	},
}

type form struct{ PreTokenizer, Decoder any }

// tokenizerJSON returns the tokenizer.json with this model.
func tokenizerJSON(units Units, model any) ([]byte, error) {
	form := forms[units]
	return format.Marshal(format.File{Version: "1.0", AddedTokens: []any{}, PreTokenizer: form.PreTokenizer, Decoder: form.Decoder, Model: model}, "  ")
}

type wordLevelJSON struct {
	Type         string       `json:"type"`
	Vocab        format.Vocab `json:"vocab"`
	UnknownToken string       `json:"unk_token"`
}

// wordLevel returns the model for characters, tokens or words. The model for words has its own type, because WordLevel
// doesn't look for lower-case forms. If there is an unknown id, it is the id after the last token. Otherwise, the model
// names an unknown token that its vocabulary lacks, so that unknown text is an error in other libraries, too.
func wordLevel(units Units, tokens []string, unknown int) wordLevelJSON {
	typ := "WordLevel"
	if units == Words {
		typ = "Words"
	}
	if unknown < 0 {
		return wordLevelJSON{typ, tokens, ""}
	}
	return wordLevelJSON{typ, append(slices.Clone(tokens), unknownToken), unknownToken}
}

// bpeJSON is the model of a tokenizer.json with byte-pair encoding.
type bpeJSON struct {
	Type                    string       `json:"type"`
	Dropout                 any          `json:"dropout"`
	UnknownToken            any          `json:"unk_token"`
	ContinuingSubwordPrefix any          `json:"continuing_subword_prefix"`
	EndOfWordSuffix         any          `json:"end_of_word_suffix"`
	FuseUnknown             bool         `json:"fuse_unk"`
	ByteFallback            bool         `json:"byte_fallback"`
	IgnoreMerges            bool         `json:"ignore_merges"`
	Vocab                   format.Vocab `json:"vocab"`
	Merges                  []joinJSON   `json:"merges"`
}

// joinJSON is the two tokens of a merge with a space between them. All libraries can read this form; newer ones write
// an array. Unlike the rest of the file, it escapes <, > and &.
type joinJSON string

func (m joinJSON) MarshalJSON() ([]byte, error) { return json.Marshal(string(m)) }

// bpeFile returns a tokenizer.json for a learned vocabulary.
func bpeFile(v *learn.BPE) ([]byte, error) {
	model := bpeJSON{Type: "BPE", Vocab: make(format.Vocab, len(v.Tokens)), Merges: make([]joinJSON, len(v.Pairs))}
	for id, token := range v.Tokens {
		model.Vocab[id] = models.Spell(token)
	}
	for rank, p := range v.Pairs {
		model.Merges[rank] = joinJSON(model.Vocab[p.Left] + " " + model.Vocab[p.Right])
	}
	return tokenizerJSON(BPE, model)
}

// parseWordLevel makes the tokenizer of a file that wordLevel has written.
func parseWordLevel(file format.Members) (Tokenizer, error) {
	var tokens []string
	model, err := format.Object(file["model"], "type", "vocab", "unk_token")
	if err == nil {
		tokens, err = model.TakeVocab()
	}
	var level wordLevelJSON // without the Vocab
	if err == nil {
		err = model.Decode(&level)
	}
	if err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	units := Tokens
	if level.Type == "Words" {
		units = Words
	} else if file.IsOneOf("pre_tokenizer", forms[Characters].PreTokenizer) == nil {
		units = Characters
	}
	form := forms[units]
	err = cmp.Or(file.IsOneOf("truncation", nil), file.IsOneOf("padding", nil), file.IsOneOf("added_tokens", nil, []any{}), file.IsOneOf("normalizer", nil),
		file.IsOneOf("pre_tokenizer", form.PreTokenizer), file.IsOneOf("decoder", form.Decoder), file.IsOneOf("post_processor", nil))
	if err != nil {
		return nil, err
	}
	last := len(tokens) - 1
	unknown := last >= 0 && tokens[last] == unknownToken && level.UnknownToken == unknownToken
	if unknown {
		tokens = tokens[:last]
	} else if units != Characters || level.UnknownToken != "" {
		return nil, fmt.Errorf("its unk_token must be %q, the last token of the vocab, got %.100q", unknownToken, level.UnknownToken)
	}
	if units != Characters {
		return newSpaced(units, tokens)
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
