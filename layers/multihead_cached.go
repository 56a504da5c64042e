package layers

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// forwardCached computes the self-attention of new tokens, x of shape (B, T, Dim). It appends their keys and values to
// the Build's Cache, and they attend to all keys and values in the Cache. If Forward got the whole sequences, it would
// return the same output for these tokens. For the mask, see Cache. Without a batch axis, B is 1.
func (a *MultiHeadAttention) forwardCached(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	fail := func(err error) (*G.Node, error) { return nil, fmt.Errorf("%s: %w", a.name, err) }
	if err := b.cached(); err != nil {
		return fail(err)
	}
	if b.Positions != nil {
		return fail(errTwoPositions)
	}
	if m.Offset != 0 || m.Offsets != nil {
		return fail(errors.New("the mask of cached attention can't have an offset: the Cache sets the positions of the tokens"))
	}
	if err := checkSequence(a.name, "the input", x, a.Query.Weight.Value.Dtype(), a.inputWidth()); err != nil {
		return nil, err
	}
	positions, err := b.Cache.positions(b, x.Graph(), x.Shape()[:x.Dims()-1])
	if err != nil {
		return fail(err)
	}
	m.Causal = true
	if m.Offsets, _, err = b.Cache.nodes(x.Graph()); err != nil {
		return fail(err)
	}
	if a.Latent != nil {
		return a.latentCached(b, x, positions, m)
	}
	q, _, err := a.queries(b, x, positions)
	if err != nil {
		return nil, err
	}
	k, v, err := a.keysAndValues(b, x, x, positions, nil)
	if err != nil {
		return nil, err
	}
	if k, err = b.Cache.append(b, a.scope+".keys", a.Key.Weight, k); err != nil { // (B, T, G·K) -> (B, Max, G·K)
		return fail(err)
	}
	if v, err = b.Cache.append(b, a.scope+".values", a.Value.Weight, v); err != nil {
		return fail(err)
	}
	if m, err = a.mask(b, q, k, positions, m); err != nil {
		return nil, err
	}
	return a.attend(b, x, q, k, v, m)
}

// forwardMemory computes the attention of query to memory, of shape (B, S, KeyInput), such as an encoder's output. It
// keeps the keys and values of memory in the Build's Cache. If memory is nil, it uses the keys and values that the
// Cache kept last. For the mask, see Cache.
func (a *MultiHeadAttention) forwardMemory(b *Build, query, memory *G.Node, m Mask) (*G.Node, error) {
	fail := func(err error) (*G.Node, error) { return nil, fmt.Errorf("%s: %w", a.name, err) }
	if err := b.cached(); err != nil {
		return fail(err)
	}
	if m.Offsets != nil {
		return fail(errors.New("the mask of cached attention can't have Offsets: the Cache sets the positions of the tokens"))
	}
	if a.Positions != nil {
		return fail(errors.New("attention to a memory can't have Positions, because queries and keys belong to different sequences"))
	}
	q, _, err := a.queries(b, query, nil)
	if err != nil {
		return nil, err
	}
	if m.Causal || a.options.Mask.Window.and(m.Window) != nil || m.Slopes != nil { // the mask compares positions
		lengths, _, err := b.Cache.nodes(query.Graph())
		if err != nil {
			return fail(err)
		}
		if m.Offsets, err = ops.AddInt(b.Env(), lengths, m.Offset); err != nil {
			return fail(err)
		}
		m.Offset = 0
	}
	var k, v *G.Node
	if memory != nil {
		if k, v, err = a.keysAndValues(b, memory, memory, nil, nil); err != nil {
			return nil, err
		}
	}
	if k, err = b.Cache.memory(b, a.scope+".memory.keys", a.Key.Weight, k, query); err != nil {
		return fail(err)
	}
	if v, err = b.Cache.memory(b, a.scope+".memory.values", a.Value.Weight, v, query); err != nil {
		return fail(err)
	}
	return a.attend(b, query, q, k, v, m)
}

// cached returns an error if the Build has no Cache or is for training.
func (b *Build) cached() error {
	if b.Cache == nil {
		return errNoCache
	}
	if b.Training {
		return errors.New("a graph with a Cache must be for evaluation, because cached keys and values have no gradient")
	}
	return nil
}

var (
	errNoCache      = errors.New("the Build has no Cache")
	errTwoPositions = errors.New("the Build can't have both Positions and a Cache, because the Cache sets the positions")
)
