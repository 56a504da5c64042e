package layers

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/internal/ops"
)

// ForwardCached lets new tokens, x of shape (B, T, Dim), attend to themselves and to those that the Build's Cache
// holds of their sequences, whose keys and values it holds too: the output is what Forward would return for these
// tokens if it were given the whole sequences. Positions, those of the mask included, count from the start of a
// sequence, and the keys are the Cache's: the mask meets scores of shape (B, H, T, Capacity). Attention is causal
// whatever the mask says, and the mask must have no offset. Without a batch axis, x counts as a batch of 1. It has no
// gradient.
func (a *MultiHeadAttention) ForwardCached(b *Build, x *G.Node, m Mask) (*G.Node, error) {
	fail := func(err error) (*G.Node, error) { return nil, fmt.Errorf("%s: %w", a.name, err) }
	if err := b.cached(); err != nil {
		return fail(err)
	}
	if b.Positions != nil {
		return fail(errTwoPositions)
	}
	if m.Offset != 0 || m.Offsets != nil {
		return fail(errors.New("the mask of cached attention can't have an offset: the cache decides where the tokens are"))
	}
	if err := checkSequence(a.name, "the input", x, a.Query.Weight.Value.Dtype(), a.Query.Weight.Value.Shape()[1]); err != nil {
		return nil, err
	}
	positions, err := b.Cache.positions(b, x.Graph(), x.Shape()[:x.Dims()-1])
	if err != nil {
		return fail(err)
	}
	q, err := a.queries(b, x, positions)
	if err != nil {
		return nil, err
	}
	k, v, err := a.keysAndValues(b, x, x, positions)
	if err != nil {
		return nil, err
	}
	if k, err = b.Cache.append(b, a.scope+".keys", a.Key.Weight, k); err != nil { // (B, T, G·K) -> (B, Max, G·K)
		return fail(err)
	}
	if v, err = b.Cache.append(b, a.scope+".values", a.Value.Weight, v); err != nil {
		return fail(err)
	}
	m.Causal = true
	if m.Offsets, err = b.Cache.lengthsNode(x.Graph()); err != nil {
		return fail(err)
	}
	if m, err = a.mask(b, q, k, positions, m); err != nil {
		return nil, err
	}
	return a.attend(b, q, k, v, m)
}

// ForwardMemory attends to memory, of shape (B, S, KeyInput), such as an encoder's output, whose keys and values
// are kept in the Build's Cache. In a graph in which memory is nil, those that were kept last are attended to: a graph
// that is given a memory of that length must have been built before, and run before this one runs. The mask's positions
// are those of the queries in their sequences, and of the keys in the memory, an Offset between the two added; it must
// have no Offsets. It has no gradient.
func (a *MultiHeadAttention) ForwardMemory(b *Build, query, memory *G.Node, m Mask) (*G.Node, error) {
	fail := func(err error) (*G.Node, error) { return nil, fmt.Errorf("%s: %w", a.name, err) }
	if err := b.cached(); err != nil {
		return fail(err)
	}
	if m.Offsets != nil {
		return fail(errors.New("the mask of cached attention can't have Offsets: the cache decides where the tokens are"))
	}
	if a.Positions != nil {
		return fail(errors.New("attention to a memory can't have Positions, which are those of one sequence"))
	}
	q, err := a.queries(b, query, nil)
	if err != nil {
		return nil, err
	}
	if m.Causal || m.Window != nil || m.Slopes != nil { // it compares positions
		lengths, err := b.Cache.lengthsNode(query.Graph())
		if err != nil {
			return fail(err)
		}
		if m.Offsets, err = ops.AddInt(b.Env(), lengths, m.Offset); err != nil {
			return fail(err)
		}
		m.Offset = 0
	}
	var k, v *G.Node
	keys, values := a.scope+".memory.keys", a.scope+".memory.values"
	if memory == nil {
		if k, err = b.Cache.kept(b, keys, a.Key.Weight, query.Graph(), query.Dims()); err != nil {
			return fail(err)
		}
		if v, err = b.Cache.kept(b, values, a.Value.Weight, query.Graph(), query.Dims()); err != nil {
			return fail(err)
		}
		return a.attend(b, q, k, v, m)
	}
	if k, v, err = a.keysAndValues(b, memory, memory, nil); err != nil {
		return nil, err
	}
	if k, err = b.Cache.keep(b, keys, a.Key.Weight, k); err != nil {
		return fail(err)
	}
	if v, err = b.Cache.keep(b, values, a.Value.Weight, v); err != nil {
		return fail(err)
	}
	return a.attend(b, q, k, v, m)
}

// cached checks that a Build is one for attention with a Cache.
func (b *Build) cached() error {
	if b.Cache == nil {
		return errNoCache
	}
	if b.Mode == Training {
		return errCachedTraining
	}
	return nil
}

var (
	errNoCache        = errors.New("the Build has no Cache")
	errCachedTraining = errors.New("a graph with a Cache must be one for evaluation: what is cached has no gradient")
	errTwoPositions   = errors.New("the Build can't have both Positions and a Cache, which knows where its tokens are")
)
