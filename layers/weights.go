package layers

import (
	"fmt"
	"io"
	"iter"

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
	return p.saveTensors(w, p.set.ownTensors(), metadata)
}

// SaveTensors is like Save, but writes the tensors of a table, which must hold every parameter. Load reads the file
// with the same table. SaveTensors(path, PyTorch(p), nil) writes a state dict.
func (p *Params) SaveTensors(path string, tensors []Tensor, metadata map[string]string) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error { return p.saveTensors(w, tensors, metadata) })
}

func (p *Params) saveTensors(w io.Writer, table []Tensor, metadata map[string]string) error {
	return ops.ByDtype(p, saveTensors[float32], saveTensors[float64])(p.set, w, table, metadata)
}

func saveTensors[T float32 | float64](s *paramSet, w io.Writer, table []Tensor, metadata map[string]string) error {
	list, left, err := mappings[T](s, table)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("no Tensor holds the parameter %q: a table to save must hold all parameters", left[0].Name)
	}
	var tensors []safetensors.Tensor
	for _, m := range list {
		if m.Elsewhere {
			continue
		}
		for _, q := range m.parts {
			if i := firstNotFinite(q.values); i >= 0 {
				return fmt.Errorf("parameter %q: %w", q.Name, notFinite[T](float64(q.values[i]), i, len(q.values)))
			}
		}
		for values := range m.contents {
			if firstNotFinite(values) >= 0 {
				return fmt.Errorf("tensor %q: x − Plus isn't finite for a value x of its parameters, with Plus = %v", m.Names[0], m.Plus)
			}
		}
		tensors = append(tensors, safetensors.Tensor{Name: m.Names[0], Shape: m.shape, Data: iter.Seq[[]T](m.contents)})
	}
	return safetensors.Write(w, tensors, metadata)
}

// valuesOf returns a parameter's values in row-major order. The slice shares the parameter's memory.
func valuesOf[T float32 | float64](q *Param) ([]T, error) {
	if q.int8 != nil {
		return nil, fmt.Errorf("parameter %q has only int8 values since Quantize: open or make the model again for its %v values", q.Name, q.Value.Dtype())
	}
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
