package task

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/chats"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
)

// cut cuts conversations to n+1 ids, and leaves out those without answers in the first n+1. It returns also the number
// of conversations that were longer.
func cut(list []chats.Chat, n int) (kept []chats.Chat, longer int) {
	for _, c := range list {
		if len(c.IDs) > n+1 {
			c.IDs, c.Answers = c.IDs[:n+1], c.Answers[:n+1]
			longer++
		}
		if slices.Contains(c.Answers[1:], true) {
			kept = append(kept, c)
		}
	}
	return kept, longer
}

// chatSource has conversations.
var chatSource = source{func(c *Config) bool {
	return c.Task.Kind == data.KindText && c.Data.File != "" && c.textFiles().HaveChats()
}, openChats}

// A chatSet has rows of conversations as examples: one conversation each or, if they are packed, several.
type chatSet struct {
	bare
	trains, validates []chats.Chat
	packed            bool
	rows              [2][][]chats.Chat // of trains and of validates
	widths            []int             // length of the rows in each bucket, ascending
	batch             int               // number of rows in a validation batch
	answers           int               // number of validation targets
	description       string
}

// openChats reads the conversations in a configuration's files, and completes the configuration.
func openChats(_ kind, c *Config) (set, error) {
	if !c.Published() {
		return nil, setting.Errorf("%s has conversations, which only a published model with a chat template can learn: set %s", setting.Path("data.file"), setting.Path("from"))
	}
	d, s, fresh := &c.Data, &chatSet{}, c.Data.SHA256 == ""
	d.Columns = []string{data.ChatKey}
	var err error
	if s.trains, err = c.ReadChats(c.textFiles(), c.Seed, &d.SHA256); err != nil {
		return nil, err
	}
	if d.ValidationFile != "" && d.Validation > 0 {
		files := c.textFiles()
		files.Paths = []string{d.ValidationFile}
		if s.validates, err = c.ReadChats(files, c.Seed, &d.ValidationSHA256); err != nil {
			return nil, err
		}
		s.validates = s.validates[:min(len(s.validates), d.Validation)]
	}
	if err := s.measure(c, fresh); err != nil {
		return nil, err
	}
	c.Task.About = "the answers in conversations"
	if d.Tokenizers, err = c.TokenizerSums(); err != nil {
		return nil, err
	}
	steps, counts := 0, make([]int, len(s.widths))
	for _, row := range s.rows[0] {
		counts[s.bucket(row)]++
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

// measure cuts long conversations, holds some out for validation unless they have a file, and divides them among rows.
// If fresh is true, it may choose to pack them.
func (s *chatSet) measure(c *Config, fresh bool) error {
	read, longest, learned, d := slices.Concat(s.trains, s.validates), 1, 0, &c.Data
	for _, chat := range read {
		longest = max(longest, len(chat.IDs)-1)
	}
	width := min(longest, 512)
	if d.Pack == "yes" {
		width = max(width, 256)
	}
	c.Task.MaxLen = cmp.Or(c.Task.MaxLen, min(width, c.Task.Published.MaxLen))
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
		n := len(slices.DeleteFunc(chat.Targets(), func(id int) bool { return id == data.Ignore }))
		if d.Tokens, learned = d.Tokens+len(chat.IDs), learned+n; i < len(s.trains) {
			counts[len(chat.IDs)-1]++
		} else {
			s.answers += n
		}
	}
	if fresh {
		c.choosePack(d.Tokens-len(s.trains)-len(s.validates), len(s.trains)+len(s.validates))
	}
	s.packed, s.widths = d.Pack == "yes", []int{c.Task.MaxLen}
	if !s.packed {
		s.widths = rows.Bounds(counts, min(12, 1+len(s.trains)/100))
	}
	s.rows = [2][][]chats.Chat{s.inRows(s.trains), s.inRows(s.validates)}
	s.description = fmt.Sprintf("%s: %s\n  tokens: %d, of which %d are learned; at most %d of a conversation\n", d.File, text.Count(len(read), "conversation"), d.Tokens, learned, longest)
	if n := longer[0] + longer[1]; n > 0 {
		s.description += fmt.Sprintf("  cut: %s; %d left out, because the rest has no answer\n", text.Count(n, "conversation"), left)
	}
	s.description += fmt.Sprintf("  training: %s; validation: %d\n", text.Count(len(s.trains), "conversation"), len(s.validates))
	usual := fineWindows
	if s.packed { // as many conversations in a batch as without packing
		n, symbols := len(s.rows[0])+len(s.rows[1]), d.Tokens-len(s.trains)-len(s.validates)
		full := float64(symbols) / float64(n*c.Task.MaxLen)
		s.description += fmt.Sprintf("  packed: %s of %d tokens, %.0f %% full\n", text.Count(n, "row"), c.Task.MaxLen, 100*full)
		usual = max(1, int(math.Round(float64(usual*len(s.rows[0]))/float64(len(s.trains)))))
	}
	c.Training.BatchSize = cmp.Or(c.Training.BatchSize, usual)
	s.batch = c.Training.BatchSize
	return nil
}

// inRows divides conversations among rows.
func (s *chatSet) inRows(list []chats.Chat) (rows [][]chats.Chat) {
	if !s.packed {
		for i := range list {
			rows = append(rows, list[i:i+1])
		}
		return rows
	}
	lengths := make([]int, len(list))
	for i, chat := range list {
		lengths[i] = len(chat.IDs) - 1
	}
	for _, row := range pack(lengths, s.widths[0]) {
		together := make([]chats.Chat, len(row))
		for i, n := range row {
			together[i] = list[n]
		}
		rows = append(rows, together)
	}
	return rows
}

// holdOut moves about a tenth of the conversations, at most about n but at least one, to the validation set. A hash of
// the conversation and the seed chooses them.
func (s *chatSet) holdOut(n int) {
	read := s.trains
	for share := min(0.1, float64(n)/float64(max(1, len(read)))); share > 0 && len(read) > 0 && len(s.validates) == 0; share *= 2 {
		s.trains = nil
		for _, chat := range read {
			part := &s.trains
			if chat.Place < share {
				part = &s.validates
			}
			*part = append(*part, chat)
		}
	}
}

func (s *chatSet) bucket(row []chats.Chat) int {
	if s.packed {
		return 0
	}
	bucket, _ := slices.BinarySearch(s.widths, len(row[0].IDs)-1)
	return bucket
}

func (s *chatSet) train(c Training) examples {
	return s.examples(s.rows[0], train.Shuffled, c.BatchSize/max(1, c.MicroBatches))
}

func (s *chatSet) validation() examples { return s.examples(s.rows[1], train.InOrder, s.batch) }

// examples returns rows in batches with size rows, so that each bucket needs only one graph. The padding is at the ends
// of rows, where no position of a causal model sees it.
func (s *chatSet) examples(part [][]chats.Chat, order train.Order, size int) examples {
	return examples{n: len(part), order: order, bucket: func(i int) int { return s.bucket(part[i]) }, batch: func(numbers []int) (data.Batch, error) {
		inputs, targets, documents, width := make([][]int, size), make([][]int, size), make([][]int, size), s.widths[s.bucket(part[numbers[0]])]
		for row, i := range numbers {
			for n, chat := range part[i] {
				last := len(chat.IDs) - 1
				inputs[row], targets[row] = append(inputs[row], chat.IDs[:last]...), append(targets[row], chat.Targets()...)
				documents[row] = append(documents[row], slices.Repeat([]int{n}, last)...)
			}
		}
		b, err := data.Pad(inputs, width, 0)
		if err != nil {
			return b, err
		}
		padded, err := data.Pad(targets, width, data.Ignore)
		b.Targets, b.TargetLen = padded.Inputs, width
		if err == nil && s.packed {
			padded, err = data.Pad(documents, width, width)
			b.Documents = padded.Inputs
		}
		return b, err
	}}
}

func (s *chatSet) size() int        { return s.batch }
func (s *chatSet) judged() int      { return s.answers }
func (s *chatSet) describe() string { return s.description }
