package layers

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"text/tabwriter"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/ops"
)

// A Param is a learnable tensor with a name. It belongs to no graph. Build.Bind adds a node for it to a graph; the
// nodes in all graphs use the same memory. Make one with Params.New.
type Param struct {
	Name  string
	Value *tensor.Dense

	// Frozen excludes the parameter from training: Bind adds its node to the Build's Fixed instead of the Learnables,
	// and no gradient is computed for it. A change affects only graphs built afterwards. Params.Freeze sets Frozen by
	// name.
	Frozen bool

	blank  bool // made by a blank Params and not loaded yet
	linear bool // the weight of a Linear
	head   bool // an embedding table that is also the weight of a head

	toInt8 bool         // made by BlankInt8
	int8   *kernel.Int8 // the values after Quantize, when Value has only a shape; otherwise nil
	kept   kernel.Kept  // see KeepPanels
}

// Params is the set of a model's parameters, in the order in which its layers were made. The constructors of layers
// take a Params, which names, initialises and collects their parameters. Make one with NewParams.
type Params struct {
	dtype  tensor.Dtype
	seed   uint64
	prefix string
	init   Init      // Init for weights of this scope without an Init of their own
	blank  bool      // see Blank
	int8   bool      // see BlankInt8
	set    *paramSet // shared by all scopes
}

type paramSet struct {
	list   []*Param
	byName map[string]*Param
	bytes  int // memory used by the parameters
}

// paramBytes is roughly the memory of a parameter besides its numbers. New counts this memory too, so that it can
// return an error for a model with far too many small layers.
const paramBytes = 1 << 10

// NewParams returns an empty set of parameters with a dtype, tensor.Float32 or tensor.Float64. The initial values of a
// parameter depend only on the seed and on the parameter's name, shape and Init.
func NewParams(dtype tensor.Dtype, seed uint64) (*Params, error) {
	if dtype != tensor.Float32 && dtype != tensor.Float64 {
		return nil, fmt.Errorf("parameters must be float32 or float64, got %v", dtype)
	}
	return &Params{dtype: dtype, seed: seed, set: &paramSet{byName: map[string]*Param{}}}, nil
}

// Scope returns the same set for a part of the model. Names of parameters made with the returned Params begin with p's
// own prefix, followed by name and a dot.
func (p *Params) Scope(name string) *Params {
	s := *p
	s.prefix += name + "."
	return &s
}

// Blank returns the same set for parts of the model whose values will be loaded. Parameters made with the returned
// Params are 0: no Init draws their values, so they cost no time, and memory only when they are loaded.
func (p *Params) Blank() *Params {
	s := *p
	s.blank = true
	return &s
}

// BlankInt8 is like Blank, for models that will be loaded to be used with int8 weights. Load quantises each matrix as
// soon as it has read the values. So only a few matrices are in memory as float32 at the same time. If the parameters
// aren't float32, New returns an error.
func (p *Params) BlankInt8() *Params {
	s := *p
	s.blank, s.int8 = true, true
	return &s
}

// withInit returns the same set with the default Init i. If i is zero, the default doesn't change.
func (p *Params) withInit(i Init) *Params {
	s := *p
	s.init = i.or(p.init)
	return &s
}

// Dtype returns the dtype of the parameters.
func (p *Params) Dtype() tensor.Dtype { return p.dtype }

// All returns the parameters of the whole set, in every scope.
func (p *Params) All() []*Param { return p.set.list }

// Get returns the parameter with the given full name, or nil.
func (p *Params) Get(name string) *Param { return p.set.byName[name] }

// Count returns the total number of elements of all parameters.
func (p *Params) Count() int {
	n := 0
	for _, q := range p.All() {
		n += q.Value.Shape().TotalSize()
	}
	return n
}

// Unfrozen returns the set of the parameters that aren't Frozen now, in the order of All. It shares them with p.
func (p *Params) Unfrozen() *Params {
	part := *p
	part.set = &paramSet{byName: map[string]*Param{}}
	for _, q := range p.All() {
		if !q.Frozen {
			part.set.list = append(part.set.list, q)
			part.set.byName[q.Name] = q
			part.set.bytes += len(q.Value.Raw) + paramBytes
		}
	}
	return &part
}

// Freeze sets Frozen for the parameters with the given full names and for all parameters in the scopes with these
// names. For example, "blocks.0" freezes the first block. If a name matches no parameter and no scope, Freeze returns
// an error and freezes nothing.
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

// Summary returns a table of all parameters with their names, shapes and numbers of elements. The table marks frozen
// parameters, and its last line has the totals.
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

// KeepPanels says whether graphs for evaluation keep the weights of Linears also in packed form, as a matrix unit (AMX)
// reads them. All graphs share this memory: 1.5 times the weights in float32, and half of them in bfloat16. The first
// run whose products use the unit takes it, matrix by matrix, as long as the heap then takes at most half of the memory
// and of GOMEMLIMIT. Later runs don't pack these weights again. Results have the same bits. Without such a unit,
// KeepPanels changes nothing. Call it when no graph runs.
//
// The packed weights must not become stale. Load, Restore, Quantize and an Adapter's Merge drop them. Package train
// calls KeepPanels(false), and a graph for training does the same for each parameter that it learns, when it is built.
// Call KeepPanels(true) only after training, and KeepPanels(false) before other code changes values: code that writes
// into the tensor of a Value, such as package gradcheck, or a solver whose gradients come from a graph for evaluation.
// A Value that is replaced by another tensor is packed again. As a last resort, each product compares 64 numbers of its
// matrix with what they were. So it notices a step of a solver, but not a change of single numbers.
func (p *Params) KeepPanels(keep bool) {
	for _, q := range p.All() {
		q.kept.Keep(keep)
	}
}

