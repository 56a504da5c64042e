package folder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/jsonkeys"
)

// modelClasses has the class of tokenizers for each model_type, as in transformers 5.24. In "any", the class decides
// nothing: the tokenizer.json does. A type without an entry leaves the choice to tokenizer_class.
var modelClasses = map[string]string{
	"bert": "Bert", "distilbert": "Bert", "electra": "Bert", "mpnet": "MPNet", "gpt2": "GPT2", "gpt_neo": "GPT2", "opt": "GPT2",
	"gpt_neox": "GPTNeoX", "qwen2": "Qwen2", "qwen3": "Qwen2", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert",
	"gemma": "Gemma", "gemma2": "Gemma", "gemma3_text": "Gemma", "t5": "T5", "mt5": "T5", "umt5": "any", "bart": "Roberta", "mbart": "MBart", "pegasus": "Pegasus", "albert": "Albert", "deberta": "Deberta", "deberta-v2": "DebertaV2", "mistral": "any", "modernbert": "any",
}

// wholeClasses has the classes that take only the vocabulary, the merges and the template of a tokenizer.json, and make
// its other parts themselves. The functions set the parts that settings change. A tokenizer.json with another type of
// model stays as it is.
var wholeClasses = map[string]struct {
	model string
	parts func(s *settings, file format.Members)
}{
	"Bert": {"WordPiece", bertParts}, "DistilBert": {"WordPiece", bertParts}, "Electra": {"WordPiece", bertParts}, "MPNet": {"WordPiece", mpnetParts},
	"GPT2": {"BPE", byteLevelParts}, "Roberta": {"BPE", byteLevelParts}, "GPTNeoX": {"BPE", neoxParts}, "Qwen2": {"BPE", qwenParts},
	"Llama": {"BPE", llamaParts}, "XLMRoberta": {"Unigram", metaspaceParts}, "Camembert": {"Unigram", metaspaceParts},
	"Deberta": {"BPE", debertaParts}, "DebertaV2": {"Unigram", debertaV2Parts}, "Albert": {"Unigram", albertParts},
	"Bart": {"BPE", byteLevelParts}, "T5": {"Unigram", t5Parts}, "MBart": {"Unigram", mbartParts}, "MBart50": {"Unigram", mbart50Parts}, "Pegasus": {"Unigram", pegasusParts},
}

// modelType returns the type of a tokenizer.json's model. Older files leave it out.
func modelType(model format.Members) string {
	switch typ := string(model["type"]); {
	case typ != "":
		return strings.Trim(typ, `"`)
	case model["merges"] != nil:
		return "BPE"
	case strings.HasPrefix(string(model["vocab"]), "["):
		return "Unigram"
	}
	return "WordPiece"
}

// class returns the class of tokenizers that the reference library chooses for a folder, without "Tokenizer" and
// "Fast". It is "any" if the tokenizer.json alone decides.
func (s *settings) class(modelType string, bytes bool) string {
	known, trusted := modelClasses[modelType], modelType != "qwen2" // published folders of this type name wrong classes
	name := strings.TrimSuffix(strings.TrimSuffix(s.Class, "Fast"), "Tokenizer")
	switch {
	case known == "any", name == "Llama" && bytes && trusted:
		return "any"
	case name == "" || known != "" && !trusted:
		return cmp.Or(known, "any")
	}
	return name
}

// beside has the settings beside a tokenizer.json.
type beside struct {
	settings // of tokenizer_config.json; zero if there is no such file
	exists   bool
	config   struct {
		Type  string `json:"model_type"`
		Class string `json:"tokenizer_class"`
	}
	sentence struct { // of sentence_bert_config.json
		Length    *int `json:"max_seq_length"`
		LowerCase bool `json:"do_lower_case"`
	}
}

func readBeside(folder fs.FS) (b beside, err error) {
	const settingsFile, sentenceFile = "tokenizer_config.json", "sentence_bert_config.json"
	err = cmp.Or(readSettings(folder, settingsFile, &b.settings), readSettings(folder, "config.json", &b.config), readSettings(folder, sentenceFile, &b.sentence))
	_, missing := fs.Stat(folder, settingsFile)
	b.exists, b.Class = missing == nil, cmp.Or(b.Class, b.config.Class)
	switch length, limit := b.sentence.Length, b.MaxLength; {
	case err != nil:
	case length != nil && *length < 1:
		err = fmt.Errorf("%s: its max_seq_length must be at least 1, got %d", sentenceFile, *length)
	case limit != nil && *limit < 1:
		err = fmt.Errorf("%s: its model_max_length must be at least 1, got %g", settingsFile, *limit)
	case b.Side != "" && b.Side != "left" && b.Side != "right":
		err = fmt.Errorf("%s: its truncation_side must be left or right, got %.100q", settingsFile, b.Side)
	}
	return b, err
}

