package tokenizer

import (
	"encoding/json"
	"fmt"
)

// The limits in this file bound the time and memory that a tokenizer.json and its texts take. Published files are far
// below all of them.

// mostIDs returns the greatest number of ids of a Pipeline with this number of tokens. Some files leave out ids.
func mostIDs(tokens int) int { return min(8*tokens+1<<16, 1<<24) }

// longestToken is the maximum length of a token's spelling in bytes: the time to encode a text grows with it.
const longestToken = 1 << 11

// mostAdded is the maximum number of special tokens that a template adds.
const mostAdded = 1 << 10

// checkPart returns an error if a part of a tokenizer.json is too large or nested too deep, or if its replacements
// could make a text too long.
func checkPart(part json.RawMessage) error {
	const size, factor = 2 << 20, 4096
	if len(part) > size {
		return fmt.Errorf("it must have at most %d bytes, got %d", size, len(part))
	}
	var value any
	if part != nil {
		if err := json.Unmarshal(part, &value); err != nil {
			return err
		}
	}
	n, err := growth(value, 0)
	if err == nil && n > factor {
		err = fmt.Errorf("its replacements could make a text more than %d times longer", factor)
	}
	return err
}

// growth returns the factor by which the replacements in a part can make a text longer. The argument level is the
// number of objects and arrays around it.
func growth(part any, level int) (float64, error) {
	const levels = 8 // a Sequence in a Sequence
	if level > levels {
		return 0, fmt.Errorf("it is nested more than %d levels deep", levels)
	}
	factor := 1.0
	inside := func(part any) error {
		n, err := growth(part, level+1)
		factor *= n
		return err
	}
	switch part := part.(type) {
	case []any:
		for _, one := range part {
			if err := inside(one); err != nil {
				return 0, err
			}
		}
	case map[string]any:
		for key, one := range part {
			if s, ok := one.(string); ok && (key == "content" || key == "prepend") {
				factor *= float64(max(1, len(s)))
			} else if err := inside(one); err != nil {
				return 0, err
			}
		}
	}
	return factor, nil
}

// mostParts is the maximum number of parts of a sequence.
const mostParts = 20

// sequenceOf makes the parts of a sequence. It leaves out null.
func sequenceOf[T comparable](parts []json.RawMessage, parse func(json.RawMessage) (T, error)) ([]T, error) {
	if len(parts) > mostParts {
		return nil, fmt.Errorf("a Sequence must have at most %d parts, got %d", mostParts, len(parts))
	}
	var none T
	var all []T
	for i, part := range parts {
		one, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("its part %d (from 0): %w", i, err)
		}
		if one != none {
			all = append(all, one)
		}
	}
	return all, nil
}
