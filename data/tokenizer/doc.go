// Package tokenizer turns text into ids and back.
//
// New learns a Tokenizer from texts: of characters, of tokens between white space, or of byte pairs as in GPT-2. Write
// writes it as a tokenizer.json, and Read reads one. A Vocab is the Tokenizer of characters that are known beforehand,
// such as the alphabet of a data.Rule.
//
// Encode and Decode do the work. Tokenize also says which part of the text each id comes from, and a Decoder returns
// the text of ids that come one at a time. Special tokens are made of text only where a caller asks for it.
//
// All types but Decoder are safe for concurrent use.
package tokenizer
