package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// writeFolder writes files, given as names and contents, to a new folder.
func writeFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	return dir
}

const bertVocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nun\n##able\nca\n##fe\n!\n東\nCafé\n\nzaf\n##é\n"

// levelFiles returns the vocab.json and the merges.txt of a small byte-level BPE, with more tokens, and its
// tokenizer.json.
func levelFiles(t testing.TB, more ...string) (vocab, merges, whole string) {
	t.Helper()
	content := tokenizerFile(t, must.Get(New(BPE, slices.Values([]string{"the cat and the hat and the bat that sat"}), 270))(t))
	var file struct {
		Model struct {
			Vocab  map[string]int
			Merges []string
		}
	}
	must.Do(t, json.Unmarshal(content, &file))
	for _, token := range more {
		file.Model.Vocab[token] = len(file.Model.Vocab)
	}
	ids := must.Get(json.Marshal(file.Model.Vocab))(t)
	return string(ids), "#version: 0.2\n" + strings.Join(file.Model.Merges, "\n") + "\n", string(content)
}

func modelOf(t testing.TB, name string) string {
	var set pieceSet
	readGzip(t, filepath.Join("testdata/sentencepiece", name+".json.gz"), &set)
	return string(set.Model)
}

// TestOpen opens folders and files, and compares an Input's ids with the reference library's. Each tokenizer is also
// written and read again.
func TestOpen(t *testing.T) {
	vocab, merges, whole := levelFiles(t, "<s>", "</s>", "<mask>")
	for _, c := range []struct {
		name, file string
		files      map[string]string
		text, want string
	}{
		{"tokenizer.json first", "", map[string]string{"tokenizer.json": whole, "vocab.txt": bertVocab, "tokenizer.model": "x"}, "the", "th e"},
		{"sentence_bert_config", "", map[string]string{"vocab.txt": bertVocab, "sentence_bert_config.json": `{"max_seq_length": 4, "do_lower_case": false}`},
			"the the the the", "[CLS] the the [SEP]"},
		{"sentence_bert_config without a length", "", map[string]string{"vocab.txt": bertVocab, "sentence_bert_config.json": `{"max_seq_length": null}`},
			"the the the the", "[CLS] the the the the [SEP]"},
		{"lower case for sentences", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": `{"do_lower_case": false}`,
			"sentence_bert_config.json": `{"do_lower_case": true}`}, "UNABLE the", "[CLS] un ##able the [SEP]"},
		{"no merges", "", map[string]string{"vocab.json": `{"t": 0, "h": 1, "e": 2}`, "merges.txt": "#version: 0.2\n"}, "the", "t h e"},
		{"BERT's defaults", "", map[string]string{"vocab.txt": bertVocab}, "Unable café東!", "[CLS] un ##able ca ##fe 東 ! [SEP]"},
		{"CRLF", "vocab.txt", map[string]string{"vocab.txt": strings.ReplaceAll(bertVocab, "\n", "\r\n")}, "the!", "[CLS] the ! [SEP]"},
		{"cased BERT", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": `{"do_lower_case": false, "tokenizer_class": "BertTokenizer"}`},
			"Unable Café 東!", "[CLS] [UNK] Café 東 ! [SEP]"},
		{"BERT with accents", "vocab.txt", map[string]string{"vocab.txt": bertVocab, "config.json": `{"model_type": "bert"}`,
			"tokenizer_config.json": `{"strip_accents": false}`}, "Zafé", "[CLS] zaf ##é [SEP]"},
		{"BERT without spaces around ideographs", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": `{"tokenize_chinese_chars": false}`},
			"東東", "[CLS] [UNK] [SEP]"},
		{"BERT with other names", "", map[string]string{"vocab.txt": "<pad>\n<unk>\n<a>\n<b>\nx\n",
			"special_tokens_map.json": `{"unk_token": "<unk>", "cls_token": {"content": "<a>"}, "sep_token": "<b>"}`}, "x y", "<a> x <unk> <b>"},
		{"GPT-2", "", map[string]string{"vocab.json": vocab, "merges.txt": merges}, "the cat", "th e Ġ c at"},
		{"GPT-2 with a space before", "vocab.json", map[string]string{"vocab.json": vocab, "merges.txt": merges,
			"config.json": `{"model_type": "gpt2"}`, "tokenizer_config.json": `{"add_prefix_space": true}`}, "the", "Ġthe"},
		{"RoBERTa", "", map[string]string{"vocab.json": vocab, "merges.txt": merges, "tokenizer_config.json": `{"tokenizer_class": "RobertaTokenizerFast"}`},
			"the", "<s> th e </s>"},
		{"SentencePiece", "x.model", map[string]string{"x.model": modelOf(t, "bpe")}, "the", "▁the"},
		{"Llama", "", map[string]string{"tokenizer.model": modelOf(t, "bpe"), "config.json": `{"model_type": "llama"}`}, "the", "<s> ▁the"},
		{"Llama with an end", "", map[string]string{"tokenizer.model": modelOf(t, "bpe"),
			"tokenizer_config.json": `{"tokenizer_class": "LlamaTokenizer", "add_bos_token": false, "add_eos_token": true}`}, "the", "▁the </s>"},
		{"T5", "", map[string]string{"spiece.model": modelOf(t, "unigram"), "config.json": `{"model_type": "t5"}`}, "the", "▁the </s>"},
	} {
		p, err := Open(filepath.Join(writeFolder(t, c.files), c.file))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var file bytes.Buffer
		must.Do(t, Write(&file, p))
		again, err := Read(&file)
		if err != nil {
			t.Errorf("%s: can't read what was written: %v", c.name, err)
			continue
		}
		for i, p := range []*Pipeline{p, again.(*Pipeline)} {
			input, err := p.Input(c.text)
			var got []string
			for _, token := range input.Tokens {
				got = append(got, p.pipeline.Tokens[token.ID])
			}
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s, written %d times: Input(%q) = %q, %v; want %q", c.name, i, c.text, got, err, c.want)
			}
		}
	}
}

