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

// The tokenizers of T5, mBART, mBART-50 and Pegasus. The reference library makes all steps anew, so the ones in a
// tokenizer.json don't count.

// languages has the codes of mBART-50's languages. mBART has the first 25.
var languages = strings.Fields("ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO " +
	"ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN " +
	"te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI")

// IsLanguage reports whether a token's name is the code of a language.
func IsLanguage(name string) bool { return slices.Contains(languages, name) }

// language returns the code of the language of texts.
func (s *settings) language() TokenName { return TokenName(cmp.Or(s.SourceLanguage, "en_XX")) }

// t5Parts sets the parts of T5's tokenizer, except the template.
func t5Parts(_ *settings, file format.Members) { pieces(file, words) }

// mbartParts sets the parts of mBART's tokenizer.
func mbartParts(s *settings, file format.Members) {
	file["normalizer"] = nil
	pieces(file, words)
	around(file, "", cmp.Or(s.End, "</s>"), s.language())
}

// mbart50Parts sets the parts of mBART-50's tokenizer.
func mbart50Parts(s *settings, file format.Members) {
	pieces(file, "", oneSpace)
	around(file, s.language(), "", cmp.Or(s.End, "</s>"))
}

// pegasusParts sets the parts of Pegasus' tokenizer.
func pegasusParts(s *settings, file format.Members) {
	steps := []string{oneSpace}
	if precompiled(file["normalizer"]) == nil {
		steps = []string{`{"type": "Replace", "pattern": {"Regex": "\\n"}, "content": " "}`, oneSpace}
	}
	pieces(file, "", steps...)
	around(file, "", cmp.Or(s.End, "</s>"))
}

const oneSpace = `{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}`

// pieces sets the steps from a text to pieces and back: the rules of a SentencePiece model, if the normalizer has them,
// more steps, and ▁ in place of spaces, after the step before.
func pieces(file format.Members, before string, steps ...string) {
	if rules := precompiled(file["normalizer"]); rules != nil {
		steps = slices.Insert(steps, 0, string(rules))
	}
	setNormalizer(file, steps)
	new(settings).setSpaces(file, "", before)
}

// around sets the template: the names of tokens, with the text, or two texts, in place of the empty name. It changes
// nothing if the file lacks a token.
func around(file format.Members, names ...TokenName) {
	var single, pair []item
	for _, name := range names {
		if name == "" {
			single, pair = append(single, item{"A", true, 0}), append(pair, item{"A", true, 0}, item{"B", true, 0})
		} else {
			single, pair = append(single, item{name: name}), append(pair, item{name: name})
		}
	}
	setTemplate(file)(template(idsIn(file), single, pair))
}

// offsetFile returns the tokenizer.json for a SentencePiece model of mBART, mBART-50 or Pegasus, whose ids differ from
// the model's.
func (s *settings) offsetFile(m *sentencepiece.File) (file format.File, err error) {
	model, rules := m.UnigramJSON()
	if model == nil || len(m.Pieces) < 4 {
		return file, errors.New("it must have at least 4 pieces and the model_type 1 (unigram) for this kind of tokenizer")
	}
	unknown, own := TokenName("<unk>"), model["vocab"].([][2]any)
	first, last := []TokenName{"<s>", "<pad>", "</s>", unknown}, append(slices.Clone(languages), "<mask>")
	skip, parts := 3, mbart50Parts
	switch s.family {
	case "mbart":
		last, parts = append(slices.Clone(languages[:25]), "<mask>"), mbartParts
	case "pegasus":
		first, last, skip, parts = []TokenName{"<pad>", "</s>", "<mask_1>", "<mask_2>"}, nil, 2, pegasusParts
		n, err := count("offset", s.Offset, 103, 2)
		if err != nil {
			return file, err
		}
		for i := range n - 2 {
			first = append(first, TokenName(fmt.Sprintf("<unk_%d>", i+2)))
		}
	}
	special := slices.Concat(first, []TokenName{unknown})
	var vocab [][2]any
	for _, name := range first {
		vocab = append(vocab, [2]any{name, 0.0})
	}
	vocab = append(vocab, own[skip:]...)
	for _, name := range last {
		vocab, special = append(vocab, [2]any{name, 0.0}), append(special, TokenName(name))
	}
	tokens := make([]string, len(vocab))
	for i, entry := range vocab {
		tokens[i] = fmt.Sprint(entry[0])
	}
	ids := &vocabIDs{tokens, map[TokenName]int{}}
	if model["unk_id"], _ = ids.id(unknown); model["unk_id"] == -1 {
		return file, fmt.Errorf("it must have the piece %s", unknown)
	}
	model["vocab"] = vocab
	if file.AddedTokens, err = s.addedTokens(ids, special...); err != nil {
		return file, err
	}
	return file, s.setParts(&file, model, rules, parts)
}

// setParts makes the other parts of the tokenizer.json for a SentencePiece model with its rules.
func (s *settings) setParts(file *format.File, model map[string]any, rules []byte, parts func(s *settings, file format.Members)) error {
	members := format.Members{}
	var err error
	if rules != nil {
		members["normalizer"], err = json.Marshal(map[string]any{"type": "Precompiled", "precompiled_charsmap": rules})
	}
	if err == nil {
		members["model"], err = json.Marshal(model)
	}
	if err == nil && len(file.AddedTokens) > 0 {
		members["added_tokens"], err = json.Marshal(file.AddedTokens)
	}
	if err != nil {
		return err
	}
	parts(s, members)
	file.Version, file.Model = "1.0", members["model"]
	file.Normalizer, file.PreTokenizer, file.Decoder = members["normalizer"], members["pre_tokenizer"], members["decoder"]
	if template := members["post_processor"]; template != nil {
		file.PostProcessor = template
	}
	return nil
}
