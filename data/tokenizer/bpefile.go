package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// bpeJSON is the model of a tokenizer.json with byte-pair encoding.
type bpeJSON struct {
	Type                    string      `json:"type"`
	Dropout                 any         `json:"dropout"`
	UnknownToken            any         `json:"unk_token"`
	ContinuingSubwordPrefix any         `json:"continuing_subword_prefix"`
	EndOfWordSuffix         any         `json:"end_of_word_suffix"`
	FuseUnknown             bool        `json:"fuse_unk"`
	ByteFallback            bool        `json:"byte_fallback"`
	IgnoreMerges            bool        `json:"ignore_merges"`
	Vocab                   vocabJSON   `json:"vocab"`
	Merges                  []mergeJSON `json:"merges"`
}

// mergeJSON is the two tokens of a merge. Heed writes one string with a space between the tokens, because all libraries
// can read it. Newer libraries write an array.
type mergeJSON []string

func (m mergeJSON) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Join(m, " ")) }

func (m *mergeJSON) UnmarshalJSON(value []byte) error {
	var both string
	if json.Unmarshal(value, &both) == nil {
		*m = strings.Split(both, " ")
	} else if json.Unmarshal(value, (*[]string)(m)) != nil {
		*m = nil
	}
	if len(*m) != 2 {
		return fmt.Errorf("a merge must be two tokens, got %.100s", value)
	}
	return nil
}

func (t *bpe) model() bpeJSON {
	model := bpeJSON{Type: "BPE", Vocab: make(vocabJSON, len(t.tokens)), Merges: make([]mergeJSON, len(t.merges))}
	for id, token := range t.tokens {
		model.Vocab[id] = spell(token)
	}
	for rank, m := range t.merges {
		model.Merges[rank] = mergeJSON{model.Vocab[m.left], model.Vocab[m.right]}
	}
	return model
}

// parseBPE also reads files of other libraries, if their tokenizers are byte-level like GPT-2's and have no added
// tokens.
func parseBPE(file members) (Tokenizer, error) {
	err := errors.Join(file.isByteLevel("pre_tokenizer"), file.isByteLevel("decoder"))
	if file.isOneOf("post_processor", nil) != nil {
		err = errors.Join(err, file.isByteLevel("post_processor"))
	}
	if err != nil {
		return nil, err
	}
	model, err := object(file["model"], "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges")
	if err == nil {
		err = errors.Join(model.isOneOf("dropout", nil), model.isOneOf("unk_token", nil), model.isOneOf("continuing_subword_prefix", nil, ""), model.isOneOf("end_of_word_suffix", nil, ""),
			model.isOneOf("fuse_unk", nil, false), model.isOneOf("byte_fallback", nil, false), model.isOneOf("ignore_merges", nil, false))
	}
	var m bpeJSON
	if err == nil {
		err = decode(file["model"], &m)
	}
	var t *bpe
	if err == nil {
		t, err = m.tokenizer()
	}
	if err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	return t, nil
}

// isByteLevel returns an error unless the value of key is a ByteLevel object. It ignores options that change only
// offsets.
func (m members) isByteLevel(key string) error {
	level, err := object(m[key], "type", "add_prefix_space", "trim_offsets", "use_regex")
	if err == nil {
		err = level.isOneOf("type", "ByteLevel")
	}
	if key == "pre_tokenizer" && err == nil {
		err = errors.Join(level.isOneOf("add_prefix_space", false), level.isOneOf("use_regex", nil, true))
	}
	if err != nil {
		return fmt.Errorf("its %s: %w", key, err)
	}
	return nil
}

func (m *bpeJSON) tokenizer() (*bpe, error) {
	t := newBPE()
	t.tokens = make([]string, len(m.Vocab))
	ids := make(map[string]int, len(m.Vocab))
	for id, spelled := range m.Vocab {
		token, ok := unspell(spelled)
		if !ok {
			return nil, fmt.Errorf("token %d of the vocab must consist of characters that stand for bytes, got %.100q", id, spelled)
		}
		t.tokens[id], ids[spelled] = token, id
	}
	for b, r := range byteRunes {
		id, ok := ids[string(r)]
		if !ok {
			return nil, fmt.Errorf("the vocab must have every byte: %q, for the byte %d, is missing", r, b)
		}
		t.bytes[b] = id
	}
	for rank, both := range m.Merges {
		left, ok1 := ids[both[0]]
		right, ok2 := ids[both[1]]
		id, ok3 := ids[both[0]+both[1]]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("merge %d (from 0) must join two tokens of the vocab into a third, got %.100q", rank, both)
		}
		p := pair{left, right}
		if first, ok := t.ranks[p]; ok {
			return nil, fmt.Errorf("merge %d (from 0) repeats merge %d, %.100q", rank, first, both)
		}
		t.add(merge{p, id})
	}
	return t, nil
}
