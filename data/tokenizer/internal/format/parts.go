package format

import (
	"encoding/json"
	"fmt"
)

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
