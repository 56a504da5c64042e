package layers

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/text"
)

// LowRank describes an Adapter: which Linears get a low-rank product (Hu et al., LoRA, 2021), and which parameters are
// trained whole.
type LowRank struct {
	Rank      int     `json:"rank,omitzero"`       // R, at least 1
	Alpha     float64 `json:"alpha,omitzero"`      // the product's scale s is Alpha/Rank; an Alpha of 0 means Rank
	RootScale bool    `json:"root_scale,omitzero"` // s is Alpha/√Rank instead (Kalajdzievski, 2023)
	Dropout   float64 `json:"dropout,omitzero"`    // dropout rate of the product's input, in training

	// Targets names the scopes of the Linears that get a product, in full, such as blocks.0, or by a part that several
	// have, such as query or attention.output. With no Targets, all Linears get one except those named head.
	Targets []string `json:"targets,omitzero"`

	// Whole names scopes and parameters like Targets. Their parameters are trained, and they get no product.
	Whole []string `json:"whole,omitzero"`

	// Joint lists groups of Linears that share one A, by the last parts of their scopes, such as query, key and value.
	// Published models that store these weights as one matrix need it. A target in a group stands for the whole group.
	Joint [][]string `json:"joint,omitzero"`
}

// An Adapter holds the parameters that are trained while the parameters of a model, its base, keep their values. With
// Build.Adapter, a Linear that is a target computes
//
//	y = act(x·Wᵀ + b + s·drop(x)·Aᵀ·Bᵀ)
//
// where only A and B are trained. Linears with the same input share one dropout mask. Parameters in Whole are replaced
// by the Adapter's own. Make one with NewAdapter.
type Adapter struct {
	Config LowRank

	// Params holds A of shape (Rank, In) and B of shape (Out, Rank) of each target as SCOPE.lora_a and SCOPE.lora_b,
	// and the parameters in Whole under their names in the base. The A of a group in Joint has a name such as
	// blocks.0.attention.query+key+value.lora_a.
	Params *Params
}

// NewAdapter makes an Adapter for the model with the parameters base. Each A is drawn from U(−1/√In, 1/√In) and each B
// is 0, so that the model computes the same as without the Adapter. The parameters in Whole begin as copies. NewAdapter
// returns an error if a setting is invalid, or if base has no target or no parameter of one of the names.
func NewAdapter(base *Params, c LowRank, seed uint64) (*Adapter, error) {
	p, err := NewParams(base.dtype, seed)
	if err := cmp.Or(err, c.check()); err != nil {
		return nil, fmt.Errorf("adapter: %w", err)
	}
	c.Alpha = cmp.Or(c.Alpha, float64(c.Rank))
	a, matched, linears := &Adapter{c, p}, map[string]bool{}, []string{}
	tests := map[string]func(scope string) bool{}
	for _, name := range slices.Concat(c.Targets, c.Whole) {
		tests[name] = base.within(name)
	}
	// match reports whether one of the scopes belongs to one of the names.
	match := func(names []string, scopes ...string) (found bool) {
		for _, name := range names {
			if slices.ContainsFunc(scopes, tests[name]) {
				matched[name], found = true, true
			}
		}
		return found
	}
	for _, q := range base.All() {
		scope, targeted := scopeOf(q), false
		if q.linear {
			linears = append(linears, lastOf(scope))
			members, _ := c.group(scope)
			targeted = match(c.Targets, members...) || len(c.Targets) == 0 && lastOf(scope) != "head"
		}
		if match(c.Whole, q.Name) {
			err = a.copy(q)
		} else if targeted {
			err = a.add(scope, q.Value.Shape())
		}
		if err != nil {
			return nil, fmt.Errorf("adapter: %w", err)
		}
	}
	slices.Sort(linears)
	linears = slices.Compact(linears)
	for _, name := range slices.Concat(c.Targets, c.Whole) {
		if !matched[name] {
			return nil, fmt.Errorf("adapter: no layer is named %.100q: Targets can be %s or their full scopes, and Whole any scope%s",
				name, strings.Join(linears, ", "), text.DidYouMean(name, linears))
		}
	}
	if len(p.All()) == 0 {
		return nil, errors.New("adapter: the model has no Linear besides heads: name layers in Targets or Whole")
	}
	return a, nil
}

// check checks the numbers.
func (c LowRank) check() error {
	switch {
	case c.Rank < 1:
		return fmt.Errorf("the Rank must be at least 1, got %d: set it, for example to 8", c.Rank)
	case !(math.Abs(c.Alpha) <= ops.Largest):
		return fmt.Errorf("the Alpha must be at most %v in size, got %v", ops.Largest, c.Alpha)
	}
	return ops.CheckRate("the low-rank product", c.Dropout)
}

// within returns a function that reports whether a scope or a parameter belongs to the scope with the given full name
// or, if the set has no such scope, to one that has the name as a part.
func (p *Params) within(name string) func(scope string) bool {
	full := func(scope string) bool { return strings.HasPrefix(scope+".", name+".") }
	if slices.ContainsFunc(p.All(), func(q *Param) bool { return full(q.Name) }) {
		return full
	}
	return func(scope string) bool { return strings.Contains("."+scope+".", "."+name+".") }
}

// copy adds a parameter in Whole.
func (a *Adapter) copy(q *Param) error {
	own, err := a.Params.Blank().New(q.Name, Init{}, q.Value.Shape()...)
	if err == nil {
		own.Value, own.blank = q.Value.Clone().(*tensor.Dense), q.blank
	}
	return err
}

