// Package tokenizer turns text into ids and back.
//
// New learns a Tokenizer from texts. Its ids stand for characters, for tokens between white space, for words, or for
// byte pairs as in GPT-2. Write writes a tokenizer.json, and Read reads one. A Vocab is a Tokenizer for a fixed set of
// characters, such as the alphabet of a data.Rule.
//
// Open opens the tokenizer of a published model, and gives the ids, the parts of the text and the decoded text of the
// reference libraries: Hugging Face's tokenizers 0.23.3 and SentencePiece 0.2.3. A Pipeline is such a tokenizer. Its
// method Input adds a model's special tokens to one text or two.
//
// Encode turns text into ids, and Decode turns ids into text. Tokenize also returns the part of the text that each id
// comes from. A Decoder turns ids into text one at a time. Text never becomes a special token unless the caller asks
// for it. A ChatTemplate writes a conversation for a model that was trained on them.
//
// All types except Decoder are safe for concurrent use.
package tokenizer
