package layers

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
)

// Save writes the whole set, whichever scope it is called on, and metadata, which may be nil, to a safetensors file.
// Its tensors have the parameters' names, shapes and dtype, F32 or F64. The same values give the same bytes.
//
// The file is written whole or not at all: on an error, the one that was at path still is. A parameter that is NaN or
// infinite is an error that names it, as no good model has such a weight and Load would refuse it.
func (p *Params) Save(path string, metadata map[string]string) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error { return p.Encode(w, metadata) })
}

// Load sets the whole set, whichever scope it is called on, to the values of a safetensors file, and returns the file's
// metadata, nil if it has none. The parameters keep their tensors and those their memory, so that every graph they are
// bound into has the new values in its next run. No such graph may run meanwhile.
//
// The file must have a tensor of the name and the shape of each parameter, and no other. Its dtypes may differ: F16,
// BF16, F32 and F64 are converted, rounding to the nearest value. It is an error if a value is NaN, infinite or too
// large for the parameters' dtype. On an error, no parameter has changed.
func (p *Params) Load(path string) (metadata map[string]string, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	tensors, metadata, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := p.set.assign(p.dtype, tensors); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return metadata, nil
}

// Encode does what Save does, to a writer. What was written when an error came is of no use.
func (p *Params) Encode(w io.Writer, metadata map[string]string) error {
	if err := p.check(); err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	var err error
	if p.dtype == tensor.Float32 {
		tensors, err = export[float32](p.All())
	} else {
		tensors, err = export[float64](p.All())
	}
	if err != nil {
		return err
	}
	return safetensors.Write(w, tensors, metadata)
}

// Decode does what Load does, from a reader of size bytes: for weights that are embedded in a program, for instance.
func (p *Params) Decode(r io.Reader, size int64) (metadata map[string]string, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	tensors, metadata, err := safetensors.Read(r, size)
	if err != nil {
		return nil, err
	}
	if err := p.set.assign(p.dtype, tensors); err != nil {
		return nil, err
	}
	return metadata, nil
}

// export returns parameters as tensors over the same memory.
func export[T float32 | float64](params []*Param) ([]safetensors.Tensor, error) {
	tensors := make([]safetensors.Tensor, len(params))
	for i, q := range params {
		values, err := memory[T](q)
		if err != nil {
			return nil, err
		}
		if _, err := convert[T](q.Name, values); err != nil {
			return nil, err
		}
		tensors[i] = safetensors.Tensor{Name: q.Name, Shape: q.Value.Shape(), Data: values}
	}
	return tensors, nil
}

// assign sets every parameter to its tensor's values, or none.
func (s *paramSet) assign(dtype tensor.Dtype, tensors []safetensors.Tensor) error {
	if dtype == tensor.Float32 {
		return assign[float32](s, tensors)
	}
	return assign[float64](s, tensors)
}

func assign[T float32 | float64](s *paramSet, tensors []safetensors.Tensor) (err error) {
	to, from := make([][]T, len(s.list)), make([][]T, len(s.list))
	for i, q := range s.list {
		if to[i], err = memory[T](q); err != nil {
			return err
		}
	}
	want := make([]slot, len(s.list))
	for i, q := range s.list {
		want[i] = slot{q.Name, q.Value.Shape()}
	}
	byName, err := match(want, tensors)
	if err != nil {
		return err
	}
	for i, q := range s.list {
		switch values := byName[q.Name].Data.(type) {
		case []float32:
			from[i], err = convert[T](q.Name, values)
		case []float64:
			from[i], err = convert[T](q.Name, values)
		}
		if err != nil {
			return err
		}
	}
	for i := range to { // nothing can fail any more
		copy(to[i], from[i])
	}
	return nil
}

// A slot is what a tensor of a file has to fit.
type slot struct {
	name  string
	shape tensor.Shape
}

// match finds each slot's tensor. It reports all that doesn't fit at once.
func match(slots []slot, tensors []safetensors.Tensor) (map[string]safetensors.Tensor, error) {
	var missing, unexpected, different []string
	wanted := map[string]bool{}
	for _, s := range slots {
		wanted[s.name] = true
	}
	byName := map[string]safetensors.Tensor{}
	for _, t := range tensors {
		byName[t.Name] = t
		if !wanted[t.Name] {
			unexpected = append(unexpected, fmt.Sprintf("%.100q of shape %v", t.Name, tensor.Shape(t.Shape)))
		}
	}
	for _, s := range slots {
		t, ok := byName[s.name]
		switch {
		case !ok:
			missing = append(missing, fmt.Sprintf("%q of shape %v", s.name, s.shape))
		case !slices.Equal(t.Shape, s.shape):
			different = append(different, fmt.Sprintf("%q must have shape %v, got %v", s.name, s.shape, tensor.Shape(t.Shape)))
		case t.Dtype() != "F32" && t.Dtype() != "F64":
			different = append(different, fmt.Sprintf("%q must hold floating-point values, got %s", s.name, t.Dtype()))
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
		return nil, errors.New("the weights don't fit the model: " + strings.Join(parts, "; "))
	}
	return byName, nil
}

// few returns the first of a list, and how many more there are.
func few(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// memory returns a parameter's own values, in row-major order: to write to them is to change the parameter.
func memory[T float32 | float64](q *Param) ([]T, error) {
	var all any
	switch v := q.Value; {
	case v == nil || v.RequiresIterator() || v.DataOrder().IsColMajor():
	case v.Dtype() == tensor.Float32:
		all = v.Float32s()
	case v.Dtype() == tensor.Float64:
		all = v.Float64s()
	}
	values, ok := all.([]T)
	if !ok || len(values) != q.Value.Shape().TotalSize() {
		return nil, fmt.Errorf("parameter %q must be a row-major tensor of %T without gaps: its Value has been replaced or transposed", q.Name, *new(T))
	}
	return values, nil
}

// convert returns a parameter's values in another type: the same slice if it is the same type. All must be finite.
func convert[T, S float32 | float64](name string, values []S) ([]T, error) {
	converted, same := any(values).([]T)
	if !same {
		converted = make([]T, len(values))
	}
	for i, v := range values {
		x := T(v)
		if x-x != 0 { // not finite
			if v := float64(v); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("parameter %q has the value %v at element %d of %d: no weight may be NaN or infinite", name, v, i, len(values))
			}
			return nil, fmt.Errorf("parameter %q has the value %v at element %d of %d: that is too large for %T", name, v, i, len(values), x)
		}
		if !same {
			converted[i] = x
		}
	}
	return converted, nil
}
