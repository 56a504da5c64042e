package format

import (
	"encoding/json"
	"fmt"
)

// The limits in this file bound the time and memory that a tokenizer.json and its texts take. Published files are far
// below all of them.

// MaxIDs returns the greatest number of ids of a Pipeline with this number of tokens. Some files leave out ids.
func MaxIDs(tokens int) int { return 2*tokens + 1<<16 }

// MaxEntries is the maximum number of tokens and of merges of a model. A tokenizer has at most MaxAddedTokens added
// tokens.
const MaxEntries, MaxAddedTokens = 1 << 20, 1 << 17

// MaxTokenBytes is the maximum length of a token's spelling in bytes: the time to encode a text grows with it.
const MaxTokenBytes = 1 << 11

// MaxAffixBytes is the maximum length of what marks the first or last part of a word, in bytes.
const MaxAffixBytes = 1 << 6

// MaxSpecialTokens is the maximum number of special tokens that a template adds.
const MaxSpecialTokens = 1 << 10

// maxParts is the maximum number of parts that a normalizer, pre_tokenizer, post_processor or decoder is made of.
const maxParts = 20

// CheckPart returns an error if a part of a tokenizer.json is too large, is nested too deep, or has too many parts.
func CheckPart(part json.RawMessage) error {
	const size = 2 << 20
	if len(part) > size {
		return fmt.Errorf("it must have at most %d bytes, got %d", size, len(part))
	}
	var value any
	if part != nil {
		if err := json.Unmarshal(part, &value); err != nil {
			return err
		}
	}
	n, err := countParts(value, 0)
	if err == nil && n > maxParts {
		err = fmt.Errorf("it must have at most %d parts, got %d", maxParts, n)
	}
	return err
}

// countParts returns the number of parts in a value, without the sequences around them. The argument level is the
// number of objects and arrays around the value.
func countParts(value any, level int) (int, error) {
	const levels = 8 // a Sequence in a Sequence
	if level > levels {
		return 0, fmt.Errorf("it is nested more than %d levels deep", levels)
	}
	total := 0
	add := func(inner any) error {
		n, err := countParts(inner, level+1)
		total += n
		return err
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if err := add(element); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		if typ, ok := value["type"]; ok && typ != "Sequence" {
			total++
		}
		for _, member := range value {
			if err := add(member); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// CheckLengths returns an error if a token is too long to be searched for.
func CheckLengths(tokens []string) error {
	for id, token := range tokens {
		if len(token) > MaxTokenBytes {
			return fmt.Errorf("tokens of the vocab must have at most %d bytes, got %d for token %d", MaxTokenBytes, len(token), id)
		}
	}
	return nil
}
