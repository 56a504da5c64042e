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

	// Capacity is how many tokens each sequence can have. If the model's positions have a limit, as learned ones do, a
	// Capacity of 0 means that limit, and a Capacity above it is lowered to it.
	Capacity int

	// Mask is the mask that the model's Forward was given in training, such as a Window. It can't hold nodes, as these
	// belong to one graph, and it can't have an Offset.
	Mask layers.Mask

	Cores int // the most processors that an op's work is spread over, as layers.Build has it; all if 0
}

// A Session is a Model whose logits are those of a layers.Decoder. It keeps the keys and values of its sequences'
// tokens, so that a step computes those of its new tokens alone.
//
// A Session has graphs of its own over the model's weights, which it only reads. Any number of sessions over one model
// may run at the same time, each in its own goroutine, but not while the weights are written, as a solver does. The
// keys and values that a Session keeps were made with the weights of that time: Reset it after the weights change.
// Make one with New.
type Session struct {
	cache    *layers.Cache
	capacity int             // of the cache: tokens of a sequence
	buffers  *layers.Buffers // of all graphs, which run in turn
	cores    int
	vocab    int
	forward  forward

	single  *graph   // for steps of one token a sequence; nil once the session is closed
	prompts []*graph // for longer steps, one for each length of the longest row; the one used last comes first

	counts []int // how many tokens each sequence gets in a step
	values []float64
	logits [][]float64 // what Step returns: rows of values
}

// maxPrompts is how many graphs for steps of several tokens are kept. Building one takes time, and keeping it memory.
const maxPrompts = 3

var errClosed = errors.New("the session is closed: make another one")

// New makes a Session of empty sequences. It is an error if the Capacity is negative, or 0 for a model whose positions
// have no limit; if the machine hasn't the memory; if the model doesn't predict its own tokens; or if it can't be
// applied under the Mask.
//
// Close the Session to free its graphs.
func New(d *layers.Decoder, c Config) (*Session, error) {
	if d.Embedding == nil {
		return nil, errors.New("decode: the decoder has no vocabulary, and so no tokens to write: make it with a Vocab")
	}
	if len(d.Blocks) > 0 && d.Blocks[0].Cross != nil {
		return nil, errors.New("decode: the decoder attends to an encoder's output: make a Seq2Seq of its EncoderDecoder, with NewSeq2Seq")
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
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// newSession makes a Session that has no graphs yet.
func newSession(d *layers.Decoder, batch, capacity, cores int, forward forward) (*Session, error) {
	cache, err := layers.NewCache(batch, capacity)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	vocab := d.Embedding.Weight.Value.Shape()[0]
	if err := memory.Check(memory.Product(batch, vocab, 8)); err != nil {
		return nil, fmt.Errorf("decode: logits of %d sequences, each of %d tokens: %w", batch, vocab, err)
	}
	return &Session{
		cache: cache, capacity: capacity, buffers: &layers.Buffers{}, cores: cores, vocab: vocab, forward: forward,
		counts: make([]int, batch), values: make([]float64, batch*vocab), logits: make([][]float64, batch),
	}, nil
}

// open builds the graph for steps of one token, which the session has until it is closed.
func (s *Session) open() (err error) {
	s.single, err = s.newGraph(1, s.forward)
	return err
}

// longest returns how many tokens a sequence can have if the option asks for so many, or for 0.
func longest(option string, asked int, positions layers.Positions) (int, error) {
	most := positions.MaxLen() // 0 for no limit
	if asked < 0 || asked == 0 && most == 0 {
		return 0, fmt.Errorf("decode: %s must be at least 1, as the model has no learned positions that limit it, got %d", option, asked)
	}
	if asked == 0 || most == 0 {
		return max(asked, most), nil
	}
	return min(asked, most), nil
}

// checkMask checks that a mask can be used in many graphs.
func checkMask(option string, m layers.Mask) error {
	if m.Offsets != nil || m.KeyLengths != nil || m.Allow != nil || m.Bias != nil {
		return fmt.Errorf("decode: %s can't hold nodes, as they belong to one graph: leave Offsets, KeyLengths, Allow and Bias nil", option)
	}
	if m.Offset != 0 {
		return fmt.Errorf("decode: %s can't have an Offset, as the session knows where its tokens are, got %d", option, m.Offset)
	}
	return nil
}

// Batch returns the number of sequences, B.
func (s *Session) Batch() int { return len(s.counts) }

// Vocab returns the number of different tokens, V.
func (s *Session) Vocab() int { return s.vocab }

// Room returns how many more tokens a sequence can take: 0 if there is no such sequence.
func (s *Session) Room(sequence int) int {
	if sequence < 0 || sequence >= s.Batch() {
		return 0
	}
	return s.capacity - s.cache.Lengths()[sequence]
}

// Step appends tokens to the sequences and returns the logits of what follows: see Model. Steps of one token a sequence
// share a graph. Other steps are padded to their longest row. A graph is built for the length of that row, unless one
// of the last few such steps had the same length.
func (s *Session) Step(tokens [][]int) ([][]float64, error) {
	logits, err := s.step(tokens)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return logits, nil
}

// step is Step without the package's name in front of its errors.
func (s *Session) step(tokens [][]int) ([][]float64, error) {
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

// count checks the tokens of a step and sets counts. It returns the length of the longest row.
func (s *Session) count(tokens [][]int) (longest int, err error) {
	if len(tokens) != s.Batch() {
		return 0, fmt.Errorf("there must be a row of tokens for each of %d sequences, got %d", s.Batch(), len(tokens))
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

// graph returns the graph for steps of so many tokens.
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

// Reorder makes sequence i a copy of what sequence parents[i] was: see Model.
func (s *Session) Reorder(parents []int) error {
	if err := s.cache.Reorder(parents...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// Forget empties a sequence. It is an error if there is no such sequence.
func (s *Session) Forget(sequence int) error {
	if sequence < 0 || sequence >= s.Batch() {
		return fmt.Errorf("decode: a sequence must be from 0 to %d, got %d", s.Batch()-1, sequence)
	}
	lengths := s.cache.Lengths()
	lengths[sequence] = 0
	if err := s.cache.Truncate(lengths...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// Reset empties all sequences.
func (s *Session) Reset() { s.cache.Reset() }

// Close frees the session's graphs. Steps are errors from then on. It may be called again, and always returns nil.
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
