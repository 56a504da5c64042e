// Package chats reads conversations as the ids that a text model learns.
package chats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
)

// A Chat is an encoded conversation.
type Chat struct {
	IDs     []int
	Answers []bool  // whether the assistant writes each id
	Place   float64 // see data.Place
}

// Targets returns the target of each id but the last: the next id, or Ignore if the assistant doesn't write it.
func (c Chat) Targets() []int {
	targets := slices.Clone(c.IDs[1:])
	for i, learned := range c.Answers[1:] {
		if !learned {
			targets[i] = data.Ignore
		}
	}
	return targets
}

// An Encoder encodes conversations. It leaves out their Place.
type Encoder func(messages []tokenizer.Message) (Chat, error)

// Read reads conversations. It sets the checksum, or compares it if it is already set. A conversation's Place depends
// on the seed.
func (encode Encoder) Read(files data.TextFiles, seed uint64, sum *string) (list []Chat, err error) {
	found, err := files.Chats(func(line string, messages []tokenizer.Message) error {
		c, err := encode(messages)
		c.Place = data.Place(seed, line)
		list = append(list, c)
		return err
	})
	if *sum = cmp.Or(*sum, found); err == nil && *sum != found {
		err = fmt.Errorf("text %q has changed since the run began", files.Paths[0])
	}
	return list, err
}
