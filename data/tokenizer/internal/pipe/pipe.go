// Package pipe has what the parts of a tokenizer pass to each other: a Text, which knows where each of its bytes comes
// from, the Tokens that it becomes, and the Budget that bounds the work. A Sink takes decoded text.
package pipe

// A Token is an id and the part of a text that it comes from.
type Token struct{ ID, Start, End int }

// A Sink takes the next part of a decoded token. The argument first says whether the part begins the token, and last
// whether it ends the token.
type Sink func(part string, first, last bool)
