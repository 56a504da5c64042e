package folder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/sentencepiece"
	"github.com/heed-go/heed/internal/jsonkeys"
)

// settings are the keys of tokenizer_config.json and special_tokens_map.json that change ids.
type settings struct {
	Class            string    `json:"tokenizer_class"`
	LowerCase        *bool     `json:"do_lower_case"`
	Accents          *bool     `json:"strip_accents"`
	Chinese          *bool     `json:"tokenize_chinese_chars"`
	PrefixSpace      optional  `json:"add_prefix_space"`
	KeepAccents      bool      `json:"keep_accents"`
	SplitPunctuation bool      `json:"split_by_punct"`
	Legacy           *bool     `json:"legacy"`
	Side             string    `json:"truncation_side"`
	MaxLength        *float64  `json:"model_max_length"`
	CleanUp          bool      `json:"clean_up_tokenization_spaces"`
	CleanUpPairs     bool      `json:"clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"`
	AddBegin         *bool     `json:"add_bos_token"`
	AddEnd           *bool     `json:"add_eos_token"`
	ExtraIDs         *int      `json:"extra_ids"`
	SeparateVocabs   bool      `json:"separate_vocabs"`
	SourceLanguage   string    `json:"src_lang"`
	Offset           *int      `json:"offset"`
	Begin            TokenName `json:"bos_token"`
	End              TokenName `json:"eos_token"`
	Unknown          TokenName `json:"unk_token"`
	Separator        TokenName `json:"sep_token"`
	Pad              TokenName `json:"pad_token"`
	Classify         TokenName `json:"cls_token"`
	Mask             TokenName `json:"mask_token"`
	Added            map[string]struct {
		format.AddedToken
		ID json.RawMessage `json:"id"` // the key is the id
	} `json:"added_tokens_decoder"`

	family string         // one of families, or "" if no file names it
	added  map[string]int // the content of added_tokens.json
}

// optional is a boolean as JSON: "true", "false" or "null"; "" if it is missing.
type optional string

func (o *optional) UnmarshalJSON(value []byte) error {
	if *o = optional(value); *o != "true" && *o != "false" && *o != "null" {
		return fmt.Errorf("add_prefix_space must be true or false, got %.100s", value)
	}
	return nil
}

// TokenName is the name of a token, in the form "<s>" or {"content": "<s>"}; "" if the value is null.
type TokenName string

func (n *TokenName) UnmarshalJSON(value []byte) error {
	var token struct{ Content string }
	if json.Unmarshal(value, (*string)(n)) == nil {
		return nil
	}
	if err := json.Unmarshal(value, &token); err != nil {
		return fmt.Errorf("a special token must be a string or have a content, got %.100s", value)
	}
	*n = TokenName(token.Content)
	return nil
}

// families has the family of tokenizers for each tokenizer_class and each model_type. A tokenizer_class is in lower
// case, without "tokenizer" and "fast".
var families = map[string]string{
	"bert": "bert", "distilbert": "bert", "electra": "bert", "mobilebert": "bert",
	"gpt2": "gpt2", "roberta": "roberta",
	"llama": "llama", "mistral": "llama", "gemma": "llama", "gemma2": "llama", "t5": "t5", "mt5": "t5", "umt5": "t5",
	"marian": "marian", "mbart": "mbart", "mbart50": "mbart50", "pegasus": "pegasus", "bart": "roberta",
	"albert": "albert", "deberta": "deberta", "debertav2": "debertav2", "deberta-v2": "debertav2",
}

// readAll reads the settings of a folder. It returns an error if they name a family of tokenizers that isn't in
// allowed.
func readAll(folder fs.FS, allowed ...string) (s settings, err error) {
	var config struct {
		Type string `json:"model_type"`
	}
	err = errors.Join(
		readSettings(folder, "special_tokens_map.json", &s), readSettings(folder, "tokenizer_config.json", &s),
		readSettings(folder, "added_tokens.json", &s.added), readSettings(folder, "config.json", &config))
	if err != nil {
		return s, err
	}
	name := strings.TrimSuffix(strings.TrimSuffix(s.Class, "Fast"), "Tokenizer")
	if name == "" || name == "PreTrained" {
		name = config.Type
	}
	if name == "" {
		return s, nil
	}
	if s.family = families[strings.ToLower(name)]; !slices.Contains(allowed, s.family) {
		return s, fmt.Errorf("the folder's tokenizer_config.json or config.json says that the tokenizer is %.100q's, which isn't supported without a tokenizer.json", name)
	}
	return s, nil
}

