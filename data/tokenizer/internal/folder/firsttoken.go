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

// An item of a template is a token or a text, A or B.
type item struct {
	name TokenName
	text bool
	typ  int
}

// template returns the template for one text and for two texts.
func template(ids *vocabIDs, single, pair []item) (_ map[string]any, err error) {
	special := map[string]any{}
	list := func(items []item) []any {
		list := []any{}
		for _, x := range items {
			kind := "Sequence"
			if !x.text {
				token, failed := named(ids, x.name)
				err = cmp.Or(err, failed)
				kind, special[string(x.name)] = "SpecialToken", map[string]any{"id": x.name, "ids": token[1:], "tokens": token[:1]}
			}
			list = append(list, map[string]any{kind: map[string]any{"id": x.name, "type_id": x.typ}})
		}
		return list
	}
	return map[string]any{"type": "TemplateProcessing", "single": list(single), "pair": list(pair), "special_tokens": special}, err
}

// firstTemplate returns the template with [CLS] and [SEP]. With doubled, two tokens separate texts.
func (s *settings) firstTemplate(ids *vocabIDs, doubled bool, secondType int) (map[string]any, error) {
	first, last := s.firstLast()
	single := []item{{name: first}, {"A", true, 0}, {name: last}}
	pair := slices.Clone(single)
	if doubled {
		pair = append(pair, item{name: last})
	}
	return template(ids, single, append(pair, item{"B", true, secondType}, item{last, false, secondType}))
}

// setTemplate replaces the template of a tokenizer.json, unless an error says that the file lacks a token.
func setTemplate(file format.Members) func(template any, err error) {
	return func(template any, err error) {
		if err == nil {
			file["post_processor"], _ = json.Marshal(template)
		}
	}
}

// idsIn returns the ids of a tokenizer.json. If it is malformed, which its reader reports, there are none.
func idsIn(file format.Members) *vocabIDs {
	vocab, err := vocabOf(file["model"])
	added, other := format.AddedTokens(file["added_tokens"])
	ids := &vocabIDs{added: map[TokenName]int{}}
	if err != nil || other != nil {
		return ids
	}
	for name, id := range vocab {
		ids.added[TokenName(name)] = id
	}
	for _, t := range added {
		ids.added[TokenName(t.Content)] = t.ID
	}
	return ids
}

// mpnetParts sets the parts of MPNet's tokenizer.
func mpnetParts(s *settings, file format.Members) {
	bertParts(s, file)
	setTemplate(file)(processing("RobertaProcessing", idsIn(file), cmp.Or(s.Classify, "<s>"), cmp.Or(s.Separator, "</s>"), false))
}

// debertaParts sets the parts of DeBERTa's tokenizer.
func debertaParts(s *settings, file format.Members) {
	byteLevelParts(s, file)
	setTemplate(file)(s.firstTemplate(idsIn(file), true, 0))
}

// debertaV2Parts sets the parts of DeBERTa-v2's tokenizer.
func debertaV2Parts(s *settings, file format.Members) {
	steps := []string{`{"type": "Replace", "pattern": {"Regex": "\\s{2,}|[\\n\\r\\t]"}, "content": " "}`, `{"type": "NFC"}`,
		`{"type": "Strip", "strip_left": false, "strip_right": true}`}
	if s.LowerCase != nil && *s.LowerCase {
		steps = slices.Insert(steps, 0, `{"type": "Lowercase"}`)
	}
	setNormalizer(file, steps)
	if s.setSpaces(file, "first", ""); s.SplitPunctuation {
		s.setSpaces(file, "first", `{"type": "Punctuation", "behavior": "Isolated"}`)
	}
	setTemplate(file)(s.firstTemplate(idsIn(file), false, 1))
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
	setNormalizer(file, steps)
	s.setSpaces(file, "never", words)
}

// setNormalizer sets a normalizer of several steps, or of none.
func setNormalizer(file format.Members, steps []string) {
	if file["normalizer"] = json.RawMessage("null"); len(steps) > 0 {
		file["normalizer"] = json.RawMessage(`{"type": "Sequence", "normalizers": [` + strings.Join(steps, ", ") + "]}")
	}
}

const words = `{"type": "WhitespaceSplit"}` // white space separates pieces, and isn't in them

// setSpaces sets the steps that put ▁ in place of spaces and back. The argument before is the step before them, or "",
// and scheme says where texts get a ▁ without add_prefix_space.
func (s *settings) setSpaces(file format.Members, scheme, before string) {
	if s.PrefixSpace != "false" && s.PrefixSpace != "null" {
		scheme = "always"
	}
	space := fmt.Appendf(nil, `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": %q, "split": true}`, scheme)
	if file["decoder"], file["pre_tokenizer"] = space, space; before != "" {
		file["pre_tokenizer"] = sequence("pretokenizers", before, space)
	}
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
	parts := debertaV2Parts
	if s.family == "albert" {
		parts = albertParts
	}
	if file.PostProcessor, err = s.firstTemplate(ids, false, 1); err != nil {
		return file, err
	}
	return file, s.setParts(&file, model, rules, parts)
}
