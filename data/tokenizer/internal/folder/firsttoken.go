package folder

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/sentencepiece"
)

// The tokenizers of ALBERT, DeBERTa and DeBERTa-v2 put [CLS] before a text and [SEP] after it, and MPNet's puts <s> and
// </s>. The reference library makes all steps anew, so the ones in a tokenizer.json don't count.

// firstLast returns the names of the tokens that begin and end a text.
func (s *settings) firstLast() (first, last TokenName) {
	return cmp.Or(s.Classify, "[CLS]"), cmp.Or(s.Separator, "[SEP]")
}

// template returns the template of a text and of two texts. With doubled, two tokens separate the texts.
func template(cls, sep [2]any, doubled bool, secondType int) map[string]any {
	token := func(t [2]any, typ int) any {
		return map[string]any{"SpecialToken": map[string]any{"id": t[0], "type_id": typ}}
	}
	text := func(name string, typ int) any {
		return map[string]any{"Sequence": map[string]any{"id": name, "type_id": typ}}
	}
	single := []any{token(cls, 0), text("A", 0), token(sep, 0)}
	pair := slices.Clone(single)
	if doubled {
		pair = append(pair, token(sep, 0))
	}
	special := map[string]any{}
	for _, t := range [][2]any{cls, sep} {
		special[fmt.Sprint(t[0])] = map[string]any{"id": t[0], "ids": t[1:], "tokens": t[:1]}
	}
	return map[string]any{"type": "TemplateProcessing", "single": single, "pair": append(pair, text("B", secondType), token(sep, secondType)), "special_tokens": special}
}

// setTemplate replaces the template of a tokenizer.json.
func (s *settings) setTemplate(file format.Members, doubled bool, secondType int) {
	first, last := s.firstLast()
	if cls, sep, ok := namedIn(file, first, last); ok {
		file["post_processor"], _ = json.Marshal(template(cls, sep, doubled, secondType))
	}
}

// namedIn returns the tokens that begin and end a text, with their ids in a tokenizer.json, and whether it has them.
func namedIn(file format.Members, first, last TokenName) (cls, sep [2]any, ok bool) {
	vocab, err := vocabOf(file["model"])
	added, other := format.AddedTokens(file["added_tokens"])
	if err != nil || other != nil { // the reader of the tokenizer.json reports it
		return cls, sep, false
	}
	ids := &vocabIDs{added: map[TokenName]int{}}
	for name, id := range vocab {
		ids.added[TokenName(name)] = id
	}
	for _, t := range added {
		ids.added[TokenName(t.Content)] = t.ID
	}
	cls, err = named(ids, first)
	sep, other = named(ids, last)
	return cls, sep, err == nil && other == nil
}

// mpnetParts sets the parts of MPNet's tokenizer.
func mpnetParts(s *settings, file format.Members) {
	bertParts(s, file)
	if cls, sep, ok := namedIn(file, cmp.Or(s.Classify, "<s>"), cmp.Or(s.Separator, "</s>")); ok {
		file["post_processor"], _ = json.Marshal(map[string]any{"type": "RobertaProcessing", "sep": sep, "cls": cls, "trim_offsets": true, "add_prefix_space": false})
	}
}

// debertaParts sets the parts of DeBERTa's tokenizer.
func debertaParts(s *settings, file format.Members) {
	byteLevelParts(s, file)
	s.setTemplate(file, true, 0)
}

// debertaV2Parts sets the parts of DeBERTa-v2's tokenizer.
func debertaV2Parts(s *settings, file format.Members) {
	steps := []string{`{"type": "Replace", "pattern": {"Regex": "\\s{2,}|[\\n\\r\\t]"}, "content": " "}`, `{"type": "NFC"}`,
		`{"type": "Strip", "strip_left": false, "strip_right": true}`}
	if s.LowerCase != nil && *s.LowerCase {
		steps = slices.Insert(steps, 0, `{"type": "Lowercase"}`)
	}
	scheme := "always"
	if s.PrefixSpace == "false" || s.PrefixSpace == "null" {
		scheme = "first"
	}
	space := s.unigramParts(file, steps, scheme)
	if s.SplitPunctuation {
		space = `{"type": "Punctuation", "behavior": "Isolated"}, ` + space
	}
	file["pre_tokenizer"] = json.RawMessage(`{"type": "Sequence", "pretokenizers": [` + space + "]}")
	s.setTemplate(file, false, 1)
}

