package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/layers"
)

// A Seq2SeqConfig describes a Seq2Seq.
type Seq2SeqConfig struct {
	Sources int // largest number of sources for Read; 1 if 0
	Width   int // number of sequences per source, such as the Width of a beam search; 1 if 0

	// SourceLen, S, is the largest number of tokens in a source. Capacity is the largest number of tokens in a target.
	// If the model's positions have a limit, like learned positions, 0 means this limit, and a higher number is lowered
	// to this limit.
	SourceLen, Capacity int

	// SourceMask is the mask used with the model in training, without KeyLengths: the Seq2Seq sets the KeyLengths to
	// the lengths of the sources. Mask limits the self-attention of targets; EncoderDecoder.Forward has no such mask.
	// Neither mask can contain nodes or have an Offset.
	SourceMask, Mask layers.Mask

	Cores int // the largest number of processors that one op uses; 0 means GOMAXPROCS

	Adapter *layers.Adapter // for the model's parameters; nil for none
}

// A Seq2Seq is a Session whose sequences are the targets of a layers.EncoderDecoder. Sequences p·Width to
// p·Width+Width−1 belong to source p. Beam numbers the sequences of prompt p in the same way.
//
// Call Read before the first step: it encodes each source once. Reorder copies a sequence together with its source.
// Reset and Forget don't change the sources. Make one with NewSeq2Seq.
type Seq2Seq struct {
	Session
	width, length int
	sourceVocab   int

	sources []int // ids of the sources, (P, S), padded
	lengths []int // lengths of the sources, (P)
	encoder *graph

	memory  *tensor.Dense // the encoder's output for every sequence, (B, S, D)
	served  []int         // length of the source of each sequence, (B)
	keeper  *graph        // computes the keys and values of the memory, and keeps them in the cache
	hasRead bool
}

