package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/chats"
)

// chatEncoder returns the encoder for a published model's chat template.
func (s publishedStart) chatEncoder(source tokenizer.Tokenizer) (chats.Encoder, error) {
	template, err := s.chatTemplate("")
	if err != nil {
		return nil, fmt.Errorf("%w: conversations need a published model with a chat template that heed knows, in chat_template.jinja or tokenizer_config.json", err)
	}
	// Llama 3.2's template has today's date, but the same data must always have the same ids.
	template.Now = func() time.Time { return time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC) }
	return func(messages []tokenizer.Message) (c chats.Chat, err error) {
		c.IDs, c.Answers, err = template.Encode(source.(*tokenizer.Pipeline), messages, false)
		if tokens := s.model.Model.Vocab; err == nil && slices.Max(c.IDs) >= tokens {
			err = fmt.Errorf("the tokenizer's id %d is beyond the model's %d ids: the tokenizer belongs to another model", slices.Max(c.IDs), tokens)
		}
		return c, err
	}, nil
}

// ReadChats reads the conversations that a published model learns, in the form of its chat template. It sets the
// checksum, or compares it if it is already set. A conversation's Place depends on the seed.
func (c *Config) ReadChats(files data.TextFiles, seed uint64, sum *string) ([]chats.Chat, error) {
	s, err := openArchive(c.Archive, c.Task.Kind)
	if err != nil {
		return nil, err
	}
	encode, err := s.chatEncoder(c.Task.Source)
	if err != nil {
		return nil, err
	}
	return encode.Read(files, seed, sum)
}