// TestOpenSpecial checks special tokens that a folder's files name.
func TestOpenSpecial(t *testing.T) {
	vocab, merges, _ := levelFiles(t, "<s>", "</s>", "<mask>")
	roberta := must.Get(Open(writeFolder(t, map[string]string{"vocab.json": vocab, "merges.txt": merges, "config.json": `{"model_type": "roberta"}`})))(t)
	tokens, err := roberta.Tokenize("the <mask>", Options{Special: true})
	if want := (Token{roberta.Special()["<mask>"], 4, 10}); err != nil || len(tokens) != 3 || tokens[2] != want {
		t.Errorf("RoBERTa's mask: %v, %v; want %v last, without a token for the space before it", tokens, err, want)
	}
	t5 := must.Get(Open(writeFolder(t, map[string]string{"spiece.model": modelOf(t, "unigram"), "tokenizer_config.json": `{"tokenizer_class": "T5Tokenizer", "extra_ids": 100}`})))(t)
	if n := t5.Len(); t5.Special()["<extra_id_0>"] != n-1 || t5.Special()["<extra_id_99>"] != n-100 {
		t.Errorf("T5's extra ids: 0 is %d and 99 is %d, want the last and the 100th last of %d", t5.Special()["<extra_id_0>"], t5.Special()["<extra_id_99>"], n)
	}
	if input, err := t5.Input("the", "the"); err != nil || !slices.Equal(input.Types, make([]int, 4)) {
		t.Errorf("T5's types of two texts: %v, %v; want four of 0", input.Types, err)
	}
	added := must.Get(Open(writeFolder(t, map[string]string{"tokenizer.model": modelOf(t, "bpe"), "added_tokens.json": `{"<tool>": 900}`,
		"tokenizer_config.json": `{"added_tokens_decoder": {"901": {"content": "<turn>", "special": true, "normalized": false, "lstrip": false, "rstrip": true, "single_word": false}}}`})))(t)
	tokens, err = added.Tokenize("<tool><turn> a", Options{Special: true})
	if err != nil || len(tokens) < 2 || tokens[0].ID != 900 || tokens[1] != (Token{901, 6, 13}) {
		t.Errorf("added tokens: %v, %v", tokens, err)
	}
}

