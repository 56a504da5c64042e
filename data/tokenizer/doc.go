// Package tokenizer turns text into ids and back.
//
// New learns a Tokenizer from texts: of characters, of tokens between white space, or of byte pairs as in GPT-2. Write
// writes it as a tokenizer.json, and Read reads one. A Vocab is the Tokenizer of characters that are known beforehand,
// such as the alphabet of a data.Rule.
//
// All types are safe for concurrent use.
package tokenizer
