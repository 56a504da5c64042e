package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
)

// ruleSource has the examples that a rule draws.
var ruleSource = source{(*Config).Drawn, openRule}

// validationSize is the number of examples in a validation batch, except for rows of a file and for published models.
const validationSize = 250

// A ruleSet draws examples of a rule. No example is used for both training and validation.
type ruleSet struct {
	bare
	coder    data.Coder
	split    *data.Split
	examples []data.Example // for validation
}

func openRule(_ kind, c *Config) (set, error) {
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
	s := &ruleSet{coder: coder, split: split, examples: split.Validation()}
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

func (s *ruleSet) size() int            { return validationSize }
func (s *ruleSet) judged() int          { return len(s.examples) }
func (s *ruleSet) held() []data.Example { return s.examples }