// NewSeq2Seq makes a Seq2Seq that has read no source. It returns an error if
//   - a number in c is negative, or a length is 0 and the model's positions have no limit,
//   - the machine has too little memory,
//   - the model's number of outputs differs from its number of target tokens, or
//   - the model can't be built with the masks.
//
// Close the Seq2Seq to free its graphs.
func NewSeq2Seq(m *layers.EncoderDecoder, c Seq2SeqConfig) (*Seq2Seq, error) {
	if m.Encoder.Embedding == nil || m.Decoder.Embedding == nil {
		return nil, errors.New("decode: the encoder or the decoder has no vocabulary: make the encoder-decoder with a Vocab")
	}
	if c.Sources < 0 || c.Width < 0 {
		return nil, fmt.Errorf("decode: Sources and Width must be at least 1, or 0 for 1, got %d and %d", c.Sources, c.Width)
	}
	if err := errors.Join(checkMask("SourceMask", c.SourceMask), checkMask("Mask", c.Mask)); err != nil {
		return nil, err
	}
	if c.SourceMask.Causal {
		return nil, errors.New("decode: SourceMask can't be Causal, because every target position sees the whole source")
	}
	length, err := longest("SourceLen", c.SourceLen, m.Encoder.Positions)
	if err != nil {
		return nil, err
	}
	capacity, err := longest("Capacity", c.Capacity, m.Decoder.Positions)
	if err != nil {
		return nil, err
	}
	sources, width := cmp.Or(c.Sources, 1), cmp.Or(c.Width, 1)
	batch, dim := memory.Product(sources, width), m.Encoder.Embedding.Weight.Value.Shape()[1]
	if err := memory.Check(memory.Product(sources, length, 8), memory.Product(batch, length, dim, 8)); err != nil {
		return nil, fmt.Errorf("decode: %d sources of %d tokens, with %d sequences each: %w", sources, length, width, err)
	}
	s := &Seq2Seq{
		width: width, length: length, sourceVocab: m.Encoder.Embedding.Weight.Value.Shape()[0],
		sources: make([]int, sources*length), lengths: make([]int, sources), served: make([]int, batch),
	}
	next := func(b *layers.Build, tokens, memory *G.Node) (*G.Node, error) {
		b.Adapter = c.Adapter
		mask := c.SourceMask
		mask.KeyLengths = intInput(tokens.Graph(), "lengths", s.served, len(s.served))
		return m.Next(b, tokens, memory, c.Mask, mask)
	}
	session, err := newSession(m.Decoder, batch, capacity, 0, c.Cores, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		return next(b, tokens, nil)
	})
	if err != nil {
		return nil, err
	}
	s.Session = *session
	if err := s.open(m, c, next); err != nil {
		s.Close()
		return nil, fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

// open builds the graphs that the Seq2Seq keeps until it is closed.
func (s *Seq2Seq) open(m *layers.EncoderDecoder, c Seq2SeqConfig, next func(b *layers.Build, tokens, memory *G.Node) (*G.Node, error)) error {
	g, mask := G.NewGraph(), c.SourceMask
	mask.KeyLengths = intInput(g, "lengths", s.lengths, len(s.lengths))
	encoded, err := m.Encode(&layers.Build{Buffers: s.buffers, Cores: s.cores, Adapter: c.Adapter}, intInput(g, "sources", s.sources, len(s.lengths), s.length), mask) // (P, S, D)
	if err != nil {
		return err
	}
	s.encoder = &graph{}
	if err := s.encoder.compile(encoded); err != nil {
		return err
	}
	s.memory = tensor.New(tensor.Of(encoded.Dtype()), tensor.WithShape(s.Batch(), s.length, encoded.Shape()[2]))
	s.keeper, err = s.newGraph(1, func(b *layers.Build, tokens *G.Node) (*G.Node, error) {
		memory := G.NewTensor(tokens.Graph(), s.memory.Dtype(), 3, G.WithShape(s.memory.Shape()...), G.WithName("memory"), G.WithValue(s.memory))
		return next(b, tokens, memory)
	})
	if err != nil {
		return err
	}
	// The keeper must come first, because it makes the cache's memory for the sources.
	_, err = s.graph(0)
	return err
}

// Read encodes the sources, each with 0 to SourceLen tokens, and empties all targets. If there are fewer sources than
// Seq2SeqConfig.Sources, the remaining sources are empty. If a source is too long or has an unknown token, Read returns
// an error and changes nothing.
func (s *Seq2Seq) Read(sources [][]int) error {
	if len(s.graphs) == 0 {
		return fmt.Errorf("decode: %w", errClosed)
	}
	if len(sources) > len(s.lengths) {
		return fmt.Errorf("decode: there must be at most %d sources, got %d", len(s.lengths), len(sources))
	}
	for p, source := range sources {
		if len(source) > s.length {
			return fmt.Errorf("decode: source %d must have at most %d tokens, got %d", p, s.length, len(source))
		}
		if err := checkTokens(source, s.sourceVocab); err != nil {
			return fmt.Errorf("decode: source %d: %w", p, err)
		}
	}
	clear(s.sources) // padding may be any token
	clear(s.lengths)
	for p, source := range sources {
		s.lengths[p] = copy(s.sources[p*s.length:][:s.length], source)
	}
	s.hasRead = false
	if err := s.keep(); err != nil {
		return fmt.Errorf("decode: reading the sources: %w", err)
	}
	s.hasRead = true
	return nil
}

// keep encodes the sources, and stores the decoder's keys and values for them in the cache, for every sequence.
func (s *Seq2Seq) keep() error {
	err := s.encoder.run(func(encoded G.Value) error {
		repeat(s.memory, encoded, s.width)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.served {
		s.served[i] = s.lengths[i/s.width]
	}
	// The keeper also computes the logits of one token. That token isn't committed, so the cache keeps only the keys
	// and values of the memory.
	s.Reset()
	clear(s.counts)
	s.counts[0] = 1
	if err := s.cache.Extend(s.counts...); err != nil {
		return err
	}
	defer s.cache.Cancel()
	return s.keeper.run(func(G.Value) error { return nil })
}

// repeat copies the batch elements of src, of shape (P, S, D), to dst, of shape (B, S, D) and the same dtype. The
// argument times is the number of copies of each element.
func repeat(dst *tensor.Dense, src G.Value, times int) {
	from, size := src.(*tensor.Dense).Raw, len(dst.Raw)/dst.Shape()[0]
	for i := range dst.Shape()[0] {
		copy(dst.Raw[i*size:], from[i/times*size:][:size])
	}
}

// Step is like Session.Step. It returns an error if no sources have been read.
func (s *Seq2Seq) Step(tokens [][]int) ([][]float64, error) {
	if len(s.graphs) > 0 && !s.hasRead {
		return nil, errors.New("decode: no sources have been read: call Read first")
	}
	return s.Session.Step(tokens)
}

// Reorder replaces every sequence i by a copy of the old sequence parents[i], and its source by the source of that
// sequence.
func (s *Seq2Seq) Reorder(parents []int) error {
	if err := s.Session.Reorder(parents); err != nil {
		return err
	}
	served := slices.Clone(s.served)
	for i, parent := range parents {
		s.served[i] = served[parent]
	}
	return nil
}

// Close frees the graphs. After Close, Step and Read return an error. You may call Close more than once; it always
// returns nil.
func (s *Seq2Seq) Close() error {
	for _, g := range []*graph{s.encoder, s.keeper} {
		if g != nil {
			g.close()
		}
	}
	s.encoder, s.keeper = nil, nil
	return s.Session.Close()
}
