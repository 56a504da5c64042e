package layers

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/safetensors"
)

// LoadOptions say how the tensors of a file and the parameters find each other. The zero LoadOptions is for a file that
// Save wrote of the same model.
type LoadOptions struct {
	// PyTorch says that the file has the names and layouts of PyTorch, by the rule of SavePyTorch: the state dict of a
	// module of the same parts, saved by safetensors.torch.save_file.
	PyTorch bool

	// Rename, if it isn't nil, returns the file's name for a parameter's or, with PyTorch, for that of the rule, such
	// as encoder.layers.0.self_attn.in_proj_weight.
	Rename func(name string) string

	// Drop, if it isn't nil, reports whether a tensor of the file, by the file's name, is to be left out as if the file
	// hadn't it.
	Drop func(name string) bool

	// Partial lets a parameter that the file doesn't have keep its value.
	Partial bool

	// Ignore leaves out what the file has besides the parameters.
	Ignore bool
}

// Loaded is what Load read and left out.
type Loaded struct {
	Metadata map[string]string // nil if the file has none
	Kept     []string          // parameters that kept their values, in the order of All
	Unused   []string          // tensors of the file that were dropped or ignored, in the file's order
}

// Load sets the whole set, whichever scope it is called on, to the values of a safetensors file. The parameters keep
// their tensors and those their memory, so that every graph they are bound into has the new values in its next run. No
// such graph may run meanwhile.
//
// The file must have a tensor of the name and the shape of each parameter, and no other, where the options don't say
// otherwise. Its dtypes may differ: F16, BF16, F32 and F64 are converted, rounding to the nearest value. It is an error
// if a value is NaN, infinite or too large for the parameters' dtype, or if the file has a checksum, as all have that
// Save wrote, and isn't what was written. On an error, no parameter has changed. What doesn't fit is found by the
// file's header, before memory is spent, and named as the file has it.
func (p *Params) Load(path string, o LoadOptions) (Loaded, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Loaded{}, err
	}
	defer f.Close()
	l, err := p.load(f, o)
	if err != nil {
		return Loaded{}, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Decode does what Load does, from a reader of size bytes: for weights that are embedded in a program, for instance.
func (p *Params) Decode(r io.Reader, size int64, o LoadOptions) (Loaded, error) {
	f, err := safetensors.NewFile(r, size)
	if err != nil {
		return Loaded{}, err
	}
	return p.load(f, o)
}

func (p *Params) load(f *safetensors.File, o LoadOptions) (Loaded, error) {
	if p.dtype == tensor.Float32 {
		return load[float32](p.set, f, o)
	}
	return load[float64](p.set, f, o)
}

// load sets every parameter that the options don't leave out to its part of the file's tensors, or none.
func load[T float32 | float64](s *paramSet, f *safetensors.File, o LoadOptions) (Loaded, error) {
	for _, q := range s.list {
		if _, err := valuesOf[T](q); err != nil {
			return Loaded{}, err
		}
	}
	all, err := s.tensors(o.PyTorch, o.Rename)
	if err != nil {
		return Loaded{}, err
	}
	taken, l, err := match(all, f.Entries, o)
	if err != nil {
		return Loaded{}, err
	}
	tensors, err := f.Tensors(func(name string) bool { return taken[name] != nil })
	if err != nil {
		return Loaded{}, err
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
			return Loaded{}, err
		}
	}
	for q, values := range from { // nothing can fail any more
		to, _ := valuesOf[T](q)
		copy(to, values)
	}
	l.Metadata = f.Metadata
	return l, nil
}

// split converts a tensor's values for the parameters that are its parts.
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

// packed is a tensor of a file: one parameter, or several one after the other along the first axis.
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

// tensors returns the set as a file has it, PyTorch's or ours. It is an error if two tensors have one name.
func (s *paramSet) tensors(pyTorch bool, rename func(name string) string) ([]packed, error) {
	var all []packed
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
			return nil, fmt.Errorf("tensors %q and %q would both be named %q: rename must tell them apart", other, name, theirs)
		}
		first[theirs] = name
		all = append(all, packed{theirs, parts})
	}
	return all, nil
}

// match returns the parameters that each tensor of a file is for, by its name. It reports all that doesn't fit at once.
func match(all []packed, entries []safetensors.Entry, o LoadOptions) (taken map[string][]*Param, l Loaded, err error) {
	byName := map[string]safetensors.Entry{}
	for _, e := range entries {
		if o.Drop == nil || !o.Drop(e.Name) {
			byName[e.Name] = e
		}
	}
	var missing, unexpected, different []string
	taken = map[string][]*Param{}
	for _, p := range all {
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
		if _, there := byName[e.Name]; there && !o.Ignore {
			unexpected = append(unexpected, fmt.Sprintf("%.100q of shape %v", e.Name, tensor.Shape(e.Shape)))
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"missing", missing}, {"unexpected", unexpected}, {"different", different}} {
		if len(p.list) > 0 {
			parts = append(parts, p.what+": "+few(p.list))
		}
	}
	if parts != nil {
		return nil, Loaded{}, errors.New("the weights don't fit the model: " + strings.Join(parts, "; "))
	}
	return taken, l, nil
}

// few returns the first of a list, and how many more there are.
func few(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
