package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// hostileParts has the parts that limits adds to a tokenizer.json. Its keys are the key of a part, and the key for the
// list of parts in a Sequence. For names with $, see filled.
var hostileParts = map[string][]string{
	"normalizer normalizers": {`{"type":"NFC"}`, `{"type":"NFKD"}`, `{"type":"Lowercase"}`, `{"type":"StripAccents"}`, `{"type":"Strip","strip_left":$B,"strip_right":$B}`,
		`{"type":"Prepend","prepend":$T}`, `{"type":"Replace","pattern":{"String":"a"},"content":$T}`, `{"type":"Replace","pattern":{"String":$T},"content":$T}`, `{"type":"Replace","pattern":{"Regex":" {2,}"},"content":$T}`,
		`{"type":"Precompiled","precompiled_charsmap":$C}`, `{"type":"Precompiled","precompiled_charsmap":$C}`, `{"type":"BertNormalizer","clean_text":$B,"handle_chinese_chars":$B,"strip_accents":$B,"lowercase":$B}`},
	"pre_tokenizer pretokenizers": {`{"type":"ByteLevel","add_prefix_space":$B,"trim_offsets":$B,"use_regex":$B}`, `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":$B}`,
		`{"type":"Metaspace","replacement":$T,"prepend_scheme":"first","split":$B}`, `{"type":"BertPreTokenizer"}`, `{"type":"WhitespaceSplit"}`, `{"type":"Digits","individual_digits":$B}`},
	"decoder decoders": {`{"type":"BPEDecoder","suffix":""}`, `{"type":"BPEDecoder","suffix":$T}`, `{"type":"ByteFallback"}`, `{"type":"Fuse"}`, `{"type":"WordPiece","prefix":$T,"cleanup":$B}`,
		`{"type":"Replace","pattern":{"String":"a"},"content":$T}`, `{"type":"Replace","pattern":{"String":$T},"content":$T}`, `{"type":"Strip","content":"a","start":$N,"stop":$N}`, `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":$B}`},
	"post_processor processors": {`{"type":"ByteLevel","add_prefix_space":$B,"trim_offsets":$B,"use_regex":$B}`, `{"type":"BertProcessing","sep":[$T,$N],"cls":["a",0]}`, `{"type":"RobertaProcessing","sep":["a",0],"cls":["a",0],"trim_offsets":$B,"add_prefix_space":$B}`,
		`{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":$N}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"x":{"id":"x","ids":[$N],"tokens":[$T]}}}`},
}

