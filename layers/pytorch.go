package layers

import (
	"io"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
)

// SavePyTorch does what Save does in the names and layouts of PyTorch: it writes the state dict of a module of the same
// parts, which takes it by load_state_dict(safetensors.torch.load_file(path)). Load reads such files, with PyTorch set
// in its options. Names go over by this rule, in every scope, and are otherwise the same:
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
// encoder.layers.0.self_attn.in_proj_weight, it returns the file's. It is an error if it gives two tensors one name.
//
// nn.Transformer ends each stack with a norm whether norm_first is true or false. An Encoder or a Decoder with PostNorm
// does with FinalNorm. Without PostNorm they always do, so that an nn.TransformerEncoder with norm_first must have been
// given its norm.
func (p *Params) SavePyTorch(path string, rename func(name string) string, metadata map[string]string) error {
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
	all, err := s.tensors(true, rename)
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
