package decode

import (
	"errors"
	"fmt"
	"slices"
)

// A Model holds Batch sequences, numbered from 0, and predicts the next token of each. One goroutine at a time may use
// it.
type Model interface {
	// Batch returns the number of sequences, B.
	Batch() int

	// Vocab returns the number of different tokens, V. Tokens are from 0 to V−1.
	Vocab() int

	// Room returns how many more tokens a sequence can take; math.MaxInt if there is no limit.
	Room(sequence int) int

	// Step appends tokens[i] to sequence i, for each of B sequences, and returns B rows of V logits, which predict the
	// token that follows. The rows of tokens may differ in length. A sequence whose row is empty stays as it is, and
	// its logits are nil.
	//
	// The logits are valid until the next call of Step. Step doesn't keep the tokens. More tokens than there is room
	// for are an error. After any error the sequences are as they were before.
	Step(tokens [][]int) ([][]float64, error)

	// Reorder makes sequence i a copy of what sequence parents[i] was before the call. There must be B parents; several
	// sequences may have one parent. After an error the sequences are as they were before.
	Reorder(parents []int) error
}

// A forgetter is a Model that can empty a sequence, as a Session can.
type forgetter interface {
	// Forget empties a sequence, which then has the most room that it can have. After an error the sequences are as
	// they were before.
	Forget(sequence int) error
}

// noRoom is the error of more tokens than a sequence has room for.
func noRoom(sequence, room, tokens int) error {
	return fmt.Errorf("sequence %d has room for %d more tokens, got %d: give it fewer, or make a model that holds longer sequences", sequence, room, tokens)
}

// checkModel checks the arguments of Generate and Beam, which need width sequences of the model for each prompt. The
// first of these gets the prompt.
func checkModel(m Model, prompts [][]int, width, maxTokens int, end []int) error {
	batch, vocab := m.Batch(), m.Vocab()
	if batch < 1 || vocab < 1 {
		return fmt.Errorf("decode: a model has at least 1 sequence and 1 token, got Batch %d and Vocab %d", batch, vocab)
	}
	if maxTokens < 1 {
		return fmt.Errorf("decode: MaxTokens must be at least 1, got %d", maxTokens)
	}
	for _, id := range end {
		if id < 0 || id >= vocab {
			return fmt.Errorf("decode: an end token must be one of the model's, 0 to %d, got %d; leave End empty for none", vocab-1, id)
		}
	}
	if len(prompts) == 0 {
		return errors.New("decode: there must be at least one prompt, got none")
	}
	if len(prompts) > batch/width {
		return fmt.Errorf("decode: %d prompts of %d sequences each need a model with a Batch of at least that many, got %d", len(prompts), width, batch)
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
		return errors.New("it must hold at least one token, such as a start token, got none")
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
		return fmt.Errorf("its token at position %d must be one of the model's, 0 to %d, got %d", i, vocab-1, tokens[i])
	}
	return nil
}

// step calls the model's Step and checks the shape of the logits.
func step(m Model, tokens [][]int) ([][]float64, error) {
	logits, err := m.Step(tokens)
	if err != nil {
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