// adjust changes a tokenizer.json as the reference library does after it has read other files of the folder. The
// argument whole says that the folder's own tokenizer.json is changed, not one that has been made of other files.
// Without a tokenizer_config.json, the class of tokenizers doesn't count, unlike in the reference library: only the
// tokenizer.json describes the tokenizer then.
func adjust(folder fs.FS, content []byte, whole bool) ([]byte, error) {
	s, err := readBeside(folder)
	if err != nil {
		return nil, err
	}
	if !s.exists && s.sentence.Length == nil && !s.sentence.LowerCase { // nothing to parse for
		return content, nil
	}
	if err := jsonkeys.Check(content, nil); err != nil {
		return nil, fmt.Errorf("a tokenizer's file must be a tokenizer.json: %w", err)
	}
	file, err := format.Object(content)
	if err != nil {
		return nil, fmt.Errorf("a tokenizer.json: %w", err)
	}
	parts, err := format.Object(file["model"])
	if err != nil {
		return content, nil // the reader of the tokenizer.json reports it
	}
	model, before := modelType(parts), maps.Clone(file)
	if whole && s.exists {
		class := wholeClasses[s.class(s.config.Type, strings.Contains(string(file["pre_tokenizer"]), `"ByteLevel"`))]
		if class.model == model {
			class.parts(&s.settings, file)
		}
		if err := s.addTo(file, class.model == model); err != nil {
			return nil, err
		}
	}
	if s.sentence.LowerCase {
		file["normalizer"] = sequence("normalizers", `{"type": "Lowercase"}`, file["normalizer"])
	}
	if length := s.sentence.Length; length != nil || s.exists {
		if length == nil && s.MaxLength != nil && *s.MaxLength < math.MaxInt32 { // a greater number stands for none
			n := int(*s.MaxLength)
			length = &n
		}
		s.cut(file, length)
	}
	if err := s.cleanUp(file, model); err != nil {
		return nil, err
	}
	if maps.EqualFunc(before, file, func(x, y json.RawMessage) bool { return string(x) == string(y) }) {
		return content, nil
	}
	return json.Marshal(file)
}

// cut sets the truncation: the length, or nil for none, and the side.
func (s *settings) cut(file format.Members, length *int) {
	var old struct{ Direction string }
	_ = json.Unmarshal(file["truncation"], &old) // the reader of the tokenizer.json reports errors
	if length == nil && s.Side != "left" && (file["truncation"] == nil || string(file["truncation"]) == "null") {
		return
	}
	direction := cmp.Or(map[string]string{"left": "Left", "right": "Right"}[s.Side], old.Direction, "Right")
	limit := math.MaxInt32
	if length != nil {
		limit = *length
	}
	file["padding"] = json.RawMessage("null")
	file["truncation"] = fmt.Appendf(nil, `{"direction": %q, "max_length": %d, "strategy": "LongestFirst", "stride": 0}`, direction, limit)
}

// cleanUp lets the decoder remove spaces before punctuation if the settings ask for it. The reference library doesn't
// with byte pairs, unless another setting forces it.
func (s *settings) cleanUp(file format.Members, model string) error {
	if !s.CleanUp || model == "BPE" && !s.CleanUpPairs || model == "SentencePiece" {
		return nil
	}
	if decoder := string(file["decoder"]); decoder == "" || decoder == "null" {
		return fmt.Errorf("tokenizer_config.json: clean_up_tokenization_spaces true isn't supported for a tokenizer.json without a decoder")
	}
	steps := []string{string(file["decoder"]), `{"type": "Fuse"}`}
	for _, pair := range [][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}} {
		steps = append(steps, fmt.Sprintf(`{"type": "Replace", "pattern": {"String": %q}, "content": %q}`, pair[0], pair[1]))
	}
	file["decoder"] = json.RawMessage(`{"type": "Sequence", "decoders": [` + strings.Join(steps, ", ") + "]}")
	return nil
}

// sequence returns a Sequence of a step and, unless it is null, the step after it.
func sequence(name, first string, second json.RawMessage) json.RawMessage {
	if old := string(second); old != "" && old != "null" {
		first += ", " + old
	}
	return fmt.Appendf(nil, `{"type": "Sequence", %q: [%s]}`, name, first)
}

