// Package decode writes sequences token by token, from a model that predicts the next one.
//
// A [Model] holds a batch of sequences. Each step appends some tokens to them and returns the logits of what follows. A
// [Session] is the Model of a layers.Decoder, and a [Seq2Seq] that of a layers.EncoderDecoder. Both keep the keys and
// values of the tokens that they hold, so that nothing is computed twice. [Generate] appends one token after another:
// the likeliest, or a random one that a [Sampler] draws. [Beam] searches for the continuations that are likeliest as a
// whole.
//
// Generate and Beam are deterministic: the model, the options and a seed decide every token. Of equally likely tokens,
// the one with the lowest id comes first. Every error begins with "decode: ".
package decode
