package task

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/rows"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train"
)

// A set has the training and validation examples of a task.
type set interface {
	train(c Training) examples
	validation() examples
	judged() int // number of validation answers that a Score counts; 0 without validation
	close() error
}

// examples have the fields of a train.Dataset, with data.Batches.
type examples struct {
	n      int // number of examples
	order  train.Order
	bucket func(example int) int
	batch  func(examples []int) (data.Batch, error)
}

// fresh returns examples that the function draw makes anew for each step. The argument size of draw is the batch size.
func fresh(c Training, draw func(epoch, step, size int) (data.Batch, error)) examples {
	drawn := -1 // number of the step
	var step data.Batch
	return examples{n: c.BatchSize * c.StepsPerEpoch, order: train.Fresh, batch: func(examples []int) (data.Batch, error) {
		if i := examples[0] / c.BatchSize; i != drawn { // draw all examples of a step at once
			var err error
			if step, err = draw(i/c.StepsPerEpoch, i%c.StepsPerEpoch, c.BatchSize); err != nil {
				return step, err
			}
			drawn = i
		}
		from := examples[0] % c.BatchSize
		return step.Rows(from, from+len(examples)), nil
	}}
}

// A ruleSet draws examples of a rule. No example is used for both training and validation.
type ruleSet struct {
	coder    data.Coder
	split    *data.Split
	examples []data.Example // for validation
}

func openRule(c *Config) (set, error) {
	if c.Task.Sample == nil || c.Task.Answer == nil {
		return nil, setting.Errorf("the task %.100q has no Sample or no Answer, so there is nothing to learn from: pass the rule in a Go program, or set %s",
			c.Task.Name, setting.Path("data.file"))
	}
	coder, err := data.NewCoder(c.Task)
	if err != nil {
		return nil, setting.As(err)
	}
	split, err := data.NewSplit(c.Task, c.Seed, c.Data.Validation)
	if err != nil {
		return nil, setting.As(setting.Within("data", err))
	}
	s := &ruleSet{coder, split, split.Validation()}
	examples, err := split.Train(0, 0, 1)
	if err == nil { // detect a faulty rule before making the model
		examples = append(examples, s.examples[:min(validationSize, len(s.examples))]...)
		_, err = coder.Batch(examples)
	}
	if err != nil {
		return nil, setting.As(err)
	}
	return s, nil
}

func (s *ruleSet) train(c Training) examples {
	return fresh(c, func(epoch, step, size int) (data.Batch, error) {
		examples, err := s.split.Train(epoch, step, size)
		if err != nil {
			return data.Batch{}, err
		}
		return s.coder.Batch(examples)
	})
}

func (s *ruleSet) validation() examples {
	return examples{n: len(s.examples), batch: func(numbers []int) (data.Batch, error) {
		examples := make([]data.Example, len(numbers))
		for i, n := range numbers {
			examples[i] = s.examples[n]
		}
		return s.coder.Batch(examples)
	}}
}

func (s *ruleSet) judged() int  { return len(s.examples) }
func (s *ruleSet) close() error { return nil }

// A textSet has windows of a text as examples.
type textSet struct {
	*data.Text
	masked        *data.MaskedText // nil unless symbols are masked
	windows       int              // number of validation windows
	targets       int              // number of targets in them
	seed          uint64
	length, limit int // length of a window, and greatest number of validation windows
	characters    int // for text in tokens: number of characters in the targets of the validation windows; 0 for masked text
}

// openText opens the text. If the run has already begun, the text must be unchanged.
func openText(c *Config) (set, error) {
	if c.Data.SourceUnits == tokenizer.Characters { // the default
		c.Data.SourceUnits = ""
	}
	if c.Data.ValidationFile != "" {
		return nil, setting.Errorf("%s is for rows and for conversations, and %s is a text", setting.Path("data.validation_file"), setting.Path("data.file"))
	}
	if c.Published() {
		c.Task.MaxLen = cmp.Or(c.Task.MaxLen, min(256, c.Task.Published.MaxLen))
	}
	text, err := readText(c)
	var unknown *tokenizer.UnknownSymbolError
	if errors.As(err, &unknown) && c.Data.SHA256 != "" {
		err = fmt.Errorf("the text has changed since the run began: %w", err)
	}
	if err != nil {
		return nil, err
	}
	s := &textSet{Text: text, seed: c.Seed, length: c.Task.MaxLen, limit: c.Data.Validation}
	if err := s.describe(c); err != nil {
		text.Close()
		return nil, err
	}
	if t := &c.Training; c.Published() { // an epoch has as many tokens as the text
		t.StepsPerEpoch = cmp.Or(t.StepsPerEpoch, max(1, text.Len()/(t.BatchSize*s.length)))
		if t.MaxEpochs < 0 {
			t.MaxEpochs = 3
		}
		t.Stopping.Patience, t.Stopping.MinDelta = max(0, t.Stopping.Patience), max(0, t.Stopping.MinDelta)
		t.plan(t.StepsPerEpoch)
	}
	return s, nil
}

// textFiles returns the files of a text.
func (c *Config) textFiles() data.TextFiles {
	return data.TextFiles{Paths: append([]string{c.Data.File}, c.Data.MoreFiles...), Encoding: c.Data.Encoding, Key: append(c.Data.Columns, "")[0], Whole: c.Published()}
}

