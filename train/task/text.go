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
)

// textSource has a text.
var textSource = source{func(*Config) bool { return true }, openText}

// A textSet has windows of a text as examples.
type textSet struct {
	bare
	*data.Text
	masked        *data.MaskedText // nil unless symbols are masked
	windows       int              // number of validation windows
	targets       int              // number of targets in them
	seed          uint64
	length, limit int // length of a window, and greatest number of validation windows
	batch         int // number of windows in a validation batch
	chars         int // for text in tokens: number of characters in the targets of the validation windows; 0 for masked text
}

func openText(k kind, c *Config) (set, error) {
	if c.Data.SourceUnits == tokenizer.Characters { // the default
		c.Data.SourceUnits = ""
	}
	if c.Data.ValidationFile != "" {
		return nil, setting.Errorf("%s is for rows and for conversations, and %s is a text", setting.Path("data.validation_file"), setting.Path("data.file"))
	}
	published := c.Published()
	if published {
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
	c.Training.BatchSize = cmp.Or(c.Training.BatchSize, fineWindows)
	s := &textSet{Text: text, seed: c.Seed, length: c.Task.MaxLen, limit: c.Data.Validation, batch: validationSize}
	if err := s.complete(k, c); err != nil {
		text.Close()
		return nil, err
	}
	if t := &c.Training; published { // an epoch has as many tokens as the text
		t.StepsPerEpoch = cmp.Or(t.StepsPerEpoch, max(1, text.Len()/(t.BatchSize*s.length)))
		if t.MaxEpochs < 0 {
			t.MaxEpochs = 3
		}
		t.Stopping.Patience, t.Stopping.MinDelta = max(0, t.Stopping.Patience), max(0, t.Stopping.MinDelta)
		t.plan(t.StepsPerEpoch)
		s.batch = t.BatchSize
	}
	return s, nil
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

// complete completes the configuration. If the configuration already has the text's checksum, the text must match it.
func (s *textSet) complete(k kind, c *Config) error {
	var err error
	fresh := c.Data.SHA256 == ""
	if c.Data.Pack == "yes" {
		s.Pack()
	}
	if c.Data.SHA256 = cmp.Or(c.Data.SHA256, s.SHA256()); c.Data.SHA256 != s.SHA256() {
		return fmt.Errorf("text %q has changed since the run began", c.Data.File)
	}
	c.Data.Characters = s.Characters()
	if c.Task.Source != nil {
		c.Data.Tokens = s.Len()
		if help := k.about().help; c.Task.About == help {
			c.Task.About = strings.Replace(help, "character", "token", 1)
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
	if fresh && s.masked == nil && c.choosePack(s.Len(), s.Documents()) {
		s.Pack()
		c.Data.SHA256 = s.SHA256()
	}
	if s.windows, err = s.ValidationWindows(s.length, s.limit); err != nil {
		return setting.Errorf("%w (%s)", err, setting.Path("task.max_len"))
	}
	if s.limit == 0 {
		s.windows = 0
	}
	if s.targets = s.windows * s.length; s.masked != nil || c.Task.Source != nil || c.Data.Pack == "yes" {
		if err := s.count(c.Task.Source != nil); err != nil {
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

// count sets targets and, for tokens that aren't masked, chars. A character counts for the token that has its first
// byte.
func (s *textSet) count(tokens bool) error {
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
			if tokens && s.masked == nil && id != data.Ignore {
				s.chars += each[id]
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

func (s *textSet) size() int       { return s.batch }
func (s *textSet) judged() int     { return s.targets }
func (s *textSet) characters() int { return s.chars }
func (s *textSet) close() error    { return s.Close() }

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
