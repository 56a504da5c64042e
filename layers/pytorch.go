package layers

import (
	"io"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/safetensors"
)

// SavePyTorch is like Save, but with PyTorch's names and layouts: it writes the state dict of the corresponding module.
// In Python, read it with module.load_state_dict(safetensors.torch.load_file(path)); in Go, with Load and the option
// PyTorch. These names change, in every scope:
//
//	MultiHeadAttention                 nn.MultiheadAttention
//	  query, key, value .weight          in_proj_weight, joined along the first axis; if their shapes differ,
//	                                     q_proj_weight, k_proj_weight and v_proj_weight
//	  query, key, value .bias            in_proj_bias, joined
//	  output                             out_proj
//	blocks                             nn.TransformerEncoderLayer and nn.TransformerDecoderLayer
//	  attention, cross                   self_attn, multihead_attn
//	  feedforward.up, feedforward.down   linear1, linear2
//	  norm1, normcross, norm2            norm1, norm2, norm3; without cross-attention norm1, norm2
//	stacks                             nn.TransformerEncoder, nn.TransformerDecoder and nn.Transformer
//	  blocks.N                           layers.N
//
// Linear, Embedding and LayerNorm have the same names and layouts as nn.Linear, nn.Embedding and nn.LayerNorm; NoBias
// is bias=False.
//
// If rename isn't nil, it maps each name, such as encoder.layers.0.self_attn.in_proj_weight, to the name in the file.
// SavePyTorch returns an error if two tensors get the same name.
//
// nn.Transformer always ends each stack with a norm. An Encoder or a Decoder without PostNorm always has this norm;
// with PostNorm, only if FinalNorm is set. An nn.TransformerEncoder with norm_first=True therefore needs the argument
// norm.
func (p *Params) SavePyTorch(path string, rename func(name string) string, metadata map[string]string) error {
	tensors, err := p.export(true, rename)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error { return safetensors.Write(w, tensors, metadata) })
}
