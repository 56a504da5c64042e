package task

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// Chats reports whether a text model learns what the assistant writes in conversations. New sets Data.Columns to
// data.ChatKey if the file has conversations: see data.TextFiles.Chats.
func (c *Config) Chats() bool {
	return c.published() && c.Task.Kind == data.KindText && slices.Equal(c.Data.Columns, []string{data.ChatKey})
}

// A chat is an encoded conversation.
type chat struct {
	ids     []int
	answers []bool  // whether the assistant writes each id
	place   float64 // see data.Place
}

// targets returns the target of each id but the last: the next id, or Ignore if the assistant doesn't write it.
func (c chat) targets() []int {
	targets := slices.Clone(c.ids[1:])
	for i, learned := range c.answers[1:] {
		if !learned {
			targets[i] = data.Ignore
		}
	}
	return targets
}

// cut cuts conversations to n+1 ids, and leaves out those without answers in the first n+1. It returns also the number
// of conversations that were longer.
func cut(chats []chat, n int) (kept []chat, longer int) {
	for _, c := range chats {
		if len(c.ids) > n+1 {
			c.ids, c.answers = c.ids[:n+1], c.answers[:n+1]
			longer++
		}
		if slices.Contains(c.answers[1:], true) {
			kept = append(kept, c)
		}
	}
	return kept, longer
}

// A chatEncoder encodes conversations.
type chatEncoder func(messages []tokenizer.Message) (chat, error)

// chatEncoder returns the encoder for a published model's chat template.
func (s publishedStart) chatEncoder(source tokenizer.Tokenizer) (chatEncoder, error) {
	template, err := s.chatTemplate("")
	if err != nil {
		return nil, fmt.Errorf("%w: conversations need a published model with a chat template that heed knows, in chat_template.jinja or tokenizer_config.json", err)
	}
	// Llama 3.2's template has today's date, but the same data must always have the same ids.
	template.Now = func() time.Time { return time.Date(2024, 7, 26, 0, 0, 0, 0, time.UTC) }
	return func(messages []tokenizer.Message) (c chat, err error) {
		c.ids, c.answers, err = template.EncodeAnswers(source.(*tokenizer.Pipeline), messages)
		if tokens := s.model.Model.Vocab; err == nil && slices.Max(c.ids) >= tokens {
			err = fmt.Errorf("the tokenizer's id %d is beyond the model's %d ids: the tokenizer belongs to another model", slices.Max(c.ids), tokens)
		}
		return c, err
	}, nil
}

// read reads conversations. It sets the checksum, or compares it if it is already set.
func (encode chatEncoder) read(files data.TextFiles, seed uint64, sum *string) (chats []chat, err error) {
	found, err := files.Chats(func(line string, messages []tokenizer.Message) error {
		c, err := encode(messages)
		c.place = data.Place(seed, line)
		chats = append(chats, c)
		return err
	})
	if *sum = cmp.Or(*sum, found); err == nil && *sum != found {
		err = fmt.Errorf("text %q has changed since the run began", files.Paths[0])
	}
	return chats, err
}

// A chatSet has conversations as examples.
type chatSet struct {
	trains, validates []chat
	widths            []int // length of the rows in each bucket, ascending
	batch             int   // number of rows in a validation batch
	answers           int   // number of validation targets
	description       string
}

// openChats reads the conversations in a configuration's files, and completes the configuration.
func openChats(c *Config) (set, error) {
	if !c.published() {
		return nil, setting.Errorf("%s has conversations, which only a published model with a chat template can learn: set %s", setting.Path("data.file"), setting.Path("from"))
	}
	start, err := openArchive(c.archive, c.Task.Kind)
	if err != nil {
		return nil, err
	}
	encode, err := start.chatEncoder(c.Task.Source)
	if err != nil {
		return nil, err
	}
	d, s := &c.Data, &chatSet{batch: c.Training.BatchSize}
	d.Columns = []string{data.ChatKey}
	if s.trains, err = encode.read(c.textFiles(), c.Seed, &d.SHA256); err != nil {
		return nil, err
	}
	if d.ValidationFile != "" && d.Validation > 0 {
		files := c.textFiles()
		files.Paths = []string{d.ValidationFile}
		if s.validates, err = encode.read(files, c.Seed, &d.ValidationSHA256); err != nil {
			return nil, err
		}
		s.validates = s.validates[:min(len(s.validates), d.Validation)]
	}
	if err := s.measure(c); err != nil {
		return nil, err
	}
	c.Task.About = "the answers in conversations"
	if d.Tokenizers, err = c.tokenizerSums(); err != nil {
		return nil, err
	}
	steps, counts := 0, make([]int, len(s.widths))
	for _, chat := range s.trains {
		counts[s.bucket(chat)]++
	}
	for _, n := range counts {
		steps += (n + s.batch - 1) / s.batch
	}
	s.stopping(&c.Training.Stopping)
	return s, c.planPass(steps)
}