// vocabIDs finds the ids of the tokens that settings name.
type vocabIDs struct {
	tokens []string          // the vocabulary
	added  map[TokenName]int // ids of added tokens; they come before the vocabulary
}

// id returns the id of a token, and whether it has one.
func (v *vocabIDs) id(name TokenName) (int, bool) {
	id, ok := v.added[name]
	if !ok {
		id = slices.Index(v.tokens, string(name))
	}
	return id, id >= 0 && name != ""
}

// addedTokens returns the added tokens of the settings, and adds them to ids.
func (s *settings) addedTokens(ids *vocabIDs, special ...TokenName) ([]any, error) {
	if n := len(special) + len(s.added) + len(s.Added); n > format.MaxAddedTokens {
		return nil, fmt.Errorf("it must have at most %d special and added tokens, got %d", format.MaxAddedTokens, n)
	}
	tokens := map[int]format.AddedToken{}
	isSpecial := map[TokenName]bool{}
	for _, name := range special {
		isSpecial[name] = true
		if id, ok := ids.id(name); ok {
			tokens[id] = format.AddedToken{ID: id, Content: string(name), Special: true}
		}
	}
	for name, id := range s.added {
		found := isSpecial[TokenName(name)]
		tokens[id] = format.AddedToken{ID: id, Content: name, Normalized: !found, Special: found}
	}
	if err := s.addTokens(tokens); err != nil {
		return nil, err
	}
	list := []any{}
	for _, id := range slices.Sorted(maps.Keys(tokens)) {
		list = append(list, tokens[id])
		ids.added[TokenName(tokens[id].Content)] = id
	}
	return list, nil
}

// addTokens adds the tokens of added_tokens_decoder to tokens by their ids.
func (s *settings) addTokens(tokens map[int]format.AddedToken) error {
	for key, t := range s.Added {
		id, err := strconv.Atoi(key)
		if err != nil {
			return fmt.Errorf("tokenizer_config.json: a key of added_tokens_decoder must be an id, got %.100q", key)
		}
		t.AddedToken.ID = id
		tokens[id] = t.AddedToken
	}
	return nil
}

// named returns a token and its id, in the form of a template.
func named(ids *vocabIDs, name TokenName) ([2]any, error) {
	id, ok := ids.id(name)
	if !ok {
		return [2]any{}, fmt.Errorf("the vocabulary has no special token %.100q, which begins or ends a text", name)
	}
	return [2]any{name, id}, nil
}

// processing returns the template of a type that has two tokens, as in BERT and RoBERTa.
func processing(typ string, ids *vocabIDs, first, last TokenName, prefixSpace bool) (map[string]any, error) {
	cls, err := named(ids, first)
	sep, other := named(ids, last)
	t := map[string]any{"type": typ, "sep": sep, "cls": cls}
	if typ == "RobertaProcessing" {
		t["trim_offsets"], t["add_prefix_space"] = true, prefixSpace
	}
	return t, cmp.Or(err, other)
}

// count returns a number in tokenizer_config.json, or the usual one if it is missing.
func count(key string, number *int, usual, least int) (int, error) {
	if number == nil {
		return usual, nil
	}
	if *number < least || *number > sentencepiece.MaxPieces {
		return 0, fmt.Errorf("tokenizer_config.json: %s must be from %d to %d, got %d", key, least, sentencepiece.MaxPieces, *number)
	}
	return *number, nil
}

