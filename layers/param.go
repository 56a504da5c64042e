package layers

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"text/tabwriter"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
)

// A Param is a learnable tensor with a name. It belongs to no graph: Build.Bind makes it a node of one, and of any
// number of others, all over the same memory. Make one with Params.New.
type Param struct {
	Name  string
	Value *tensor.Dense

	// Frozen keeps the parameter as it is: Bind then adds its node to the Build's Fixed, and not to the Learnables. It
	// holds for graphs that are built from then on. Params.Freeze sets it by name.
	Frozen bool
}

// Params are the parameters of a model, in the order in which its layers were made; make them with NewParams. Layers
// are made from a Params: it names, initialises and collects what they learn.
type Params struct {
	dtype  tensor.Dtype
	seed   uint64
	prefix string
	init   Init      // of weights made in this scope, unless they have one of their own
	set    *paramSet // shared by all scopes
}

type paramSet struct {
	list   []*Param
	byName map[string]*Param
	bytes  int // of memory that they take
}

// paramBytes is about how much memory a parameter takes besides its numbers. A model of countless small layers is as
// absurd as one of few huge layers.
const paramBytes = 1 << 10

// NewParams returns an empty set of parameters of a dtype, tensor.Float32 or tensor.Float64. The seed decides their
// initial values: that of a parameter depends on the seed, its name, its shape and its initialiser, and on nothing
// else.
func NewParams(dtype tensor.Dtype, seed uint64) (*Params, error) {
	if dtype != tensor.Float32 && dtype != tensor.Float64 {
		return nil, fmt.Errorf("parameters must be float32 or float64, got %v", dtype)
	}
	return &Params{dtype: dtype, seed: seed, set: &paramSet{byName: map[string]*Param{}}}, nil
}

// Scope returns the same set, seen from inside a part of the model: names of parameters made there begin with name and
// a dot.
func (p *Params) Scope(name string) *Params {
	s := *p
	s.prefix += name + "."
	return &s
}

// withInit returns the same set with an Init for the weights made below, unless it is zero.
func (p *Params) withInit(i Init) *Params {
	s := *p
	s.init = i.or(p.init)
	return &s
}

// Dtype returns the dtype of every parameter of the set.
func (p *Params) Dtype() tensor.Dtype { return p.dtype }

// All returns the parameters of the whole set, whichever scope it is called on.
func (p *Params) All() []*Param { return p.set.list }

// Get returns the parameter of that full name, or nil.
func (p *Params) Get(name string) *Param { return p.set.byName[name] }

// Count returns the number of learnable numbers in the whole set.
func (p *Params) Count() int {
	n := 0
	for _, q := range p.All() {
		n += q.Value.Shape().TotalSize()
	}
	return n
}

// Freeze sets Frozen of the parameters of these full names, and of all in the scopes of these names: "blocks.0" is the
// first block. It is an error if there is no parameter and no scope of a name; none is frozen then.
func (p *Params) Freeze(names ...string) error {
	var frozen []*Param
	for _, name := range names {
		before := len(frozen)
		for _, q := range p.All() {
			if q.Name == name || strings.HasPrefix(q.Name, name+".") {
				frozen = append(frozen, q)
			}
		}
		if len(frozen) == before {
			return fmt.Errorf("there is no parameter and no scope named %q to freeze: see Params.Summary for the names", name)
		}
	}
	for _, q := range frozen {
		q.Frozen = true
	}
	return nil
}

// Summary returns a table of the parameters of the whole set: their names, shapes and counts of numbers, which of them
// are frozen, and the sum.
func (p *Params) Summary() string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	frozen := 0
	for _, q := range p.All() {
		n, note := q.Value.Shape().TotalSize(), ""
		if q.Frozen {
			frozen, note = frozen+n, "\tfrozen"
		}
		fmt.Fprintf(w, "%s\t%v\t%d%s\n", q.Name, q.Value.Shape(), n, note)
	}
	fmt.Fprintf(w, "all\t%v\t%d", p.Dtype(), p.Count())
	if frozen > 0 {
		fmt.Fprintf(w, "\t%d frozen", frozen)
	}
	fmt.Fprintln(w)
	w.Flush()
	return table.String()
}

