package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
)

// A set has the training and validation examples of a task.
type set interface {
	train(c Training) examples
	validation() examples
	size() int            // number of examples in a validation batch
	judged() int          // number of validation answers that a Score counts; 0 without validation
	counts() *labelCounts // of labels or tags; nil if there are none
	characters() int      // for text in tokens: see judge.Score
	held() []data.Example // validation examples; nil for text
	describe() string     // see Task.DescribeData
	close() error
}

// bare has what most sets have.
type bare struct{}

func (bare) counts() *labelCounts { return nil }
func (bare) characters() int      { return 0 }
func (bare) held() []data.Example { return nil }
func (bare) describe() string     { return "" }
func (bare) close() error         { return nil }

// A source opens a set. If the configuration is of a new run, open completes it. If the run has already begun, the data
// must be unchanged.
type source struct {
	has  func(c *Config) bool // whether the task learns from this source
	open func(k kind, c *Config) (set, error)
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