func TestOpenErrors(t *testing.T) {
	vocab, merges, whole := levelFiles(t)
	for _, c := range []struct {
		name, file string
		files      map[string]string
		want       string
		missing    bool
	}{
		{"empty folder", "", nil, "must have a tokenizer.json, a SentencePiece model (tokenizer.model", true},
		{"no such file", "tokenizer.json", nil, "no such file", true},
		{"no merges", "", map[string]string{"vocab.json": vocab}, "merges.txt", true},
		{"another name", "words.txt", map[string]string{"words.txt": "a"}, "expected a tokenizer.json", false},
		{"empty tokenizer.json", "", map[string]string{"tokenizer.json": ""}, "tokenizer.json", false},
		{"characters", "", map[string]string{"tokenizer.json": string(tokenizerFile(t, must.Get(NewVocab("abc"))(t)))}, "use Read", false},
		{"another class", "", map[string]string{"vocab.json": vocab, "merges.txt": merges, "tokenizer_config.json": `{"tokenizer_class": "CLIPTokenizer"}`}, `"CLIP"`, false},
		{"another model_type", "", map[string]string{"sentencepiece.bpe.model": modelOf(t, "unigram"), "config.json": `{"model_type": "xlm-roberta"}`}, `"xlm-roberta"`, false},
		{"BERT's files for GPT-2", "", map[string]string{"vocab.txt": bertVocab, "config.json": `{"model_type": "gpt2"}`}, `"gpt2"`, false},
		{"broken settings", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": "{"}, "tokenizer_config.json", false},
		{"setting of another type", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": `{"do_lower_case": "no"}`}, "do_lower_case has the wrong type", false},
		{"no [SEP]", "", map[string]string{"vocab.txt": "[UNK]\n[CLS]\n"}, `"[SEP]"`, false},
		{"no [UNK]", "", map[string]string{"vocab.txt": "[SEP]\n[CLS]\n"}, `"[UNK]"`, false},
		{"vocab.txt of bytes", "", map[string]string{"vocab.txt": "\xff\n"}, "UTF-8", false},
		{"vocab.json with a list", "", map[string]string{"vocab.json": `[]`, "merges.txt": merges}, "integer id", false},
		{"merge of three", "", map[string]string{"vocab.json": vocab, "merges.txt": "a b c\n"}, "line 1", false},
		{"merge of unknown tokens", "", map[string]string{"vocab.json": vocab, "merges.txt": "Z ZZ\n"}, "merge 0", false},
		{"not a model", "", map[string]string{"tokenizer.model": "\xff\xff"}, "protobuf", false},
		{"length 0", "", map[string]string{"tokenizer.json": whole, "sentence_bert_config.json": `{"max_seq_length": 0}`}, "max_seq_length must be at least 1", false},
		{"limit 0", "", map[string]string{"tokenizer.json": whole, "tokenizer_config.json": `{"model_max_length": 0}`}, "tokenizer_config.json: its model_max_length must be at least 1, got 0", false},
		{"an unknown side", "", map[string]string{"tokenizer.json": whole, "tokenizer_config.json": `{"truncation_side": "up"}`}, `truncation_side must be left or right, got "up"`, false},
		{"a prefix that isn't a boolean", "", map[string]string{"tokenizer.json": whole, "tokenizer_config.json": `{"add_prefix_space": "yes"}`}, "add_prefix_space must be true or false", false},
		{"an added token without an id", "", map[string]string{"tokenizer.json": whole, "tokenizer_config.json": `{"added_tokens_decoder": {"a": {"content": "b"}}}`}, `a key of added_tokens_decoder must be an id, got "a"`, false},
		{"added id", "", map[string]string{"vocab.txt": bertVocab, "tokenizer_config.json": `{"added_tokens_decoder": {"x": {"content": "a"}}}`}, "must be an id", false},
		{"negative added id", "", map[string]string{"vocab.txt": bertVocab, "added_tokens.json": `{"a": -1}`}, "id from 0", false},
	} {
		path := filepath.Join(writeFolder(t, c.files), c.file)
		_, err := Open(path)
		must.Fail(t, err, c.want, path)
		if errors.Is(err, fs.ErrNotExist) != c.missing {
			t.Errorf("%s: error %v, want fs.ErrNotExist: %v", c.name, err, c.missing)
		}
	}
}

// TestModelOfStories opens the SentencePiece model beside the repository, and compares the ids of a text.
func TestModelOfStories(t *testing.T) {
	p, err := Open("../../../shared/data/stories260K/tok512.model")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no ../shared/data/stories260K/tok512.model beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	ids, err := p.Encode("Once upon a time, 東 été")
	want := []int{403, 407, 261, 378, 432, 410, 233, 160, 180, 410, 485, 413, 485}
	if err != nil || !slices.Equal(ids, want) {
		t.Errorf("ids %v, %v; want %v", ids, err, want)
	}
	if text, err := p.Decode(ids); err != nil || text != "Once upon a time, 東 été" {
		t.Errorf("decoded %q, %v", text, err)
	}
}

// FuzzVocabFiles opens folders with a random vocabulary, and encodes a text.
func FuzzVocabFiles(f *testing.F) {
	f.Add("vocab.txt", bertVocab, "", `{"do_lower_case": false}`, "Unable café")
	f.Add("vocab.json", `{"a": 0, "b": 1, "ab": 2, "<s>": 3, "</s>": 4}`, "a b\n", `{"tokenizer_class": "RobertaTokenizer"}`, "abba")
	f.Fuzz(func(t *testing.T, name, vocab, merges, config, text string) {
		if name != "vocab.txt" && name != "vocab.json" {
			return
		}
		p, err := Open(writeFolder(t, map[string]string{name: vocab, "merges.txt": merges, "tokenizer_config.json": config}))
		if err != nil {
			return
		}
		checkTokens(t, p, text)
	})
}

// TestOpenHostile checks that Open refuses files that are large, or that claim to be.
func TestOpenHostile(t *testing.T) {
	testseed.Slow(t)
	var many, merges strings.Builder
	for i := range 1 << 20 {
		fmt.Fprintf(&many, "%x\n", i)
	}
	for range 1 << 20 {
		merges.WriteString("t h\n")
	}
	vocab, _, _ := levelFiles(t)
	large := writeFolder(t, map[string]string{"tokenizer.model": ""})
	must.Do(t, os.Truncate(filepath.Join(large, "tokenizer.model"), format.MaxFile+1))
	for _, c := range map[string]struct{ dir, want string }{
		"a file over the limit":           {large, "at most"},
		"a million lines":                 {writeFolder(t, map[string]string{"vocab.txt": many.String()}), "lines"},
		"a million merges":                {writeFolder(t, map[string]string{"vocab.json": vocab, "merges.txt": merges.String()}), "merges"},
		"a great id":                      {writeFolder(t, map[string]string{"vocab.json": `{"a": 2000000000}`, "merges.txt": ""}), "must be below"},
		"a great added id":                {writeFolder(t, map[string]string{"vocab.txt": bertVocab, "added_tokens.json": `{"a": 2000000000}`}), "id from 0"},
		"deep settings":                   {writeFolder(t, map[string]string{"vocab.txt": bertVocab, "config.json": strings.Repeat("[", 1<<20)}), "config.json"},
		"Marian without ids":              {writeFolder(t, map[string]string{"source.spm": modelOf(t, "unigram")}), "vocab.json, which has the ids of the pieces"},
		"Marian without an unknown piece": {writeFolder(t, map[string]string{"source.spm": modelOf(t, "unigram"), "vocab.json": `{"</s>": 0}`}), "vocab must have the unk_token"},
		"mBART with byte pairs":           {writeFolder(t, map[string]string{"sentencepiece.bpe.model": modelOf(t, "bpe"), "config.json": `{"model_type": "mbart"}`}), "model_type 1 (unigram)"},
		"an offset below 2":               {writeFolder(t, map[string]string{"spiece.model": modelOf(t, "unigram"), "tokenizer_config.json": `{"tokenizer_class": "PegasusTokenizer", "offset": 0}`}), "offset must be from 2"},
		"a million extra tokens":          {writeFolder(t, map[string]string{"spiece.model": modelOf(t, "unigram"), "tokenizer_config.json": `{"tokenizer_class": "T5Tokenizer", "extra_ids": 1000000000}`}), "extra_ids"},
	} {
		must.Refuse(Open(c.dir))(t, c.want)
	}
}

// WithLimit must replace the maximum length of the file, and leave the Pipeline unchanged.
func TestWithLimit(t *testing.T) {
	p := must.Get(Open(writeFolder(t, map[string]string{"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n", "sentence_bert_config.json": `{"max_seq_length": 4}`})))(t)
	for _, c := range []struct {
		p    *Pipeline
		pair []string
		want []int
	}{
		{p, nil, []int{2, 4, 4, 3}},
		{p.WithLimit(0), nil, []int{2, 4, 4, 4, 5, 3}},
		{p.WithLimit(5), nil, []int{2, 4, 4, 4, 3}},
		{p.WithLimit(5), []string{"b"}, []int{2, 4, 3, 5, 3}},
		{p.WithLimit(9), []string{"b"}, []int{2, 4, 4, 4, 5, 3, 5, 3}},
		{p, nil, []int{2, 4, 4, 3}},
	} {
		input, err := c.p.Input("a a a b", c.pair...)
		if err != nil || !slices.Equal(idsOf(input.Tokens), c.want) {
			t.Errorf("Input gives %v, %v, want %v", input.Tokens, err, c.want)
		}
	}
}
