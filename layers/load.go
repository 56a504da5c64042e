package layers

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/safetensors"
	"github.com/heed-go/heed/internal/text"
)

// LoadOptions controls how Load matches the tensors of a file with the parameters. The zero LoadOptions fits a file
// that Save wrote for the same model.
type LoadOptions struct {
	// PyTorch is for a file with PyTorch's names and layouts, such as the state dict of the corresponding module, saved
	// by safetensors.torch.save_file. See SavePyTorch.
	//
	// A state dict has the values of a module, but not all of its settings. Load can't know the activation, the number
	// of heads, the place of the norms (PostNorm), Eps, and positions without parameters. If one of them differs from
	// the module's, Load returns no error, and the answers are wrong: compare an output with the module's.
	PyTorch bool

	// Rename, if not nil, maps the name of a tensor to its name in the file. Its argument is the parameter's name or,
	// with PyTorch, the name that SavePyTorch gives, such as encoder.layers.0.self_attn.in_proj_weight.
	Rename func(name string) string

	// Drop, if not nil, gets the name of each tensor in the file. If it returns true, Load skips the tensor as if the
	// file didn't contain it.
	Drop func(name string) bool

	// With Partial, parameters that the file doesn't contain keep their values. Without Partial, Load returns an error
	// if there are such parameters.
	Partial bool

	// With Ignore, Load skips tensors that match no parameter. Without Ignore, it returns an error if there are such
	// tensors.
	Ignore bool
}

// LoadReport holds the metadata of a file and lists the parameters and tensors that Load left out.
type LoadReport struct {
	Metadata map[string]string // nil if the file has none
	Kept     []string          // parameters that kept their values, in the order of All
	Unused   []string          // tensors that Load skipped because of Drop or Ignore, in the file's order
}

