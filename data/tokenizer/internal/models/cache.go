package models

import (
	"slices"
	"strings"
)

// MaxCached is the largest number of pieces in a Cache.
const MaxCached = 1 << 15

// maxCachedLen is the largest number of bytes, and of tokens, of a piece in a Cache.
const maxCachedLen = 32

// A Part is a token of a piece: its id, and how many bytes of the piece it stands for.
type Part struct{ ID, Size int32 }

// A Cache has the tokens of short pieces that an encoder has met.
type Cache map[string][]Part

// Put adds copies of a piece and its tokens, if they are short. A full Cache is emptied first.
func (c Cache) Put(piece string, tokens []Part) {
	if len(piece) > maxCachedLen || len(tokens) > maxCachedLen {
		return
	}
	if len(c) >= MaxCached {
		clear(c)
	}
	c[strings.Clone(piece)] = slices.Clone(tokens)
}
