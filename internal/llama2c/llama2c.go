// Package llama2c converts models in the format of llama2.c to the published format of Llama.
//
// A model is seven int32 (width, hidden width, layers, heads, key and value heads, vocabulary, positions) and float32
// tensors in a fixed order. A negative vocabulary means that the head has weights of its own. A tokenizer is one int32
// and, for every piece, a score (float32), a length (int32) and the piece's bytes.
package llama2c

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
)

// Convert reads a model and its tokenizer and writes a folder with config.json, generation_config.json,
// model.safetensors and tokenizer.json. It returns an error if a file is cut short or its sizes don't fit together.
func Convert(model, tokenizer io.Reader, dir string) error {
	vocab, err := convertModel(bufio.NewReader(model), dir)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	content, err := tokenizerJSON(bufio.NewReader(tokenizer), vocab)
	if err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, "tokenizer.json"), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// convertModel writes all files except the tokenizer's, and returns the number of tokens.
func convertModel(r io.Reader, dir string) (vocab int, err error) {
	var h struct{ Dim, Hidden, Layers, Heads, Groups, Vocab, Positions int32 }
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, fmt.Errorf("the header of seven numbers: %w", err)
	}
	tied, vocab := h.Vocab > 0, max(int(h.Vocab), -int(h.Vocab))
	if h.Heads < 1 || h.Groups < 1 || h.Dim < 1 || h.Dim%h.Heads != 0 || h.Dim/h.Heads%2 != 0 {
		return 0, fmt.Errorf("the heads must have an even width and there must be at least one, got width %d, %d heads, %d for keys and values", h.Dim, h.Heads, h.Groups)
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
		return 0, err
	}
	if _, err := layers.NewDecoder(p.Blank(), c.Model); err != nil {
		return 0, err
	}
	read := func(name string) (*layers.Param, error) {
		q := p.Get(name)
		if err := binary.Read(r, binary.LittleEndian, q.Value.Float32s()); err != nil {
			return nil, fmt.Errorf("the values of %s: %w", name, err)
		}
		return q, nil
	}
	if _, err := read("embedding.weight"); err != nil {
		return 0, err
	}
	for _, part := range []string{
		"norm1", "attention.query", "attention.key", "attention.value", "attention.output",
		"norm2", "feedforward.gate", "feedforward.down", "feedforward.up",
	} {
		for i := range c.Model.Layers {
			q, err := read(fmt.Sprintf("blocks.%d.%s.weight", i, part))
			if err != nil {
				return 0, err
			}
			if part == "attention.query" || part == "attention.key" {
				halves(q.Value, c.Model.Dim/int(h.Heads))
			}
		}
	}
	if _, err := read("norm.weight"); err != nil {
		return 0, err
	}
	if !tied {
		angles := int64(h.Positions) * int64(h.Dim/h.Heads) * 4 // cosines and sines, which Rotary computes itself
		if _, err := io.CopyN(io.Discard, r, angles); err != nil {
			return 0, fmt.Errorf("the angles: %w", err)
		}
		if _, err := read("head.weight"); err != nil {
			return 0, err
		}
	}
	return vocab, pretrained.Save(dir, c, p)
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

// special lists the first pieces: unknown, start and end.
var special = []string{"<unk>", "<s>", "</s>"}

// bytePieces is the number of pieces for single bytes, which follow the special ones.
const bytePieces = 256

// tokenizerJSON returns the file tokenizer.json for a byte-pair encoding with scores.
func tokenizerJSON(r io.Reader, vocab int) ([]byte, error) {
	if _, err := io.CopyN(io.Discard, r, 4); err != nil { // the length of the longest piece
		return nil, err
	}
	pieces, scores, ids := make([]string, vocab), make([]float32, vocab), map[string]int{}
	for id := range pieces {
		var h struct {
			Score  float32
			Length int32
		}
		err := binary.Read(r, binary.LittleEndian, &h)
		if err == nil && (h.Length < 0 || h.Length > 1<<16) {
			err = fmt.Errorf("a piece can't have %d bytes", h.Length)
		}
		var piece []byte
		if err == nil {
			piece = make([]byte, h.Length)
			_, err = io.ReadFull(r, piece)
		}
		if err != nil {
			return nil, fmt.Errorf("piece %d of %d: %w", id, vocab, err)
		}
		pieces[id], scores[id] = strings.ReplaceAll(string(piece), " ", "▁"), h.Score
		if id < len(special) {
			pieces[id] = special[id]
		} else if id < len(special)+bytePieces {
			pieces[id] = fmt.Sprintf("<0x%02X>", id-len(special))
		}
		if _, twice := ids[pieces[id]]; twice {
			return nil, fmt.Errorf("piece %d: there is another piece %q", id, pieces[id])
		}
		ids[pieces[id]] = id
	}
	if vocab < len(special)+bytePieces {
		return nil, errors.New("there must be 3 special pieces and 256 pieces for bytes")
	}
	order := make([]int, 0, vocab) // ids of merged pieces, the highest score first
	for id := len(special) + bytePieces; id < vocab; id++ {
		order = append(order, id)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	merges := [][2]string{}
	for _, id := range order {
		for i := range pieces[id] { // at starts of characters
			left, right := pieces[id][:i], pieces[id][i:]
			if _, ok := ids[left]; ok {
				if _, ok := ids[right]; ok {
					merges = append(merges, [2]string{left, right})
				}
			}
		}
	}
	type object = map[string]any
	var added []object
	for id, piece := range special {
		added = append(added, object{"id": id, "content": piece, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
	}
	replace := func(old, new string) object {
		return object{"type": "Replace", "pattern": object{"String": old}, "content": new}
	}
	start := object{"SpecialToken": object{"id": "<s>", "type_id": 0}}
	return json.MarshalIndent(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "pre_tokenizer": nil,
		"normalizer": object{"type": "Sequence", "normalizers": []object{{"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")}},
		"post_processor": object{
			"type": "TemplateProcessing", "single": []object{start, {"Sequence": object{"id": "A", "type_id": 0}}},
			"pair":           []object{start, {"Sequence": object{"id": "A", "type_id": 0}}, {"Sequence": object{"id": "B", "type_id": 0}}},
			"special_tokens": object{"<s>": object{"id": "<s>", "ids": []int{1}, "tokens": []string{"<s>"}}},
		},
		"decoder": object{"type": "Sequence", "decoders": []object{
			replace("▁", " "), {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
		}},
		"model": object{
			"type": "BPE", "dropout": nil, "unk_token": "<unk>", "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": ids, "merges": merges,
		},
	}, "", " ")
}
