package decode

import (
	"cmp"
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// A Config describes a Session.
type Config struct {
	Batch int // number of sequences, B; 1 if 0

	// Capacity is the largest number of tokens in a sequence. If the model's positions have a limit, like learned
	// positions, 0 means this limit, and a higher Capacity is lowered to this limit.
	Capacity int

	// Mask is the mask used with the model in training, such as a Window. It can't contain nodes, because nodes belong
	// to one graph, and it can't have an Offset.
	Mask layers.Mask

	Cores int // the largest number of processors that one op uses; 0 means GOMAXPROCS
}

// A Session is a Model that runs a layers.Decoder. It keeps the keys and values of earlier tokens, so that a step
// computes keys and values only for the new tokens.
//
// A Session has its own graphs and only reads the model's weights. Several sessions may run the same model at the same
// time, each in its own goroutine, but not while a solver or another function changes the weights. If the weights
// change, call Reset, because the Session's keys and values were computed with the old weights. Make one with New.
type Session struct {
	cache    *layers.Cache
	capacity int             // capacity of the cache
	buffers  *layers.Buffers // shared by all graphs, which run in turn
	cores    int
	vocab    int
	forward  forward

	single  *graph   // for steps with one token per sequence; nil once the session is closed
	prompts []*graph // for longer steps, one for each length; the most recently used graph comes first

	counts []int // number of tokens for each sequence in a step
	values []float64
	logits [][]float64 // the result of Step: rows of values
}

// maxPrompts is the largest number of graphs kept for steps with several tokens per sequence. Building a graph takes
// time, and keeping it takes memory.
const maxPrompts = 3

var errClosed = errors.New("the session is closed: make a new session")

// New makes a Session with empty sequences. It returns an error if
//   - Capacity is negative, or 0 and the model's positions have no limit,
//   - the machine has too little memory,
//   - the model's number of outputs differs from its number of tokens, or
//   - the model can't be built with the Mask.
//
// Close the Session to free its graphs.
func New(d *layers.Decoder, c Config) (*Session, error) {
	if d.Embedding == nil {
		return nil, errors.New("decode: the decoder has no vocabulary and can't generate tokens: make it with a Vocab")
	}
	if len(d.Blocks) > 0 && d.Blocks[0].Cross != nil {
		return nil, errors.New("decode: the decoder attends to an encoder's output: call NewSeq2Seq with its EncoderDecoder")
	}
	if err := checkMask("Mask", c.Mask); err != nil {
		return nil, err
	}
	capacity, err := longest("Capacity", c.Capacity, d.Positions)
	if err != nil {
		return nil, err
	}
	s, err := newSession(d, cmp.Or(c.Batch, 1), capacity, c.Cores, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		return d.Next(b, tokens, c.Mask)
	})
	if err != nil {
		return nil, err
	}
	if s.single, err = s.newGraph(1, s.forward); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// newSession makes a Session without graphs.
func newSession(d *layers.Decoder, batch, capacity, cores int, forward forward) (*Session, error) {
	cache, err := layers.NewCache(batch, capacity)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	vocab := d.Embedding.Weight.Value.Shape()[0]
	if err := memory.Check(memory.Product(batch, vocab, 8)); err != nil {
		return nil, fmt.Errorf("decode: logits for %d sequences and %d tokens: %w", batch, vocab, err)
	}
	return &Session{
		cache: cache, capacity: capacity, buffers: &layers.Buffers{}, cores: cores, vocab: vocab, forward: forward,
		counts: make([]int, batch), values: make([]float64, batch*vocab), logits: make([][]float64, batch),
	}, nil
}

// longest returns the largest number of tokens in a sequence: the configured number, but at most the limit of the
// positions. The argument asked is the configured number; 0 means the limit.
func longest(option string, asked int, positions layers.Positions) (int, error) {
	maxLen := positions.MaxLen() // 0 for no limit
	switch {
	case asked < 1 && maxLen == 0:
		return 0, fmt.Errorf("decode: %s must be at least 1, because the model's positions have no limit, got %d", option, asked)
	case asked < 0:
		return 0, fmt.Errorf("decode: %s must be at least 0, got %d", option, asked)
	case asked == 0 || maxLen == 0:
		return max(asked, maxLen), nil
	}
	return min(asked, maxLen), nil
}

// checkMask returns an error if a mask can't be used in several graphs.
func checkMask(option string, m layers.Mask) error {
	if m.Offsets != nil || m.KeyLengths != nil || m.Allow != nil || m.Bias != nil {
		return fmt.Errorf("decode: %s can't contain nodes, because they belong to one graph: leave Offsets, KeyLengths, Allow and Bias nil", option)
	}
	if m.Offset != 0 {
		return fmt.Errorf("decode: %s can't have an Offset, because the session sets the positions, got %d", option, m.Offset)
	}
	return nil
}

// Batch returns the number of sequences, B.
func (s *Session) Batch() int { return len(s.counts) }

// Vocab returns the number of different tokens, V.
func (s *Session) Vocab() int { return s.vocab }

// Room returns the number of tokens that still fit in a sequence, or 0 if there is no such sequence.
func (s *Session) Room(sequence int) int {
	if sequence < 0 || sequence >= s.Batch() {
		return 0
	}
	return s.capacity - s.cache.Lengths()[sequence]
}

// Step appends tokens to the sequences and returns the logits of the next tokens; see Model. All steps with one token
// per sequence share a graph. In a longer step, rows are padded to the longest row. Step builds a graph for this
// length, unless it still has one from a recent step.
func (s *Session) Step(tokens [][]int) (logits [][]float64, err error) {
	defer prefix(&err)
	if s.single == nil {
		return nil, errClosed
	}
	longest, err := s.count(tokens)
	if err != nil {
		return nil, err
	}
	clear(s.logits)
	if longest == 0 {
		return s.logits, nil
	}
	g, err := s.graph(longest)
	if err != nil {
		return nil, err
	}
	for i, row := range tokens {
		padded := g.ids[i*longest:][:longest]
		clear(padded[copy(padded, row):])
	}
	if err := s.cache.Extend(s.counts...); err != nil {
		return nil, err
	}
	if err := g.run(func(v G.Value) error { return toFloat64(s.values, v) }); err != nil {
		s.cache.Cancel()
		return nil, err
	}
	s.cache.Commit()
	for i, n := range s.counts {
		if n > 0 {
			s.logits[i] = s.values[i*s.vocab:][:s.vocab:s.vocab]
		}
	}
	return s.logits, nil
}

// count checks the tokens of a step, sets counts, and returns the length of the longest row.
func (s *Session) count(tokens [][]int) (longest int, err error) {
	if len(tokens) != s.Batch() {
		return 0, fmt.Errorf("%d sequences need one row of tokens each, got %d rows", s.Batch(), len(tokens))
	}
	lengths := s.cache.Lengths()
	for i, row := range tokens {
		if room := s.capacity - lengths[i]; len(row) > room {
			return 0, noRoom(i, room, len(row))
		}
		if err := checkTokens(row, s.vocab); err != nil {
			return 0, fmt.Errorf("sequence %d: %w", i, err)
		}
		s.counts[i] = len(row)
		longest = max(longest, len(row))
	}
	return longest, nil
}

// graph returns the graph for steps with the given number of tokens per sequence.
func (s *Session) graph(tokens int) (*graph, error) {
	if tokens == 1 {
		return s.single, nil
	}
	for i, g := range s.prompts {
		if g.tokens == tokens {
			copy(s.prompts[1:], s.prompts[:i])
			s.prompts[0] = g
			return g, nil
		}
	}
	g, err := s.newGraph(tokens, s.forward)
	if err != nil {
		return nil, err
	}
	if len(s.prompts) == maxPrompts {
		s.prompts[maxPrompts-1].close()
		s.prompts = s.prompts[:maxPrompts-1]
	}
	s.prompts = append([]*graph{g}, s.prompts...)
	return g, nil
}

// Reorder replaces every sequence i by a copy of the old sequence parents[i]; see Model.
func (s *Session) Reorder(parents []int) (err error) {
	defer prefix(&err)
	return s.cache.Reorder(parents...)
}

// Forget empties a sequence. It returns an error if there is no such sequence.
func (s *Session) Forget(sequence int) (err error) {
	defer prefix(&err)
	if sequence < 0 || sequence >= s.Batch() {
		return fmt.Errorf("the sequence to forget must be from 0 to %d, got %d", s.Batch()-1, sequence)
	}
	lengths := s.cache.Lengths()
	lengths[sequence] = 0
	return s.cache.Truncate(lengths...)
}

// Reset empties all sequences.
func (s *Session) Reset() { s.cache.Reset() }

// Close frees the session's graphs. After Close, Step returns an error. You may call Close more than once; it always
// returns nil.
func (s *Session) Close() error {
	if s.single != nil {
		s.single.close()
	}
	for _, g := range s.prompts {
		g.close()
	}
	s.single, s.prompts, s.buffers = nil, nil, nil
	return nil
}