// limits returns changes that take a tokenizer.json to a limit of the format, or beyond it.
func (d drawer) limits(file dict) map[string]func() {
	model, _ := file["model"].(dict)
	vocab, _ := model["vocab"].(dict)
	list, _ := model["vocab"].([]any)
	add := func(tokens ...string) {
		for _, token := range tokens {
			if vocab == nil {
				list = append(list, []any{token, pick(d, -1, -2)})
				model["vocab"] = list
			} else if _, taken := vocab[token]; !taken {
				vocab[token] = len(vocab)
			}
		}
	}
	parts := func() {
		names := pick(d, slices.Sorted(maps.Keys(hostileParts))...)
		key, listKey, _ := strings.Cut(names, " ")
		list := slices.Repeat([]any{d.filled(pick(d, hostileParts[names]...))}, pick(d, 1, 1, 2, 3, 4, 12, 19, 20, 5000))
		for range pick(d, 0, 0, 0, 1, 2, 3, 900) {
			part := json.RawMessage(encoded(dict{"type": "Sequence", listKey: list}))
			if list = slices.Repeat([]any{part}, pick(d, 1, 1, 2, min(20, 1+20/len(list)))); len(part) > 1<<20 {
				break
			}
		}
		if file[key] != nil && d.flip() {
			list = append(list, file[key])
		}
		file[key] = dict{"type": "Sequence", listKey: list}
	}
	return map[string]func(){
		"parts": parts, "more parts": parts, "other parts": parts,
		"long tokens": func() {
			add(pick(d, "", "##", "▁") + strings.Repeat("a", pick(d, 1000, 2040, 2045, 2047, 2048, 2049)))
		},
		"many tokens": func() { add(d.texts(pick(d, "", "##", "▁"))...) },
		"merges": func() {
			if _, ok := model["merges"]; !ok {
				return
			}
			merges := []any{}
			for i := range pick(d, 3, 100, 2000) {
				left := pick(d, 1, i+1, (i+2)/2)
				add(strings.Repeat("a", i+1), strings.Repeat("a", i+2))
				merges = append(merges, []any{strings.Repeat("a", left), strings.Repeat("a", i+2-left)})
			}
			d.Shuffle(len(merges)*d.IntN(2), func(i, j int) { merges[i], merges[j] = merges[j], merges[i] })
			model["merges"] = merges
		},
		"added tokens": func() {
			added := []any{}
			normalized, left, right, word := d.flip(), d.flip(), d.flip(), d.flip()
			for i, text := range pick(d, d.texts(""), []string{"a", d.text()}, []string{" ", "\u0301", "  "}) {
				added = append(added, dict{"id": len(vocab) + len(list) + i, "content": text, "normalized": normalized, "lstrip": left, "rstrip": right, "single_word": word, "special": d.flip()})
			}
			file["added_tokens"] = added
		},
		"settings": func() {
			if d.IntN(4) == 0 {
				file["truncation"] = dict{"max_length": d.number(), "strategy": "LongestFirst", "stride": 0, "direction": pick(d, "Left", "Right")}
			}
			if list != nil {
				model["unk_id"] = pick[any](d, 0, 1, nil, d.number())
				for _, token := range list {
					token.([]any)[1] = pick[any](d, 0, -1, d.number())
				}
				return
			}
			model[pick(d, "continuing_subword_prefix", "end_of_word_suffix", "continuing_subword_prefix", "unk_token")] = d.text()
			if _, ok := model["max_input_chars_per_word"]; ok {
				model["max_input_chars_per_word"] = d.number()
				return
			}
			model[pick(d, "fuse_unk", "ignore_merges")] = d.flip()
			model["merges"], model["byte_fallback"] = []any{}, d.flip()
			for b := range pick(d, 0, 256) {
				add(fmt.Sprintf("<0x%02X>", b))
			}
		},
	}
}

// modelChanges returns changes of a SentencePiece model. Most add fields to it.
func (d drawer) modelChanges(model *[]byte) map[string]func() {
	add := func(fields ...[]byte) { *model = slices.Concat(*model, slices.Concat(fields...)) }
	pieces := func(texts ...string) {
		for _, text := range texts {
			add(piece(text, pick[uint64](d, 1, 1, 4, 5)))
		}
	}
	return map[string]func(){
		"byte": func() {
			*model = slices.Clone(*model)
			(*model)[d.IntN(len(*model))] = byte(d.Uint32())
		},
		"long pieces": func() {
			pieces(strings.Repeat(pick(d, "a", "é", "▁"), pick(d, 1000, 2666, 7999, 8000)/2), d.text()+"q", strings.Repeat("a", pick(d, 3998, 7998)))
		},
		"many pieces": func() {
			var fields []byte
			for _, text := range d.texts(pick(d, "▁", "aaa")) {
				fields = append(fields, piece(text, pick[uint64](d, 1, 4))...)
			}
			add(fields)
		},
		"unk_surface": func() { add(message(2, message(44, bytes.Repeat([]byte("a"), pick(d, 0, 1, 1000, 3<<20))))) },
		"charsmap":    func() { add(message(3, message(2, d.charsmap()))) },
		"settings": func() {
			add(message(2, varint(pick[protowire.Number](d, 3, 24), pick[uint64](d, 0, 1, 2, 1<<40))))
			add(message(3, varint(3+protowire.Number(d.IntN(3)), pick[uint64](d, 0, 1, 2, 1<<40))))
		},
	}
}