// wordPieceFile returns the tokenizer.json for a vocab.txt.
func wordPieceFile(folder fs.FS, content []byte) (file format.File, err error) {
	s, err := readAll(folder, "bert")
	if err != nil {
		return file, err
	}
	if !utf8.Valid(content) {
		return file, errors.New("a vocab.txt must be UTF-8 text with a token per line")
	}
	if n := strings.Count(string(content), "\n"); n >= sentencepiece.MaxPieces {
		return file, fmt.Errorf("a vocab.txt must have fewer than %d lines, got %d", sentencepiece.MaxPieces, n)
	}
	var tokens []string
	lines := map[string]int32{} // the last line of each token
	for line := range strings.Lines(string(content)) {
		token := strings.TrimRight(line, "\r\n")
		lines[token] = int32(len(tokens))
		tokens = append(tokens, token)
	}
	vocab := make(format.Vocab, len(tokens))
	for id, token := range tokens {
		if lines[token] == int32(id) { // if a token is in several lines, the last one counts
			vocab[id] = token
		}
	}
	ids := &vocabIDs{vocab, map[TokenName]int{}}
	unknown := cmp.Or(s.Unknown, "[UNK]")
	first, last := cmp.Or(s.Classify, "[CLS]"), cmp.Or(s.Separator, "[SEP]")
	added, err := s.addedTokens(ids, unknown, first, last, cmp.Or(s.Pad, "[PAD]"), cmp.Or(s.Mask, "[MASK]"))
	ends, other := processing("BertProcessing", ids, first, last, false)
	if err = cmp.Or(err, other); err != nil {
		return file, err
	}
	return format.File{
		Version: "1.0", AddedTokens: added,
		Normalizer:    s.bertNormalizer(),
		PreTokenizer:  map[string]any{"type": "BertPreTokenizer"},
		PostProcessor: ends,
		Decoder:       map[string]any{"type": "WordPiece", "prefix": "##", "cleanup": true},
		Model: map[string]any{"type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
			"max_input_chars_per_word": 100, "vocab": vocab},
	}, nil
}

// byteLevelFile returns the tokenizer.json for a vocab.json and the merges.txt in the same folder.
func byteLevelFile(folder fs.FS, content []byte) (file format.File, err error) {
	s, err := readAll(folder, "gpt2", "roberta", "deberta")
	if err != nil {
		return file, err
	}
	text, err := ReadFile(folder, "merges.txt")
	if err != nil {
		return file, fmt.Errorf("a vocab.json needs a merges.txt beside it: %w", err)
	}
	if !utf8.Valid(text) {
		return file, errors.New("merges.txt must be UTF-8 text with two tokens per line")
	}
	if err := jsonkeys.Check(content, nil); err != nil {
		return file, err
	}
	vocab, err := format.Members{"vocab": bytes.TrimSpace(content)}.TakeVocab()
	if err != nil {
		return file, fmt.Errorf("a vocab.json must be an object with an integer id for each token: %w", err)
	}
	merges := []string{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return file, fmt.Errorf("merges.txt: line %d must be two tokens with a space between them, got %.100q", n, line)
		}
		if merges = append(merges, line); len(merges) > sentencepiece.MaxPieces {
			return file, fmt.Errorf("merges.txt must have at most %d merges", sentencepiece.MaxPieces)
		}
	}
	ids := &vocabIDs{vocab, map[TokenName]int{}}
	prefixed := s.PrefixSpace == "true"
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": prefixed, "trim_offsets": s.family == "roberta", "use_regex": true}
	file = format.File{
		Version: "1.0", PreTokenizer: level, PostProcessor: level, Decoder: level,
		Model: map[string]any{"type": "BPE", "vocab": json.RawMessage(content), "merges": merges},
	}
	if s.family == "deberta" {
		first, last := s.firstLast()
		file.AddedTokens, err = s.addedTokens(ids, cmp.Or(s.Begin, "[CLS]"), cmp.Or(s.End, "[SEP]"), cmp.Or(s.Unknown, "[UNK]"), first, last, cmp.Or(s.Pad, "[PAD]"), cmp.Or(s.Mask, "[MASK]"))
		if err == nil {
			file.PostProcessor, err = s.firstTemplate(ids, true, 0)
		}
		return file, err
	}
	if s.family != "roberta" {
		const end = "<|endoftext|>"
		file.AddedTokens, err = s.addedTokens(ids, cmp.Or(s.Begin, end), cmp.Or(s.End, end), cmp.Or(s.Unknown, end), s.Pad)
		return file, err
	}
	first, last, mask := cmp.Or(s.Classify, "<s>"), cmp.Or(s.Separator, "</s>"), cmp.Or(s.Mask, "<mask>")
	file.AddedTokens, err = s.addedTokens(ids, cmp.Or(s.Begin, "<s>"), cmp.Or(s.End, "</s>"), cmp.Or(s.Unknown, "<unk>"), first, last, cmp.Or(s.Pad, "<pad>"), mask)
	for i, t := range file.AddedTokens {
		if t := t.(format.AddedToken); t.Content == string(mask) && s.Added == nil {
			t.LeftStrip = true // the mask takes the space before it
			file.AddedTokens[i] = t
		}
	}
	if err == nil {
		file.PostProcessor, err = processing("RobertaProcessing", ids, first, last, prefixed)
	}
	return file, err
}