// Snapshot returns copies of the values of the whole set, in the order of All, for Restore.
func (p *Params) Snapshot() []*tensor.Dense {
	var values []*tensor.Dense
	for _, q := range p.All() {
		values = append(values, q.Value.Clone().(*tensor.Dense))
	}
	return values
}

// Restore sets the whole set to the values of a Snapshot. As with Load, the parameters keep their tensors and memory.
// It is an error if there aren't as many values as parameters, or one has another shape or dtype than its parameter; no
// parameter has changed then.
func (p *Params) Restore(snapshot []*tensor.Dense) error {
	if p.dtype == tensor.Float32 {
		return restore[float32](p.All(), snapshot)
	}
	return restore[float64](p.All(), snapshot)
}

func restore[T float32 | float64](params []*Param, snapshot []*tensor.Dense) error {
	if len(snapshot) != len(params) {
		return fmt.Errorf("a snapshot of these parameters must have %d values, got %d", len(params), len(snapshot))
	}
	to, from := make([][]T, len(params)), make([][]T, len(params))
	for i, q := range params {
		var err error
		if to[i], err = valuesOf[T](q); err != nil {
			return err
		}
		if from[i], err = valuesOf[T](&Param{Name: q.Name, Value: snapshot[i]}); err != nil {
			return fmt.Errorf("the snapshot: %w", err)
		}
		if s := snapshot[i].Shape(); !s.Eq(q.Value.Shape()) {
			return fmt.Errorf("the snapshot: parameter %q must have shape %v, got %v", q.Name, q.Value.Shape(), s)
		}
	}
	for i := range to {
		copy(to[i], from[i])
	}
	return nil
}

// New makes a parameter of the given shape, named by the scope and name. A zero init is that of the configuration that
// the scope is part of, or xavier_uniform. It is an error if the set has that name, or if the machine hasn't the memory
// for the parameters of the set with this one.
func (p *Params) New(name string, init Init, shape ...int) (*Param, error) {
	full := p.prefix + name
	if p.set.byName[full] != nil {
		return nil, fmt.Errorf("there are two parameters named %q: give each layer a Scope of its own", full)
	}
	if len(shape) == 0 {
		return nil, fmt.Errorf("parameter %q must have at least one axis", full)
	}
	for _, d := range shape {
		if d < 1 {
			return nil, fmt.Errorf("parameter %q must have a shape of positive sizes, got %v", full, tensor.Shape(shape))
		}
	}
	numbers := memory.Product(shape...)
	bytes := memory.Product(numbers, int(p.dtype.Size()))
	if err := memory.Check(p.set.bytes, bytes, memory.Product(numbers, 8)); err != nil { // the last for values
		return nil, fmt.Errorf("parameter %q of shape %v: %w", full, tensor.Shape(shape), err)
	}
	h := fnv.New64a()
	h.Write([]byte(full))
	values := make([]float64, numbers)
	if err := init.or(p.init).or(Init{Kind: "xavier_uniform"}).fill(rand.New(rand.NewPCG(p.seed, h.Sum64())), values, shape); err != nil {
		return nil, fmt.Errorf("parameter %q: %w", full, err)
	}

	q := &Param{Name: full}
	if p.dtype == tensor.Float64 {
		q.Value = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
	} else {
		small := make([]float32, len(values))
		for i, v := range values {
			small[i] = float32(v)
		}
		q.Value = tensor.New(tensor.WithShape(shape...), tensor.WithBacking(small))
	}
	p.set.list = append(p.set.list, q)
	p.set.byName[full] = q
	p.set.bytes += bytes + paramBytes
	return q, nil
}

// scope returns the name of the part of the model that p is seen from; empty for the whole.
func (p *Params) scope() string {
	return strings.TrimSuffix(p.prefix, ".")
}

// scopeName returns a layer's name as errors give it: its kind and its scope, or one where they are the same.
func (p *Params) scopeName(kind string) string {
	if p.prefix == "" || p.scope() == kind {
		return kind
	}
	return kind + " " + p.scope()
}