// Load sets all parameters of the set, in every scope, to the values in a safetensors file. The parameters keep their
// tensors and memory, so all graphs use the new values in their next run. No graph with these parameters may run during
// Load.
//
// Unless the options allow more, the file must have exactly one tensor for each parameter, with the parameter's name
// and shape, and no other tensors. The dtypes may be F16, BF16, F32 and F64; Load rounds to the nearest value. Load
// returns an error if a value is NaN, infinite or too large for the parameters' dtype, or if the file's checksum
// doesn't match. Files written by Save have a checksum. After an error, no parameter has changed. Load compares names
// and shapes before it allocates memory. If tensors are missing, unexpected or of another shape, the error gives
// examples, with their names in the file. It also says if their names show that the option PyTorch is set wrongly.
func (p *Params) Load(path string, o LoadOptions) (LoadReport, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return LoadReport{}, err
	}
	defer f.Close()
	l, err := p.load(f, o)
	if err != nil {
		return LoadReport{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// LoadFrom is like Load, but reads size bytes from r, for example weights embedded in a program.
func (p *Params) LoadFrom(r io.Reader, size int64, o LoadOptions) (LoadReport, error) {
	f, err := safetensors.NewFile(r, size)
	if err != nil {
		return LoadReport{}, err
	}
	return p.load(f, o)
}

func (p *Params) load(f *safetensors.File, o LoadOptions) (LoadReport, error) {
	if p.dtype == tensor.Float32 {
		return load[float32](p.set, f, o)
	}
	return load[float64](p.set, f, o)
}

// load sets the parameters from the file's tensors. After an error, no parameter has changed.
func load[T float32 | float64](s *paramSet, f *safetensors.File, o LoadOptions) (LoadReport, error) {
	for _, q := range s.list {
		if _, err := valuesOf[T](q); err != nil {
			return LoadReport{}, err
		}
	}
	expected, err := s.tensors(o.PyTorch, o.Rename)
	if err != nil {
		return LoadReport{}, err
	}
	taken, l, err := s.match(expected, f.Entries, o)
	if err != nil {
		return LoadReport{}, err
	}
	tensors, err := f.Tensors(func(name string) bool { return taken[name] != nil })
	if err != nil {
		return LoadReport{}, err
	}
	from := map[*Param][]T{}
	for _, t := range tensors {
		switch values := t.Data.(type) {
		case []float32:
			err = split(from, taken[t.Name], values)
		case []float64:
			err = split(from, taken[t.Name], values)
		}
		if err != nil {
			return LoadReport{}, err
		}
	}
	for q, values := range from {
		old, _ := valuesOf[T](q) // checked above
		copy(old, values)
	}
	l.Metadata = f.Metadata
	return l, nil
}

// split converts the values of a tensor and divides them among its parameters.
func split[T, S float32 | float64](from map[*Param][]T, parts []*Param, values []S) (err error) {
	for _, q := range parts {
		n := q.Value.Shape().TotalSize()
		if from[q], err = convert[T](q.Name, values[:n]); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// packed is a tensor in a file: one parameter, or several joined along the first axis.
type packed struct {
	name  string
	parts []*Param
}

func (p packed) shape() tensor.Shape {
	shape := p.parts[0].Value.Shape().Clone()
	for _, q := range p.parts[1:] {
		shape[0] += q.Value.Shape()[0]
	}
	return shape
}

// tensors returns the tensors of a file with all parameters of the set, in PyTorch's layout or in our own. It returns
// an error if two tensors have the same name.
func (s *paramSet) tensors(pyTorch bool, rename func(name string) string) ([]packed, error) {
	var list []packed
	first := map[string]string{}
	for _, q := range s.list {
		name, parts := q.Name, []*Param{q}
		if pyTorch {
			if name, parts = s.pyTorchTensor(q); len(parts) == 0 {
				continue
			}
		}
		theirs := name
		if rename != nil {
			theirs = rename(name)
		}
		if other, ok := first[theirs]; ok {
			return nil, fmt.Errorf("tensors %q and %q would both be named %q: rename must give them different names", other, name, theirs)
		}
		first[theirs] = name
		list = append(list, packed{theirs, parts})
	}
	return list, nil
}

// match maps the name of each tensor in the file to its parameters. Its error lists everything that doesn't fit.
func (s *paramSet) match(expected []packed, entries []safetensors.Entry, o LoadOptions) (taken map[string][]*Param, l LoadReport, err error) {
	byName := map[string]safetensors.Entry{}
	for _, e := range entries {
		if o.Drop == nil || !o.Drop(e.Name) {
			byName[e.Name] = e
		}
	}
	var missing, unexpected, different []string
	var advice string // advice about the option PyTorch
	taken = map[string][]*Param{}
	for _, p := range expected {
		e, ok := byName[p.name]
		if !ok {
			for _, q := range p.parts {
				l.Kept = append(l.Kept, q.Name)
			}
			if !o.Partial {
				missing = append(missing, fmt.Sprintf("%q of shape %v", p.name, p.shape()))
			}
			continue
		}
		switch {
		case !slices.Equal(e.Shape, p.shape()):
			different = append(different, fmt.Sprintf("%q must have shape %v, got %v", p.name, p.shape(), tensor.Shape(e.Shape)))
		case e.Dtype == "I64":
			different = append(different, fmt.Sprintf("%q must hold floating-point values, got %s", p.name, e.Dtype))
		}
		taken[p.name] = p.parts
	}
	for _, e := range entries {
		if taken[e.Name] != nil {
			continue
		}
		l.Unused = append(l.Unused, e.Name)
		_, kept := byName[e.Name]
		if kept && advice == "" {
			advice = s.adviseOnPyTorch(e.Name, o)
		}
		if kept && !o.Ignore {
			unexpected = append(unexpected, fmt.Sprintf("%.100q of shape %v", e.Name, tensor.Shape(e.Shape)))
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"missing", missing}, {"unexpected", unexpected}, {"different", different}} {
		if len(p.list) > 0 {
			parts = append(parts, p.what+": "+text.List(len(p.list), 3, ", ", func(i int) string { return p.list[i] }))
		}
	}
	if parts != nil {
		return nil, LoadReport{}, errors.New("the weights don't fit the model: " + strings.Join(parts, "; ") + advice)
	}
	return taken, l, nil
}

// adviseOnPyTorch returns advice about the option PyTorch if the name of an unmatched tensor shows that the option is
// wrong. Otherwise it returns an empty string.
func (s *paramSet) adviseOnPyTorch(name string, o LoadOptions) string {
	switch last := name[strings.LastIndexByte(name, '.')+1:]; {
	case !o.PyTorch && slices.Contains(pyTorchOnly, last):
		return fmt.Sprintf("; %.100q is a name from PyTorch: load the file with LoadOptions.PyTorch", name)
	case o.PyTorch && s.byName[name] != nil:
		return fmt.Sprintf("; %.100q is the model's own name, not PyTorch's: load the file without LoadOptions.PyTorch", name)
	}
	return ""
}