// readText opens the text with the run's tokenizer or alphabet, or makes these for a new run.
func readText(c *Config) (*data.Text, error) {
	files := c.textFiles()
	switch {
	case c.Task.Source != nil:
		return data.OpenText(files, c.Task.Source)
	case c.Task.Alphabet != "":
		vocab, err := tokenizer.NewVocab(c.Task.Alphabet)
		if err != nil {
			return nil, err
		}
		return data.OpenText(files, vocab)
	}
	text, err := data.OpenText(files, nil)
	if err != nil || c.Data.SourceUnits != tokenizer.BPE {
		return text, err
	}
	c.Data.VocabSize = cmp.Or(c.Data.VocabSize, rows.VocabSize(int(text.Size())))
	if err := text.LearnBPE(max(256, c.Data.VocabSize)); err != nil {
		text.Close()
		return nil, err
	}
	c.Task.Source = text.Tokenizer()
	return text, nil
}

// describe completes the configuration. If the configuration already has the text's checksum, the text must match it.
func (s *textSet) describe(c *Config) error {
	var err error
	if c.Data.SHA256 = cmp.Or(c.Data.SHA256, s.SHA256()); c.Data.SHA256 != s.SHA256() {
		return fmt.Errorf("text %q has changed since the run began", c.Data.File)
	}
	c.Data.Characters = s.Characters()
	if c.Task.Source != nil {
		c.Data.Tokens = s.Len()
		if about := kindOf(c.Task.Kind).about().About; c.Task.About == about {
			c.Task.About = strings.Replace(about, "character", "token", 1)
		}
	}
	if c.Task.Source == nil {
		c.Task.Alphabet = s.Tokenizer().(*tokenizer.Vocab).Symbols()
	} else if c.Data.Tokenizers, err = c.TokenizerSums(); err != nil {
		return err
	}
	coder, err := data.NewCoder(c.Task)
	if err != nil {
		return setting.As(err)
	}
	if masked, ok := coder.(*data.MaskedText); ok {
		s.masked, s.length = masked, masked.Window()
	}
	if s.windows, err = s.ValidationWindows(s.length, s.limit); err != nil {
		return setting.Errorf("%w (%s)", err, setting.Path("task.max_len"))
	}
	if s.limit == 0 {
		s.windows = 0
	}
	if s.targets = s.windows * s.length; s.masked != nil || c.Task.Source != nil {
		if err := s.count(); err != nil {
			return err
		}
	}
	if s.masked == nil {
		c.Task.Example, err = opening(s.Text, min(24, s.length))
	} else if c.Task.Example, err = opening(s.Text, min(24, s.length-1)); err == nil { // mask the last word
		c.Task.Example = c.Task.Example[:strings.LastIndexByte(c.Task.Example, ' ')+1] + s.masked.Name()
	}
	return err
}

// count sets targets, and characters unless symbols are masked. A character counts for the token that has its first
// byte.
func (s *textSet) count() error {
	s.targets = 0
	each := make([]int, s.Tokenizer().Len()) // characters that begin in each token
	for id := range each {
		text, err := s.Tokenizer().Decode([]int{id})
		if err != nil {
			return err
		}
		for i := range len(text) {
			if utf8.RuneStart(text[i]) {
				each[id]++
			}
		}
	}
	for n := range s.windows {
		b, err := s.validationBatch([]int{n})
		if err != nil {
			return err
		}
		s.targets += b.Counted()
		for _, id := range b.Targets {
			if s.masked == nil {
				s.characters += each[id]
			}
		}
	}
	return nil
}

func (s *textSet) train(c Training) examples {
	return fresh(c, func(epoch, step, size int) (data.Batch, error) {
		b, err := s.TrainBatch(s.seed, epoch, step, size, s.length)
		if err != nil || s.masked == nil {
			return b, err
		}
		numbers := make([]int, size)
		for i := range numbers {
			numbers[i] = step*size + i
		}
		return s.masked.Mask(b, s.seed, epoch, numbers)
	})
}

func (s *textSet) validation() examples { return examples{n: s.windows, batch: s.validationBatch} }

// validationBatch returns a batch of validation windows. Masks are the same in every check.
func (s *textSet) validationBatch(numbers []int) (data.Batch, error) {
	b, err := s.ValidationBatch(numbers, s.length, s.limit)
	if err != nil || s.masked == nil {
		return b, err
	}
	return s.masked.Mask(b, s.seed, -1, numbers)
}

func (s *textSet) judged() int  { return s.targets }
func (s *textSet) close() error { return s.Close() }

// opening returns the beginning of a text, up to n tokens and up to the first character that is hard to type.
func opening(text *data.Text, n int) (string, error) {
	ids := make([]int, min(n, text.Len()))
	if err := text.Window(ids, 0); err != nil {
		return "", err
	}
	s, err := text.Tokenizer().Decode(ids)
	if err != nil {
		return "", err
	}
	s = strings.ToValidUTF8(s, "") // the last token may end inside a character
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r == '-' || unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if i := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		s = s[:i]
	}
	if s == "" {
		s = "TEXT"
	}
	return s, nil
}