// addTo adds the tokens of added_tokens_decoder to those of a tokenizer.json. If the class makes the tokenizer anew,
// they come first; otherwise the file's come first. Of two tokens with the same content, the first one counts. A new
// token gets the id that it has in the vocabulary, or the next free one, whatever its key is.
func (s *settings) addTo(file format.Members, anew bool) error {
	if s.Added == nil {
		return nil
	}
	old, err := format.AddedTokens(file["added_tokens"])
	if err != nil {
		return err
	}
	ids, next := map[string]int{}, 0
	for _, t := range old {
		ids[t.Content], next = t.ID, max(next, t.ID+1)
	}
	wanted := map[int]format.AddedToken{}
	if err := s.addTokens(wanted); err != nil {
		return err
	}
	unknown := false
	for _, t := range wanted {
		_, known := ids[t.Content]
		unknown = unknown || !known
	}
	if unknown {
		vocab, err := vocabOf(file["model"])
		if err != nil {
			return err
		}
		next = max(next, len(vocab))
		maps.Copy(vocab, ids)
		ids = vocab
	}
	var added []format.AddedToken
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		t, known := wanted[key], false
		if t.ID, known = ids[t.Content]; !known {
			t.ID, ids[t.Content], next = next, next, next+1
		}
		added = append(added, t)
	}
	if anew { // the special ones of old are added again, because settings such as pad_token name them
		old = slices.DeleteFunc(old, func(t format.AddedToken) bool { return !t.Special })
		old, added = added, old
	}
	var list []format.AddedToken
	seen := map[string]bool{}
	for _, t := range slices.Concat(old, added) {
		if !seen[t.Content] {
			seen[t.Content], list = true, append(list, t)
		}
	}
	file["added_tokens"], err = json.Marshal(list)
	return err
}

// vocabOf returns the ids of a model's vocabulary.
func vocabOf(part json.RawMessage) (map[string]int, error) {
	model, err := format.Object(part)
	if err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	ids := map[string]int{}
	if vocab := model["vocab"]; len(vocab) == 0 || vocab[0] != '[' {
		names, err := model.TakeVocab()
		for id, name := range names {
			if name != "" {
				ids[name] = id
			}
		}
		return ids, err
	}
	err = jsonkeys.Elements(model["vocab"], func(piece []byte) error {
		var entry []any // a name and a score
		if err := json.Unmarshal(piece, &entry); err != nil || len(ids) == format.MaxEntries {
			return fmt.Errorf("its model: the vocab must be a list of up to %d tokens with scores, got %.100q", format.MaxEntries, piece)
		}
		if name, ok := append(entry, nil)[0].(string); ok {
			ids[name] = len(ids)
		}
		return nil
	})
	return ids, err
}

func (s *settings) bertNormalizer() map[string]any {
	unlessFalse := func(b *bool) bool { return b == nil || *b }
	return map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": unlessFalse(s.Chinese),
		"strip_accents": s.Accents, "lowercase": unlessFalse(s.LowerCase)}
}

func bertParts(s *settings, file format.Members) {
	file["normalizer"], _ = json.Marshal(s.bertNormalizer())
	file["pre_tokenizer"] = json.RawMessage(`{"type": "BertPreTokenizer"}`)
	file["decoder"] = json.RawMessage(`{"type": "WordPiece", "prefix": "##", "cleanup": true}`)
}

// byteLevel returns the step that makes characters of bytes.
func (s *settings) byteLevel(split bool) string {
	return fmt.Sprintf(`{"type": "ByteLevel", "add_prefix_space": %t, "trim_offsets": true, "use_regex": %t}`, s.PrefixSpace == "true", split)
}

func byteLevelParts(s *settings, file format.Members) {
	file["normalizer"], file["pre_tokenizer"] = json.RawMessage("null"), json.RawMessage(s.byteLevel(true))
	file["decoder"] = file["pre_tokenizer"]
}

func neoxParts(s *settings, file format.Members) {
	byteLevelParts(s, file)
	file["normalizer"] = json.RawMessage(`{"type": "NFC"}`)
}

func qwenParts(s *settings, file format.Members) {
	neoxParts(s, file)
	const words = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`
	split := `{"type": "Split", "pattern": {"Regex": "` + words + `"}, "behavior": "Isolated", "invert": false}`
	file["pre_tokenizer"] = sequence("pretokenizers", split, json.RawMessage(s.byteLevel(false)))
}

func llamaParts(s *settings, file format.Members) {
	scheme, strip := "first", `, {"type": "Strip", "content": " ", "start": 1, "stop": 0}`
	switch {
	case s.PrefixSpace == "false":
		scheme, strip = "never", ""
	case s.Legacy != nil && *s.Legacy:
		scheme = "always"
	}
	file["normalizer"] = json.RawMessage("null")
	file["pre_tokenizer"] = fmt.Appendf(nil, `{"type": "Metaspace", "replacement": "▁", "prepend_scheme": %q, "split": false}`, scheme)
	file["decoder"] = json.RawMessage(`{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}` + strip + "]}")
}

func metaspaceParts(s *settings, file format.Members) {
	s.setSpaces(file, "never", words)
	if !strings.Contains(string(file["normalizer"]), `"Precompiled"`) {
		file["normalizer"] = json.RawMessage("null")
	}
}