// marianFile returns the tokenizer.json for one of Marian's two SentencePiece models. The pieces have the ids of
// vocab.json or, if the target has a vocabulary of its own, of target_vocab.json.
func marianFile(folder fs.FS, name string, proto []byte) (file format.File, err error) {
	s, err := readAll(folder, "marian")
	if err != nil {
		return file, err
	}
	vocabFile := "vocab.json"
	if s.SeparateVocabs && name == TargetModel {
		vocabFile = targetVocab
	}
	content, err := ReadFile(folder, vocabFile)
	if err == nil {
		err = jsonkeys.Check(content, nil)
	}
	var vocab []string
	if err == nil {
		content = bytes.TrimSpace(content)
		vocab, err = format.Members{"vocab": content}.TakeVocab()
	}
	if err != nil {
		return file, fmt.Errorf("%s, which has the ids of the pieces: %w", vocabFile, err)
	}
	ids, end := &vocabIDs{vocab, map[TokenName]int{}}, cmp.Or(s.End, "</s>")
	unknown := cmp.Or(s.Unknown, "<unk>")
	file = format.File{Version: "1.0", Model: sentencepiece.JSON{Type: "SentencePiece", Proto: proto, Vocab: content, Unknown: string(unknown)}}
	if file.AddedTokens, err = s.addedTokens(ids, end, unknown, cmp.Or(s.Pad, "<pad>")); err != nil {
		return file, err
	}
	file.PostProcessor, err = textTemplate(ids, "", end, 0)
	return file, err
}

// modelFile returns the tokenizer.json for a SentencePiece model.
func modelFile(folder fs.FS, proto []byte) (file format.File, err error) {
	s, err := readAll(folder, "llama", "t5", "albert", "debertav2", "mbart", "mbart50", "pegasus")
	if err != nil {
		return file, err
	}
	m, err := sentencepiece.Parse(proto)
	if err != nil {
		return file, err
	}
	if s.family == "albert" || s.family == "debertav2" {
		return s.unigramFile(m)
	}
	if s.family == "mbart" || s.family == "mbart50" || s.family == "pegasus" {
		return s.offsetFile(m)
	}
	file = format.File{Version: "1.0", Model: sentencepiece.JSON{Type: "SentencePiece", Proto: proto}}
	ids := &vocabIDs{m.Pieces, map[TokenName]int{}}
	if s.family == "t5" {
		s.Unknown = cmp.Or(s.Unknown, "<unk>")
	}
	special := []TokenName{s.Begin, s.End, s.Unknown, s.Pad}
	for id, piece := range m.Pieces {
		if m.Types[id] == sentencepiece.Control {
			special, ids.added[TokenName(piece)] = append(special, TokenName(piece)), id
		}
	}
	if s.family == "t5" && s.Added == nil {
		n, err := count("extra_ids", s.ExtraIDs, 100, 0)
		if err != nil {
			return file, err
		}
		for i := range n { // the names count down
			name := TokenName(fmt.Sprintf("<extra_id_%d>", n-1-i))
			ids.added[name] = len(m.Pieces) + i
			special = append(special, name)
		}
	}
	if file.AddedTokens, err = s.addedTokens(ids, special...); err != nil {
		return file, err
	}
	first, last, second := TokenName(""), TokenName(""), 1
	if s.family == "llama" && (s.AddBegin == nil || *s.AddBegin) {
		first = cmp.Or(s.Begin, "<s>")
	}
	if s.family == "t5" || s.family == "llama" && s.AddEnd != nil && *s.AddEnd {
		last = cmp.Or(s.End, "</s>")
	}
	if s.family == "t5" {
		second = 0
	}
	file.PostProcessor, err = textTemplate(ids, first, last, second)
	if model, rules := m.UnigramJSON(); s.family == "t5" && model != nil && err == nil {
		err = s.setParts(&file, model, rules, t5Parts)
	}
	return file, err
}

// textTemplate returns a template that puts the token first before each text, and the token last after each text,
// unless they are empty. It returns nil if both are. The tokens of the second text have the type secondType.
func textTemplate(ids *vocabIDs, first, last TokenName, secondType int) (any, error) {
	if first == "" && last == "" {
		return nil, nil
	}
	text := func(name TokenName, typ int) []item {
		return slices.DeleteFunc([]item{{first, false, typ}, {name, true, typ}, {last, false, typ}}, func(x item) bool { return x.name == "" })
	}
	single := text("A", 0)
	return template(ids, single, slices.Concat(single, text("B", secondType)))
}
