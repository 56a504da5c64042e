package decode

import (
	"errors"
	"fmt"
	"slices"
)

// A Model holds a batch of sequences, numbered from 0, and predicts the next token of each. A Model needn't be safe for
// use by several goroutines.
type Model interface {
	// Batch returns the number of sequences, B.
	Batch() int

	// Vocab returns the number of different tokens, V. Token ids are 0 to V−1.
	Vocab() int

	// Room returns the number of tokens that still fit in a sequence, or math.MaxInt if there is no limit.
	Room(sequence int) int

	// Step appends tokens[i] to sequence i, for each of the B sequences, and returns B rows of V logits for the next
	// tokens. The rows of tokens may have different lengths. An empty row leaves its sequence unchanged, and the row of
	// logits for this sequence is nil.
	//
	// The logits are valid until the next call of Step. Step doesn't keep the tokens. It returns an error if a sequence
	// has no room for its tokens. After any error the sequences are unchanged.
	Step(tokens [][]int) ([][]float64, error)

	// Reorder replaces every sequence i by a copy of the old sequence parents[i]. There must be B parents; several
	// sequences may have the same parent. After an error the sequences are unchanged.
	Reorder(parents []int) error
}

// A forgetter is a Model that can empty a sequence. A Session is a forgetter.
type forgetter interface {
	// Forget empties a sequence, so that all its room is free again. After an error the sequences are unchanged.
	Forget(sequence int) error
}

// prefix puts "decode: " before an error.
func prefix(err *error) {
	if *err != nil {
		*err = fmt.Errorf("decode: %w", *err)
	}
}

// noRoom returns the error for a sequence that has no room for its new tokens.
func noRoom(sequence, room, tokens int) error {
	return fmt.Errorf("sequence %d has room for %d more tokens, got %d: use fewer tokens, or a model with room for longer sequences", sequence, room, tokens)
}

// checkModel checks the arguments of Generate and Beam. The argument width is the number of sequences per prompt; the
// prompt is appended to the first of them.
func checkModel(m Model, prompts [][]int, width, maxTokens int, end []int) error {
	batch, vocab := m.Batch(), m.Vocab()
	if batch < 1 || vocab < 1 {
		return fmt.Errorf("decode: the model's Batch and Vocab must be at least 1, got %d and %d", batch, vocab)
	}
	if maxTokens < 1 {
		return fmt.Errorf("decode: MaxTokens must be at least 1, got %d", maxTokens)
	}
	for _, id := range end {
		if id < 0 || id >= vocab {
			return fmt.Errorf("decode: an end token must be from 0 to %d, got %d; leave End empty for none", vocab-1, id)
		}
	}
	if len(prompts) == 0 {
		return errors.New("decode: there are no prompts: pass at least one")
	}
	if len(prompts) > batch/width {
		return fmt.Errorf("decode: the model's Batch must be at least %d prompts times %d sequences, got %d", len(prompts), width, batch)
	}
	for i, prompt := range prompts {
		if err := checkPrompt(m, i*width, prompt, vocab); err != nil {
			return fmt.Errorf("decode: prompt %d: %w", i, err)
		}
	}
	return nil
}

func checkPrompt(m Model, sequence int, prompt []int, vocab int) error {
	if len(prompt) == 0 {
		return errors.New("a prompt must have at least one token, such as a start token, got none")
	}
	if err := checkTokens(prompt, vocab); err != nil {
		return err
	}
	if room := m.Room(sequence); len(prompt) > room {
		return noRoom(sequence, room, len(prompt))
	}
	return nil
}

func checkTokens(tokens []int, vocab int) error {
	if i := slices.IndexFunc(tokens, func(id int) bool { return id < 0 || id >= vocab }); i >= 0 {
		return fmt.Errorf("the token at position %d must be from 0 to %d, got %d", i, vocab-1, tokens[i])
	}
	return nil
}

// step calls the model's Step and checks the shape of the logits.
func step(m Model, tokens [][]int) ([][]float64, error) {
	logits, err := m.Step(tokens)
	if err != nil {
		if errors.Is(err, ErrNotFinite) { // of a Session
			return nil, err
		}
		return nil, fmt.Errorf("decode: a step of the model: %w", err)
	}
	if len(logits) != len(tokens) {
		return nil, fmt.Errorf("decode: a step of the model must return %d rows of logits, one for each sequence, got %d", len(tokens), len(logits))
	}
	for i, row := range logits {
		if len(tokens[i]) > 0 && len(row) != m.Vocab() {
			return nil, fmt.Errorf("decode: a step of the model must return %d logits, one for each token, got %d for sequence %d", m.Vocab(), len(row), i)
		}
	}
	return logits, nil
}
