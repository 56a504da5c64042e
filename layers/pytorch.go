package layers

import (
	"fmt"
	"io"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
)

// LoadPyTorch does what Load does for a file with the names and layouts of PyTorch: the state dict of a module, saved
// by safetensors.torch.save_file. A model and the module must be of the same parts. Names go over by this rule, in
// every scope, and are otherwise the same:
//
//	of a MultiHeadAttention            of nn.MultiheadAttention
//	  query, key, value .weight          in_proj_weight, one below the other; where their shapes differ
//	                                     q_proj_weight, k_proj_weight and v_proj_weight
//	  query, key, value .bias            in_proj_bias, one after the other
//	  output                             out_proj
//	of blocks                          of nn.TransformerEncoderLayer and nn.TransformerDecoderLayer
//	  attention, cross                   self_attn, multihead_attn
//	  feedforward.up, feedforward.down   linear1, linear2
//	  norm1, normcross, norm2            norm1, norm2, norm3; without cross-attention norm1, norm2
//	of stacks                          of nn.TransformerEncoder, nn.TransformerDecoder and nn.Transformer
//	  blocks.N                           layers.N
//
// Linear, Embedding and LayerNorm have the names and layouts of nn.Linear, nn.Embedding and nn.LayerNorm; NoBias is
// bias=False.
//
// What else a module calls its parts is for rename to say, if it isn't nil: given a name as the rule has it, such as
// encoder.layers.0.self_attn.in_proj_weight, it returns the file's. The same function serves SavePyTorch.
//
// nn.Transformer ends each stack with a norm whether norm_first is true or false. An Encoder or a Decoder with PostNorm
// does with FinalNorm. Without PostNorm they always do, so that an nn.TransformerEncoder with norm_first must have been
// given its norm.
//
// As with Load, the file must have all tensors and no other, values are converted to the parameters' dtype, and on an
// error no parameter has changed. The error says what is missing, unexpected or of another shape by the file's names.
func (p *Params) LoadPyTorch(path string, rename func(name string) string) (metadata map[string]string, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	tensors, metadata, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if p.dtype == tensor.Float32 {
		err = fromPyTorch[float32](p.set, rename, tensors)
	} else {
		err = fromPyTorch[float64](p.set, rename, tensors)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return metadata, nil
}

// SavePyTorch does what Save does in the names and layouts of PyTorch: see LoadPyTorch. A module of the same parts
// takes the file by load_state_dict(safetensors.torch.load_file(path)). It is an error if rename gives two tensors one
// name.
func (p *Params) SavePyTorch(path string, rename func(name string) string, metadata map[string]string) error {
	if err := p.check(); err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	var err error
	if p.dtype == tensor.Float32 {
		tensors, err = toPyTorch[float32](p.set, rename)
	} else {
		tensors, err = toPyTorch[float64](p.set, rename)
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) })
}

// fromPyTorch sets every parameter to its part of PyTorch's tensors, or none.
func fromPyTorch[T float32 | float64](s *paramSet, rename func(string) string, tensors []safetensors.Tensor) error {
	for _, q := range s.list {
		if _, err := memory[T](q); err != nil {
			return err
		}
	}
	all, err := s.pyTorch(rename)
	if err != nil {
		return err
	}
	slots := make([]slot, len(all))
	for i, p := range all {
		slots[i] = slot{p.name, p.shape()}
	}
	byName, err := match(slots, tensors)
	if err != nil {
		return err
	}
	var ours []safetensors.Tensor
	for _, p := range all {
		switch values := byName[p.name].Data.(type) {
		case []float32:
			ours = append(ours, split(p, values)...)
		case []float64:
			ours = append(ours, split(p, values)...)
		}
	}
	return assign[T](s, ours)
}

// split divides a tensor's values among its parts.
func split[T float32 | float64](p packed, values []T) []safetensors.Tensor {
	tensors := make([]safetensors.Tensor, len(p.parts))
	for i, q := range p.parts {
		n := q.Value.Shape().TotalSize()
		tensors[i] = safetensors.Tensor{Name: q.Name, Shape: q.Value.Shape(), Data: values[:n]}
		values = values[n:]
	}
	return tensors
}

// toPyTorch returns the parameters as PyTorch's tensors.
func toPyTorch[T float32 | float64](s *paramSet, rename func(string) string) ([]safetensors.Tensor, error) {
	ours, err := export[T](s.list)
	if err != nil {
		return nil, err
	}
	values := map[string][]T{}
	for _, t := range ours {
		values[t.Name] = t.Data.([]T)
	}
	all, err := s.pyTorch(rename)
	if err != nil {
		return nil, err
	}
	tensors := make([]safetensors.Tensor, len(all))
	for i, p := range all {
		var data []T
		for _, q := range p.parts {
			data = append(data, values[q.Name]...)
		}
		tensors[i] = safetensors.Tensor{Name: p.name, Shape: p.shape(), Data: data}
	}
	return tensors, nil
}
