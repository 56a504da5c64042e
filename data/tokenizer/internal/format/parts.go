package format

import (
	"encoding/json"
	"fmt"
)

// The limits below bound the time and memory that a tokenizer.json and its texts take. Published files stay far below
// all of them.

// MaxIDs returns the maximum number of ids of a tokenizer with this number of tokens. Some files leave out ids.
func MaxIDs(tokens int) int { return 2*tokens + 1<<16 }

// MaxEntries is the maximum number of tokens of a model, and of its merges.
const MaxEntries = 1 << 20

// MaxAddedTokens is the maximum number of added tokens of a tokenizer.
const MaxAddedTokens = 1 << 17

// MaxTokenBytes is the maximum length of a token's spelling in bytes. The time to encode a text grows with this length.
const MaxTokenBytes = 1 << 11

// maxParts is the maximum number of parts in a normalizer, pre_tokenizer, post_processor or decoder.
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

// countParts returns the number of parts in a value. A Sequence itself doesn't count as a part. The argument level is
// the number of objects and arrays around the value.
func countParts(value any, level int) (int, error) {
	const levels = 8 // enough for a Sequence in a Sequence
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

// CheckLengths returns an error if a token is longer than MaxTokenBytes.
func CheckLengths(tokens []string) error {
	for id, token := range tokens {
		if len(token) > MaxTokenBytes {
			return fmt.Errorf("tokens of the vocab must have at most %d bytes, got %d for token %d", MaxTokenBytes, len(token), id)
		}
	}
	return nil
}

// TypeOf returns the "type" of a part of a tokenizer.json, or "" if the part is missing or null.
func TypeOf(part json.RawMessage) (string, error) {
	if len(part) == 0 || string(part) == "null" {
		return "", nil
	}
	var typed struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(part, &typed); err != nil || typed.Type == nil || *typed.Type == "" {
		return "", fmt.Errorf("expected an object with a type, got %.200s", part)
	}
	return *typed.Type, nil
}

// Unsupported is the error for an unknown type of a part.
func Unsupported(typ string) error { return fmt.Errorf("the type %.100q isn't supported", typ) }

// Sequence makes the parts of a Sequence. It leaves out parts that are null.
func Sequence[T comparable](parts []json.RawMessage, parse func(json.RawMessage) (T, error)) ([]T, error) {
	var null T
	var made []T
	for i, part := range parts {
		one, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("its part %d (from 0): %w", i, err)
		}
		if one != null {
			made = append(made, one)
		}
	}
	return made, nil
}