// add adds the A, unless its group has it already, and the B of a target with a weight of the given shape, (Out, In).
func (a *Adapter) add(scope string, shape tensor.Shape) error {
	_, shared := a.Config.group(scope)
	first, err := a.Params.Get(shared+".lora_a"), error(nil)
	if first == nil {
		first, err = a.Params.New(shared+".lora_a", Uniform(1/math.Sqrt(float64(shape[1]))), a.Config.Rank, shape[1])
	}
	if err != nil {
		return err
	}
	if n := first.Value.Shape()[1]; n != shape[1] {
		return fmt.Errorf("layers in Joint must have inputs of the same width, got %d before and %d for %s", n, shape[1], scope)
	}
	_, err = a.Params.New(scope+".lora_b", Zeros(), shape[0], a.Config.Rank)
	return err
}

// scopeOf returns the scope of a Linear with the given weight.
func scopeOf(weight *Param) string { return strings.TrimSuffix(weight.Name, ".weight") }

// lastOf returns the last part of a scope.
func lastOf(scope string) string { return scope[strings.LastIndexByte(scope, '.')+1:] }

// group returns the scopes of the Linears that share their A with the Linear of the given scope, and the scope of A.
func (c LowRank) group(scope string) (members []string, shared string) {
	last := lastOf(scope)
	parent := strings.TrimSuffix(scope, last)
	for _, names := range c.Joint {
		if slices.Contains(names, last) {
			for _, name := range names {
				members = append(members, parent+name)
			}
			return members, parent + strings.Join(names, "+")
		}
	}
	return []string{scope}, scope
}

// scale returns the scale of the products, s.
func (c LowRank) scale() float64 {
	if c.RootScale {
		return c.Alpha / math.Sqrt(float64(c.Rank))
	}
	return c.Alpha / float64(c.Rank)
}

// pair returns A and B for the Linear with the given weight, or nils if it isn't a target or a is nil.
func (a *Adapter) pair(weight *Param) (first, second *Param) {
	if a == nil || !weight.linear {
		return nil, nil
	}
	scope := scopeOf(weight)
	_, shared := a.Config.group(scope)
	return a.Params.Get(shared + ".lora_a"), a.Params.Get(scope + ".lora_b")
}

// lowRank returns drop(x)·Aᵀ, of shape (…, Rank), with B and s for the Linear with the given weight, or nils if the
// Build's Adapter has none for it.
func (b *Build) lowRank(x *G.Node, weight *Param) (u, v *G.Node, scale float64, err error) {
	first, second := b.Adapter.pair(weight)
	if second == nil {
		return nil, nil, 0, nil
	}
	dropped := b.dropped[x]
	if dropped == nil {
		if dropped, err = ops.Dropout(b.Env(), x, b.Adapter.Config.Dropout); err != nil {
			return nil, nil, 0, err
		}
		if b.dropped == nil {
			b.dropped = map[*G.Node]*G.Node{}
		}
		b.dropped[x] = dropped
	}
	w, err := b.Bind(x.Graph(), first)
	if err == nil {
		u, err = ops.Linear(b.Env(), dropped, w, nil, ops.Identity)
	}
	if err == nil {
		v, err = b.Bind(x.Graph(), second)
	}
	return u, v, b.Adapter.Config.scale(), err
}

// Merge adds s·B·A to the weights of the targets and copies the parameters in Whole, so that the model computes the
// same without the Adapter, up to rounding. It returns an error and changes nothing if base lacks one of them.
func (a *Adapter) Merge(base *Params) error {
	defer base.set.forgetPanels()
	return ops.ByDtype(base, merge[float32], merge[float64])(a, base)
}

func merge[T float32 | float64](a *Adapter, base *Params) error {
	var changes []func()
	values := func(q *Param, shape ...int) (values []T, err error) {
		if values, err = valuesOf[T](q); err == nil && !slices.Equal(q.Value.Shape(), shape) {
			err = fmt.Errorf("%q must have shape %v, got %v", q.Name, tensor.Shape(shape), q.Value.Shape())
		}
		return values, err
	}
	placed := map[*Param]bool{}
	for _, q := range base.All() {
		whole := a.Params.Get(q.Name)
		first, second := a.pair(q)
		if whole == nil && second == nil {
			continue
		}
		placed[whole], placed[first], placed[second] = true, true, true
		shape, rank := q.Value.Shape(), a.Config.Rank
		ours, err := values(q, shape...)
		if err == nil && whole != nil {
			var own []T
			own, err = values(whole, shape...)
			changes = append(changes, func() { copy(ours, own) })
		} else if err == nil {
			var x, y []T
			if x, err = values(first, rank, shape[1]); err == nil {
				y, err = values(second, shape[0], rank)
			}
			changes = append(changes, func() {
				kernel.Gemm(0, false, false, shape[0], shape[1], rank, T(a.Config.scale()), y, rank, x, shape[1], 1, ours, shape[1])
			})
		}
		if err != nil {
			return fmt.Errorf("the adapter doesn't fit the model: %w", err)
		}
	}
	for _, q := range a.Params.All() {
		if !placed[q] {
			return fmt.Errorf("the adapter doesn't fit the model, which has no layer for %q", q.Name)
		}
	}
	for _, change := range changes {
		change()
	}
	return nil
}
