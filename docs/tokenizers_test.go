package docs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
)

// published is a small tokenizer.json of BERT's kind.
const published = `{
  "version": "1.0",
  "truncation": {"max_length": 12, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
  "added_tokens": [
    {"id": 1, "content": "[CLS]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
    {"id": 2, "content": "[SEP]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}
  ],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {
    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "who": 3, "sing": 4, "##s": 5, "?": 6, "a": 7, "cafe": 8, "bird": 9, ".": 10}
  }
}`

// Text to ids, with the part of the text that each comes from, and back.
func Example_tokenize() {
	file := strings.NewReader(published)
	t, err := tokenizer.Read(file)
	check(err)
	text := "A bird sings. [SEP]"
	tokens, err := t.Tokenize(text, tokenizer.Options{})
	check(err)
	for _, token := range tokens {
		fmt.Println(token.ID, text[token.Start:token.End])
	}

	ids, err := t.Encode("A café bird!")
	check(err)
	fmt.Println(ids, t.Unknown())
	fmt.Println(t.Decode(ids[:3]))
	// Output:
	// 7 A
	// 9 bird
	// 4 sing
	// 5 s
	// 10 .
	// 0 [
	// 0 SEP
	// 0 ]
	// [7 8 9 0] 0
	// a cafe bird <nil>
}

// Two texts with the special tokens that the model expects.
func Example_pair() {
	t, err := tokenizer.Read(strings.NewReader(published))
	check(err)
	input, err := t.(*tokenizer.Pipeline).Input("Who sings?", "A bird sings. A bird sings.")
	check(err)
	ids := make([]int, len(input.Tokens))
	for i, token := range input.Tokens {
		ids[i] = token.ID
	}
	fmt.Println(ids)
	fmt.Println(input.Types)
	fmt.Println(input.Texts)
	// Output:
	// [1 3 4 5 6 2 7 9 4 5 10 2]
	// [0 0 0 0 0 0 1 1 1 1 1 1]
	// [-1 0 0 0 0 -1 1 1 1 1 1 -1]
}

// A conversation in the form that a model was trained on.
func Example_chat() {
	template := `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}` +
		`{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

	chat, err := tokenizer.ParseChatTemplate(template, "<s>", "</s>")
	check(err)
	text, err := chat.Render([]tokenizer.Message{{Role: "user", Content: "Who sings?"}}, true)
	check(err)
	fmt.Print(text)
	// Output:
	// <|im_start|>user
	// Who sings?<|im_end|>
	// <|im_start|>assistant
}

// A tokenizer of one's own, learned, saved and read.
func Example_learn() {
	texts := slices.Values([]string{"to be or not to be", "that is the question"})
	t, err := tokenizer.New(tokenizer.BPE, texts, 260) // 256 bytes and 4 merges
	check(err)
	var file bytes.Buffer // or an *os.File
	check(tokenizer.Write(&file, t))

	again, err := tokenizer.Read(&file)
	check(err)
	ids, err := again.Encode("to bé")
	check(err)
	decoder := tokenizer.Decoder{Tokenizer: again}
	for _, id := range ids {
		text, err := decoder.Next(id)
		check(err)
		fmt.Printf("%q ", text)
	}
	fmt.Printf("%q\n", decoder.Flush())
	// Output:
	// "to" " " "b" "" "é" ""
}