// intoFolder writes a tokenizer.json as a folder with vocab.txt, or with vocab.json and merges.txt, and changes lines.
func (d drawer) intoFolder(h *hostile, file dict) {
	model, _ := file["model"].(dict)
	vocab, _ := model["vocab"].(dict)
	merges, isBPE := model["merges"].([]any)
	name, class, lines := "vocab.txt", "Bert", []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]"}
	if isBPE {
		name, class, lines = "merges.txt", pick(d, "GPT2", "Roberta"), []string{"#version: 0.2"}
		h.files["vocab.json"] = encoded(vocab)
	} else {
		lines = append(lines, slices.Sorted(maps.Keys(vocab))...)
	}
	for _, merge := range merges {
		if both, ok := merge.([]any); ok && len(both) == 2 {
			merge = fmt.Sprint(both[0], " ", both[1])
		}
		lines = append(lines, fmt.Sprint(merge))
	}
	if d.flip() {
		lines[d.IntN(len(lines))] = d.text()
	}
	if d.IntN(4) == 0 {
		lines = append(lines, d.texts("b")...)
	}
	settings := dict{"do_lower_case": true, "tokenizer_class": class + "Tokenizer", "add_prefix_space": true, "added_tokens_decoder": dict{}}
	if d.IntN(3) == 0 {
		_, put := d.place(settings)
		put(d.text())
	}
	h.files[name], h.files["tokenizer_config.json"] = []byte(strings.Join(lines, "\n")), encoded(settings)
	h.recipe, h.name = h.recipe+", in a folder", "."
}

// largeParts are parts of a large tokenizer.json. The text between two @ is repeated. In each repetition, # becomes its
// number.
var largeParts = []string{
	`"model":{"type":"BPE","merges":[],"vocab":{@"#":#,@"a#":0}}`,
	`"model":{"type":"BPE","merges":[],"vocab":{@"#":#,@"last":-1}}`,
	`"model":{"type":"WordPiece","unk_token":"0","vocab":{@"#":#,@"0":#}}`,
	`"model":{"type":"Words","unk_token":"�","vocab":{@"#":#,@"�":#}}`,
	`"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"type":"WordLevel","unk_token":"�","vocab":{@"#":#,@"�":#}}`,
	`"model":{"type":"BPE","merges":[],"vocab":{@"a":0,@"a":0}}`,
	`"model":{"type":"Unigram","unk_id":0,"vocab":[@["#",0],@["a",0]]}`,
	`"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[@"a a",@"a a"]}`,
	`"model":{"type":"BPE","vocab":{"a":0},"merges":[@"",@""]}`,
	`"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[@["a","a"],@["a","a"]]}`,
	`"model":{"type":"BPE","vocab":{"a":0,"aa":1},"merges":[@null,@null]}`,
	`"added_tokens":[@{"id":#,"content":"x#"},@{"id":0,"content":"y"}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`,
	`"added_tokens":[@{},@{}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`,
	`"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":{"type":"TemplateProcessing","single":[@{},@{}]}`,
	`"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"post_processor":{"type":"TemplateProcessing","special_tokens":{"x":{"id":"x","ids":[@0,@0]}}}`,
	`"normalizer":{"type":"Prepend","prepend":"@a@"}`,
	`"model":{"type":"BPE","vocab":{"@\u0061@":0},"merges":[]}`,
	`"model":{"type":"BPE","vocab":{"a":0},@ @"merges":[]}`,
	`"decoder":[@[],@[]]`,
	`"decoder":[@[[[[[[[[]]]]]]]],@[]]`,
	`"model":[@{"a":{}},@{}]`,
	`"normalizer":{@"k#":0,@"k":0}`,
	`@"k#":0,@"k":0`,
	`"model":{"type":"BPE","vocab":{"a":@1@},"merges":[]}`,
	`"normalizer":{"type":"Sequence","normalizers":[@{"type":"NFC"},@{"type":"NFC"}]},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`,
	`"decoder":@[@`,
}

// large returns a tokenizer.json of up to 64 MB with a part of largeParts.
func (d drawer) large(part string) []byte {
	size := pick(d, 1<<20, 8<<20, 8<<20, 32<<20, 1<<26)
	texts := strings.Split(part, "@")
	file := append(make([]byte, 0, size), `{"version":"1.0",`+texts[0]...)
	if unit := texts[1]; !strings.Contains(unit, "#") {
		file = append(file, strings.Repeat(unit, size/len(unit)-30)...)
	}
	n := 0
	for ; len(file) < size-300; n++ {
		file = append(file, strings.ReplaceAll(texts[1], "#", fmt.Sprint(n))...)
	}
	return append(file, strings.ReplaceAll(texts[2], "#", fmt.Sprint(n))+"}"...)
}
