package models

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/jsonkeys"
)

// mergeJSON has the two tokens of a merge. In JSON, it is a string with a space between the tokens, or an array.
type mergeJSON []string

func (m *mergeJSON) UnmarshalJSON(value []byte) error {
	var both string
	if value[0] == '[' {
		if json.Unmarshal(value, (*[]string)(m)) != nil {
			*m = nil
		}
	} else if json.Unmarshal(value, &both) == nil {
		*m = strings.Split(both, " ")
	}
	if len(*m) != 2 {
		return fmt.Errorf("a merge must be two tokens, got %.100s", value)
	}
	return nil
}

// maxAffix is the maximum length in bytes of the prefix and the suffix that mark parts of a word.
const maxAffix = 1 << 6

// ParseBPE makes the model BPE of a tokenizer.json. With byteLevel, the tokens of its vocabulary are bytes, which are
// spelled as characters.
func ParseBPE(members format.Members, byteLevel bool) (*BPE, error) {
	var file struct {
		Type         string   `json:"type"`
		Dropout      *float64 `json:"dropout"`
		Unknown      *string  `json:"unk_token"`
		Prefix       *string  `json:"continuing_subword_prefix"`
		Suffix       *string  `json:"end_of_word_suffix"`
		FuseUnknown  bool     `json:"fuse_unk"`
		ByteFallback bool     `json:"byte_fallback"`
		IgnoreMerges bool     `json:"ignore_merges"`
	}
	merges, err1 := members.Take("merges", '[')
	spelled, err := members.TakeVocab()
	if err == nil {
		err = format.CheckLengths(spelled)
	}
	if err = cmp.Or(err, err1); err == nil {
		err = members.Decode(&file)
	}
	if err != nil {
		return nil, err
	}
	if file.Dropout != nil && *file.Dropout != 0 {
		return nil, fmt.Errorf("its dropout must be null, got %g: with dropout, ids would be random", *file.Dropout)
	}
	m := &BPE{
		spelled: spelled, ids: make(map[string]int32, len(spelled)), unknownID: -1,
		characters: !byteLevel, byteFallback: file.ByteFallback, fuseUnknown: file.FuseUnknown, ignoreMerges: file.IgnoreMerges,
	}
	if file.Prefix != nil {
		m.prefix = *file.Prefix
	}
	if file.Suffix != nil {
		m.suffix = *file.Suffix
	}
	if len(m.prefix) > maxAffix || len(m.suffix) > maxAffix {
		return nil, fmt.Errorf("its continuing_subword_prefix and end_of_word_suffix must have at most %d bytes, got %d and %d", maxAffix, len(m.prefix), len(m.suffix))
	}
	if file.Unknown != nil && *file.Unknown != "" {
		if m.unknownID = slices.Index(spelled, *file.Unknown); m.unknownID < 0 {
			return nil, fmt.Errorf("its unk_token %.100q isn't in the vocab", *file.Unknown)
		}
	}
	if byteLevel && (m.prefix != "" || m.suffix != "" || m.byteFallback) {
		return nil, errors.New("a byte-level vocab can't have a continuing_subword_prefix, an end_of_word_suffix or byte_fallback")
	}
	m.tokens = spelled
	if byteLevel {
		m.tokens = make([]string, len(spelled))
	}
	others := map[string]int32{} // tokens that don't spell bytes, such as special tokens; text never becomes one of these
	for id, token := range spelled {
		if byteLevel {
			spelt, ok := Unspell(token)
			if !ok {
				others[token] = int32(id)
				continue
			}
			token, m.tokens[id] = spelt, spelt
		}
		if token != "" {
			m.ids[token] = int32(id)
		}
	}
	for b := range m.bytes {
		token := string([]byte{byte(b)})
		if !byteLevel {
			token = fmt.Sprintf("<0x%02X>", b)
		}
		id, ok := m.ids[token]
		if !ok {
			id = -1
		}
		m.bytes[b] = id
	}
	// A prefix and a suffix depend on where a piece ends. So do unknown characters, if neighbouring ones become one
	// token or disappear.
	neighbours := (m.fuseUnknown || m.unknownID < 0) && !(m.byteFallback && slices.Min(m.bytes[:]) >= 0)
	m.uncut = m.prefix != "" || m.suffix != "" || !byteLevel && neighbours
	idOf := func(token string) (int32, bool) {
		if id, ok := others[token]; ok {
			return id, true
		}
		if byteLevel {
			token, _ = Unspell(token)
		}
		id, ok := m.ids[token]
		return id, ok
	}
	n := min(bytes.Count(merges, []byte(","))+1, format.MaxEntries)
	m.ranks, m.Merges = make(map[uint64]int32, n), make([]merge, 0, n)
	err = jsonkeys.Elements(merges, func(value []byte) error {
		rank := len(m.Merges)
		var both mergeJSON
		if err := both.UnmarshalJSON(value); err != nil {
			return err
		}
		left, ok1 := idOf(both[0])
		right, ok2 := idOf(both[1])
		id, ok3 := idOf(both[0] + strings.TrimPrefix(both[1], m.prefix))
		p := Pair{left, right}
		first, repeats := m.ranks[p.key()]
		switch {
		case !ok1 || !ok2 || !ok3:
			return fmt.Errorf("merge %d (from 0) must join two tokens of the vocab into a third, got %.100q", rank, both)
		case repeats:
			return fmt.Errorf("merge %d (from 0) repeats merge %d, %.100q", rank, first, both)
		case rank == format.MaxEntries:
			return fmt.Errorf("it must have at most %d merges", format.MaxEntries)
		}
		m.add(merge{p, id})
		for _, part := range []int32{left, right} {
			if _, isByte := ByteOf(spelled[part]); !byteLevel && (isByte || int(part) == m.unknownID) {
				m.uncut = true // the text of the token isn't its spelling
			}
		}
		return nil
	})
	return m, err
}