// stopping sets Patience and MinDelta if Patience is negative. Answers that are alike, as in a few dozen conversations,
// are soon learned by heart: then the loss per token is nearly 0, and further epochs are a waste of time. Without
// validation, training doesn't stop early.
func (s *chatSet) stopping(t *train.StoppingConfig) {
	switch {
	case t.Patience >= 0:
	case len(s.validates) == 0:
		t.Patience, t.MinDelta = 0, 0
	default:
		t.Patience, t.MinDelta = 2, 0.01
	}
}

// measure cuts long conversations, holds some out for validation unless they have a file, and chooses the widths.
func (s *chatSet) measure(c *Config) error {
	read, longest, learned, d := slices.Concat(s.trains, s.validates), 1, 0, &c.Data
	for _, chat := range read {
		longest = max(longest, len(chat.ids)-1)
	}
	c.Task.MaxLen = cmp.Or(c.Task.MaxLen, min(longest, 512, c.Task.Published.MaxLen))
	longest = min(longest, c.Task.MaxLen)
	var longer [2]int
	s.trains, longer[0] = cut(s.trains, longest)
	s.validates, longer[1] = cut(s.validates, longest)
	left := len(read) - len(s.trains) - len(s.validates)
	if d.ValidationFile == "" {
		s.holdOut(d.Validation)
	}
	if len(s.trains) == 0 || d.Validation > 0 && len(s.validates) == 0 {
		return setting.Errorf("data file %q: of %s, none is left for training or for validation with an answer in the first %d tokens: give more, or set a greater %s",
			d.File, text.Count(len(read), "conversation"), longest, setting.Path("task.max_len"))
	}
	counts := make([]int, longest+1)
	d.Tokens, s.answers = 0, 0
	for i, chat := range slices.Concat(s.trains, s.validates) {
		n := len(slices.DeleteFunc(chat.targets(), func(id int) bool { return id == data.Ignore }))
		if d.Tokens, learned = d.Tokens+len(chat.ids), learned+n; i < len(s.trains) {
			counts[len(chat.ids)-1]++
		} else {
			s.answers += n
		}
	}
	s.widths = rows.Bounds(counts, min(12, 1+len(s.trains)/100))
	s.description = fmt.Sprintf("%s: %s\n  tokens: %d, of which %d are learned; at most %d of a conversation\n", d.File, text.Count(len(read), "conversation"), d.Tokens, learned, longest)
	if n := longer[0] + longer[1]; n > 0 {
		s.description += fmt.Sprintf("  cut: %s; %d left out, because the rest has no answer\n", text.Count(n, "conversation"), left)
	}
	s.description += fmt.Sprintf("  training: %s; validation: %d\n", text.Count(len(s.trains), "conversation"), len(s.validates))
	return nil
}

// holdOut moves about a tenth of the conversations, at most about n but at least one, to the validation set. A hash of
// the conversation and the seed chooses them.
func (s *chatSet) holdOut(n int) {
	read := s.trains
	for share := min(0.1, float64(n)/float64(max(1, len(read)))); share > 0 && len(read) > 0 && len(s.validates) == 0; share *= 2 {
		s.trains = nil
		for _, chat := range read {
			part := &s.trains
			if chat.place < share {
				part = &s.validates
			}
			*part = append(*part, chat)
		}
	}
}

func (s *chatSet) bucket(c chat) int {
	bucket, _ := slices.BinarySearch(s.widths, len(c.ids)-1)
	return bucket
}

func (s *chatSet) train(c Training) examples {
	return s.examples(s.trains, train.Shuffled, c.BatchSize/max(1, c.MicroBatches))
}

func (s *chatSet) validation() examples { return s.examples(s.validates, train.InOrder, s.batch) }

// examples returns conversations in batches with size rows, so that each bucket needs only one graph. The padding is at
// the ends of rows, where no position of a causal model sees it.
func (s *chatSet) examples(part []chat, order train.Order, size int) examples {
	return examples{n: len(part), order: order, bucket: func(i int) int { return s.bucket(part[i]) }, batch: func(numbers []int) (data.Batch, error) {
		inputs, targets, width := make([][]int, size), make([][]int, size), s.widths[s.bucket(part[numbers[0]])]
		for row, i := range numbers {
			inputs[row], targets[row] = part[i].ids[:len(part[i].ids)-1], part[i].targets()
		}
		b, err := data.Pad(inputs, width, 0)
		if err != nil {
			return b, err
		}
		padded, err := data.Pad(targets, width, data.Ignore)
		b.Targets, b.TargetLen = padded.Inputs, width
		return b, err
	}}
}

func (s *chatSet) judged() int  { return s.answers }
func (s *chatSet) close() error { return nil }