// forgetPanels drops packed weights after values have changed.
func (s *paramSet) forgetPanels() {
	for _, q := range s.list {
		q.kept.Forget()
	}
}

// Snapshot returns copies of the values of all parameters, in the order of All, for Restore.
func (p *Params) Snapshot() []*tensor.Dense {
	var values []*tensor.Dense
	for _, q := range p.All() {
		values = append(values, q.Value.Clone().(*tensor.Dense))
	}
	return values
}

// Restore sets all parameters to the values of a Snapshot. The parameters keep their tensors and memory. If the number
// of values, a shape or a dtype differs, Restore returns an error and changes nothing.
func (p *Params) Restore(snapshot []*tensor.Dense) error {
	defer p.set.forgetPanels()
	return ops.ByDtype(p, restore[float32], restore[float64])(p.All(), snapshot)
}

func restore[T float32 | float64](params []*Param, snapshot []*tensor.Dense) error {
	if len(snapshot) != len(params) {
		return fmt.Errorf("a snapshot of these parameters must have %d values, got %d", len(params), len(snapshot))
	}
	old, saved := make([][]T, len(params)), make([][]T, len(params))
	for i, q := range params {
		var err error
		if old[i], err = valuesOf[T](q); err != nil {
			return err
		}
		if saved[i], err = valuesOf[T](&Param{Name: q.Name, Value: snapshot[i]}); err != nil {
			return fmt.Errorf("the snapshot: %w", err)
		}
		if s := snapshot[i].Shape(); !s.Eq(q.Value.Shape()) {
			return fmt.Errorf("the snapshot: parameter %q must have shape %v, got %v", q.Name, q.Value.Shape(), s)
		}
	}
	for i := range old {
		copy(old[i], saved[i])
	}
	return nil
}

// New makes a parameter with the given shape. Its full name is the prefix of the scope followed by name. A zero init
// means the Init of the enclosing configuration, or xavier_uniform if there is none. New returns an error if the set
// already has a parameter with that name, or if the machine has too little memory for the set with the new parameter.
func (p *Params) New(name string, init Init, shape ...int) (*Param, error) {
	full := p.prefix + name
	if p.set.byName[full] != nil {
		return nil, fmt.Errorf("there are two parameters named %q: give each layer its own Scope", full)
	}
	if len(shape) == 0 {
		return nil, fmt.Errorf("parameter %q must have at least one axis", full)
	}
	for _, d := range shape {
		if d < 1 {
			return nil, fmt.Errorf("parameter %q must have a shape of positive sizes, got %v", full, tensor.Shape(shape))
		}
	}
	init = init.or(p.init).or(Init{Kind: "xavier_uniform"})
	if err := init.check(); err != nil {
		return nil, fmt.Errorf("parameter %q: %w", full, err)
	}
	if p.int8 {
		if err := p.checkInt8(); err != nil {
			return nil, fmt.Errorf("parameter %q: %w", full, err)
		}
	}
	numbers := memory.Product(shape...)
	bytes, drawn := memory.Product(numbers, int(p.dtype.Size())), 0
	if p.int8 && len(shape) == 2 {
		bytes = numbers
	}
	if init.Func != nil && !p.blank {
		drawn = memory.Product(numbers, 8) // its argument values
	}
	if err := memory.Check(p.set.bytes, bytes, drawn); err != nil {
		return nil, fmt.Errorf("parameter %q of shape %v: %w", full, tensor.Shape(shape), err)
	}
	h := fnv.New64a()
	h.Write([]byte(full))
	rng := rand.New(rand.NewPCG(p.seed, h.Sum64()))
	backing, err := ops.ByDtype(p, drawValues[float32], drawValues[float64])(p.blank, init, rng, numbers, shape)
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", full, err)
	}
	q := &Param{Name: full, Value: tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing)), blank: p.blank, toInt8: p.int8}
	p.set.list = append(p.set.list, q)
	p.set.byName[full] = q
	p.set.bytes += bytes + paramBytes
	return q, nil
}

// drawValues returns the initial values of a parameter.
func drawValues[T float32 | float64](blank bool, init Init, rng *rand.Rand, numbers int, shape []int) (backing any, err error) {
	values := memory.Huge(make([]T, numbers))
	if !blank {
		err = fill(init, rng, values, shape)
	}
	return values, err
}

// scope returns the name of p's scope, without the final dot; it is empty for the whole model.
func (p *Params) scope() string { return strings.TrimSuffix(p.prefix, ".") }

// scopeName returns a layer's name for errors, such as "linear head", or only one word if the scope has the same name.
func (p *Params) scopeName(layer string) string {
	if p.prefix == "" || p.scope() == layer {
		return layer
	}
	return layer + " " + p.scope()
}
