package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

// A chatEncoder encodes conversations.
type chatEncoder func(messages []tokenizer.Message) (Chat, error)

// chatEncoder returns the encoder for a published model's chat template.
func (s publishedStart) chatEncoder(source tokenizer.Tokenizer) (chatEncoder, error) {
	template, err := s.chatTemplate("")
	if err != nil {
		return nil, fmt.Errorf("%w: conversations need a published model with a chat template that heed knows, in chat_template.jinja or tokenizer_config.json", err)
	}
	// Llama 3.2's template has today's date, but the same data must always have the same ids.
	template.Now = func() time.Time { return time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC) }
	return func(messages []tokenizer.Message) (c Chat, err error) {
		c.IDs, c.Answers, err = template.EncodeAnswers(source.(*tokenizer.Pipeline), messages)
		if tokens := s.model.Model.Vocab; err == nil && slices.Max(c.IDs) >= tokens {
			err = fmt.Errorf("the tokenizer's id %d is beyond the model's %d ids: the tokenizer belongs to another model", slices.Max(c.IDs), tokens)
		}
		return c, err
	}, nil
}

// read reads conversations. It sets the checksum, or compares it if it is already set.
func (encode chatEncoder) read(files data.TextFiles, seed uint64, sum *string) (chats []Chat, err error) {
	found, err := files.Chats(func(line string, messages []tokenizer.Message) error {
		c, err := encode(messages)
		c.Place = data.Place(seed, line)
		chats = append(chats, c)
		return err
	})
	if *sum = cmp.Or(*sum, found); err == nil && *sum != found {
		err = fmt.Errorf("text %q has changed since the run began", files.Paths[0])
	}
	return chats, err
}

// ReadChats reads the conversations that a published model learns, in the form of its chat template. It sets the
// checksum, or compares it if it is already set. A conversation's Place depends on the seed.
func (c *Config) ReadChats(files data.TextFiles, seed uint64, sum *string) ([]Chat, error) {
	s, err := openArchive(c.Archive, c.Task.Kind)
	if err != nil {
		return nil, err
	}
	encode, err := s.chatEncoder(c.Task.Source)
	if err != nil {
		return nil, err
	}
	return encode.read(files, seed, sum)
}
