// Package decode generates sequences token by token with a model that predicts the next token.
//
// A [Model] holds a batch of sequences. Each step appends tokens to them and returns the logits of the next token. A
// [Session] is a Model for a layers.Decoder. A [Seq2Seq] is a Model for a layers.EncoderDecoder. Both keep the keys and
// values of earlier tokens, so that nothing is computed twice. [Generate] appends one token at a time: the likeliest
// token, or a random token from a [Sampler]. [Beam] searches for the continuations with the highest total probability.
//
// Generate and Beam are deterministic: the same model, options and seed give the same tokens. Among equally likely
// tokens, the token with the lowest id comes first. Every error begins with "decode: ".
package decode
