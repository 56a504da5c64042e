package layers

import (
	"fmt"
	"io"
	"math"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/internal/safetensors"
)

// Save writes all parameters of the set, in every scope, to a safetensors file with the given metadata, which may be
// nil. The tensors have the parameters' names, shapes and dtype, F32 or F64. The same values and metadata give the same
// bytes.
//
// Save replaces the file at path only when the new file is complete. If a value is NaN or infinite, Save returns an
// error with the name of the parameter, because Load would refuse the file.
func (p *Params) Save(path string, metadata map[string]string) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error { return p.SaveTo(w, metadata) })
}

// SaveTo is like Save, but writes to w. After an error, discard the output.
func (p *Params) SaveTo(w io.Writer, metadata map[string]string) error {
	tensors, err := p.export(false, nil)
	if err != nil {
		return err
	}
	return safetensors.Write(w, tensors, metadata)
}

// export returns the parameters as tensors with Heed's or PyTorch's names. A tensor of one parameter shares its memory.
func (p *Params) export(pyTorch bool, rename func(name string) string) ([]safetensors.Tensor, error) {
	list, err := p.set.tensors(pyTorch, rename)
	if err != nil {
		return nil, err
	}
	if p.dtype == tensor.Float32 {
		return export[float32](list)
	}
	return export[float64](list)
}

func export[T float32 | float64](list []packed) ([]safetensors.Tensor, error) {
	tensors := make([]safetensors.Tensor, len(list))
	for i, p := range list {
		var data []T
		for _, q := range p.parts {
			values, err := valuesOf[T](q)
			if err != nil {
				return nil, err
			}
			if _, err := convert[T](q.Name, values); err != nil {
				return nil, err
			}
			if len(p.parts) == 1 {
				data = values
			} else {
				data = append(data, values...)
			}
		}
		tensors[i] = safetensors.Tensor{Name: p.name, Shape: p.shape(), Data: data}
	}
	return tensors, nil
}

// valuesOf returns a parameter's values in row-major order. The slice shares the parameter's memory.
func valuesOf[T float32 | float64](q *Param) ([]T, error) {
	var data any
	switch v := q.Value; {
	case !ops.InRows(v):
	case v.Dtype() == tensor.Float32:
		data = v.Float32s()
	case v.Dtype() == tensor.Float64:
		data = v.Float64s()
	}
	values, ok := data.([]T)
	if !ok || len(values) != q.Value.Shape().TotalSize() {
		return nil, fmt.Errorf("parameter %q must be a contiguous row-major tensor of %T: its Value has been replaced or transposed", q.Name, *new(T))
	}
	return values, nil
}

// convert converts a parameter's values to T. If S is T, it returns values itself, not a copy. It returns an error if a
// value isn't finite as T.
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
			return nil, fmt.Errorf("parameter %q has the value %v at element %d of %d, which is too large for %T", name, v, i, len(values), x)
		}
		if !same {
			converted[i] = x
		}
	}
	return converted, nil
}
