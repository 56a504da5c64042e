// Package llama2c converts models in the format of llama2.c to the published format of Llama: seven int32 (width,
// hidden width, layers, heads, key and value heads, vocabulary, positions) and float32 tensors in a fixed order. A
// negative vocabulary means that the head has weights of its own.
package llama2c

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// Convert reads a model and its SentencePiece tokenizer, the file with the name .model, and writes a folder with
// config.json, generation_config.json, model.safetensors and tokenizer.model. It returns an error if the model is cut
// short or its sizes don't fit together.
func Convert(model, tokenizer io.Reader, dir string) error {
	if err := convert(bufio.NewReader(model), dir); err != nil {
		return fmt.Errorf("the model: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, "tokenizer.model"), func(w io.Writer) error {
		_, err := io.Copy(w, tokenizer)
		return err
	})
}

// convert writes all files except the tokenizer's.
func convert(r io.Reader, dir string) error {
	var h struct{ Dim, Hidden, Layers, Heads, Groups, Vocab, Positions int32 }
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return fmt.Errorf("the header of seven numbers: %w", err)
	}
	tied, vocab := h.Vocab > 0, max(int(h.Vocab), -int(h.Vocab))
	if h.Heads < 1 || h.Groups < 1 || h.Dim < 1 || h.Dim%h.Heads != 0 || h.Dim/h.Heads%2 != 0 {
		return fmt.Errorf("the heads must have an even width and there must be at least one, got width %d, %d heads, %d for keys and values", h.Dim, h.Heads, h.Groups)
	}
	c := pretrained.Config{
		Type: "llama", Head: "text", Causal: true, MaxLen: int(h.Positions), Start: 1, Pad: -1, End: []int{2},
		Model: layers.ModelConfig{
			Vocab: vocab, Dim: int(h.Dim), Layers: int(h.Layers), Positions: layers.Rotary{}, NoBias: true, Tied: tied, EmbeddingScale: 1,
			Block: layers.BlockConfig{
				Attention:   layers.AttentionConfig{Heads: int(h.Heads), KeyValueHeads: int(h.Groups), NoBias: true},
				FeedForward: layers.FeedForwardConfig{Hidden: int(h.Hidden), Activation: layers.SiLU, Gated: true, NoBias: true},
				Norm:        layers.NormConfig{Kind: "rms", Eps: 1e-5},
			},
		},
	}
	p, err := layers.NewParams(tensor.Float32, 0)
	if err != nil {
		return err
	}
	if _, err := layers.NewDecoder(p.Blank(), c.Model); err != nil {
		return err
	}
	names := []string{"embedding.weight"}
	for _, part := range []string{
		"norm1", "attention.query", "attention.key", "attention.value", "attention.output",
		"norm2", "feedforward.gate", "feedforward.down", "feedforward.up",
	} {
		for i := range c.Model.Layers {
			names = append(names, fmt.Sprintf("blocks.%d.%s.weight", i, part))
		}
	}
	names = append(names, "norm.weight")
	if !tied {
		names = append(names, "head.weight")
	}
	for _, name := range names {
		if name == "head.weight" {
			angles := int64(h.Positions) * int64(h.Dim/h.Heads) * 4 // cosines and sines, which Rotary computes itself
			if _, err := io.CopyN(io.Discard, r, angles); err != nil {
				return fmt.Errorf("the angles: %w", err)
			}
		}
		values := p.Get(name).Value
		if err := binary.Read(r, binary.LittleEndian, values.Float32s()); err != nil {
			return fmt.Errorf("the values of %s: %w", name, err)
		}
		if strings.Contains(name, "attention.query") || strings.Contains(name, "attention.key") {
			halves(values, c.Model.Dim/int(h.Heads))
		}
	}
	return pretrained.Save(dir, c, p)
}

// halves reorders the rows of each head of a projection. In llama2.c the pairs that are rotated are neighbours; in the
// published format, they are the first and the second half of a head of the given width.
func halves(w *tensor.Dense, width int) {
	values, dim := w.Float32s(), w.Shape()[1]
	head := make([]float32, width*dim)
	for ; len(values) > 0; values = values[len(head):] {
		copy(head, values)
		for row := range width {
			copy(values[row*dim:][:dim], head[(row%(width/2)*2+row/(width/2))*dim:])
		}
	}
}