// albertParts sets the parts of ALBERT's tokenizer, except the template.
func albertParts(s *settings, file format.Members) {
	steps := []string{"{\"type\": \"Replace\", \"pattern\": {\"String\": \"``\"}, \"content\": \"\\\"\"}", `{"type": "Replace", "pattern": {"String": "''"}, "content": "\""}`}
	if !s.KeepAccents {
		steps = append(steps, `{"type": "NFKD"}`, `{"type": "StripAccents"}`)
	}
	if s.LowerCase == nil || *s.LowerCase {
		steps = append(steps, `{"type": "Lowercase"}`)
	}
	if rules := precompiled(file["normalizer"]); rules != nil {
		steps = append(steps, string(rules))
	}
	scheme := "always"
	if s.PrefixSpace == "false" || s.PrefixSpace == "null" {
		scheme = "never"
	}
	space := s.unigramParts(file, steps, scheme)
	file["pre_tokenizer"] = json.RawMessage(`{"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, ` + space + "]}")
}

// unigramParts sets a normalizer of several steps and the decoder, and returns the step that puts ▁ in place of spaces.
func (s *settings) unigramParts(file format.Members, steps []string, scheme string) (space string) {
	file["normalizer"] = json.RawMessage(`{"type": "Sequence", "normalizers": [` + strings.Join(steps, ", ") + "]}")
	space = fmt.Sprintf(`{"type": "Metaspace", "replacement": "▁", "prepend_scheme": %q, "split": true}`, scheme)
	file["decoder"] = json.RawMessage(space)
	return space
}

// precompiled returns the first step of a normalizer that has the rules of a SentencePiece model, or nil.
func precompiled(normalizer json.RawMessage) json.RawMessage {
	var step struct {
		Type  string
		Steps []json.RawMessage `json:"normalizers"`
	}
	if json.Unmarshal(normalizer, &step) != nil {
		return nil
	}
	if step.Type == "Precompiled" {
		return normalizer
	}
	for _, inner := range step.Steps {
		if json.Unmarshal(inner, &step) == nil && step.Type == "Precompiled" {
			return inner
		}
	}
	return nil
}

// unigramFile returns the tokenizer.json for a SentencePiece model of ALBERT or DeBERTa-v2.
func (s *settings) unigramFile(m *sentencepiece.File) (file format.File, err error) {
	model, rules := m.UnigramJSON()
	if model == nil {
		return file, errors.New("its model_type must be 1 (unigram) for this kind of tokenizer")
	}
	ids := &vocabIDs{m.Pieces, map[TokenName]int{}}
	unknown, pad := TokenName("[UNK]"), TokenName("[PAD]")
	if s.family == "albert" {
		unknown, pad = "<unk>", "<pad>"
	}
	first, last := s.firstLast()
	special := []TokenName{cmp.Or(s.Begin, "[CLS]"), cmp.Or(s.End, "[SEP]"), cmp.Or(s.Unknown, unknown), last, cmp.Or(s.Pad, pad), first, cmp.Or(s.Mask, "[MASK]")}
	for id, piece := range m.Pieces {
		if m.Types[id] == sentencepiece.Control {
			special = append(special, TokenName(piece))
		}
	}
	next := len(m.Pieces) + len(s.added) + len(s.Added)
	for _, name := range special { // a token that the files lack has the next id
		_, listed := s.added[string(name)]
		for _, t := range s.Added {
			listed = listed || t.Content == string(name)
		}
		if _, ok := ids.id(name); !ok && !listed {
			ids.added[name], next = next, next+1
		}
	}
	if file.AddedTokens, err = s.addedTokens(ids, special...); err != nil {
		return file, err
	}
	for i, t := range file.AddedTokens {
		t := t.(format.AddedToken)
		if _, ok := s.added[t.Content]; ok && s.Added == nil { // unlike other special tokens, it is found in the normalised text
			t.Normalized = true
			file.AddedTokens[i] = t
		}
	}
	cls, err := named(ids, first)
	sep, other := named(ids, last)
	if err = cmp.Or(err, other); err != nil {
		return file, err
	}
	file.PostProcessor = template(cls, sep, false, 1)
	if s.family == "albert" {
		return file, s.setParts(&file, model, rules, albertParts)
	}
	return file, s.setParts(&file, model, rules, debertaV2Parts)
}
