// Package decode writes sequences token by token, from a model that predicts the next one.
//
// A [Model] holds a batch of sequences; each step gives it some tokens and returns the logits of what follows. A
// [Session] is one over a layers.Decoder, and a [Seq2Seq] over a layers.EncoderDecoder: they keep the keys and values of
// the tokens that they hold, so that none is computed again. [Generate] takes one token after another, the likeliest or a
// random one as a [Sampler] says; [Beam] searches for the continuations that are likeliest as a whole.
//
// Both are deterministic: the model, the options and a seed decide every token. Of equally likely tokens, the one with
// the lowest id comes first.
package decode
