package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
)

// A Config holds all settings that determine the result of a run.
type Config struct {
	model.Config
	Training Training `json:"training"`
}

// Training has the settings of training. For rows of a file, an epoch is one pass over them. If BatchSize or
// StepsPerEpoch is 0, or MaxEpochs or the schedule's WarmUp or Decay is negative, New chooses a value from the number
// of rows. Conversations are like rows. For a text that a published model learns, New makes an epoch as long as the
// text: its steps read as many tokens. If MicroBatches is 0, New sets it to the largest of 4, 2 and 1 that divides
// BatchSize, but not to 4 if a published model's own weights learn from rows, because each partial sum of gradients is
// as large as the model. For embed, New sets MicroBatches to 1, because only the texts of the same micro-batch are
// negatives.
//
// For rows of a file, New also replaces negative values of three more settings. CheckEvery becomes a tenth of an epoch
// if an epoch has more than 2,000 steps, and otherwise 0. Stopping.Patience becomes 50 if New set CheckEvery to a tenth
// of an epoch, and otherwise 5. Stopping.MinDelta becomes 0.0001 if a loss is monitored, and otherwise 0. For
// conversations with validation, a negative Patience becomes 2, and MinDelta then 0.01.
//
// For classification of rows with validation, if Stopping has neither a Monitor nor a Mode, New sets the Monitor to
// val_accuracy. If labels are rare, it becomes val_macro_f1: if the most frequent label has more than 90 % of the
// training rows, or the rarest less than a tenth of an even share. For multilabel, it becomes val_average_precision.
// Then the thresholds of Stopping also are for this value.
//
// Stopping.Monitor may also be a metric of one label of a file, such as val_recall[fraud]: see train.ClassMetrics. If
// Stopping.Mode is empty, New sets it to the direction in which the monitored metric improves.
type Training struct {
	train.Config

	StepsPerEpoch  int     `json:"steps_per_epoch"`           // batches per epoch
	LabelSmoothing float64 `json:"label_smoothing,omitempty"` // see layers.CrossEntropyOptions; not used in validation
	Loss           string  `json:"loss,omitempty"`            // for regression: "squared" or "huber", which is linear beyond one standard deviation; empty means "squared"; for embed: "contrastive" or "cosine"; empty means that the columns decide
	Temperature    float64 `json:"temperature,omitempty"`     // for embed: divides the cosines in the loss contrastive; 0 means 0.05
	ClassWeights   string  `json:"class_weights,omitempty"`   // for labels and tags of a file: "balanced" weighs rare classes up; empty means equal weights
}

// textFiles returns the files of a text.
func (c *Config) textFiles() data.TextFiles {
	return data.TextFiles{Paths: append([]string{c.Data.File}, c.Data.MoreFiles...), Encoding: c.Data.Encoding, Key: append(c.Data.Columns, "")[0], Whole: c.Published()}
}

// configOf returns a configuration with the settings that a model has, and none of its training.
func configOf(m *model.Model) *Config { return &Config{Config: *m.Config} }

// classesOf returns a function that returns the class of the label of a row, or the class of each of its tags.
func (c *Config) classesOf() func(answer string) []int {
	if target := c.Task.Target; target != nil { // measuring the rows would have returned errors of Encode
		return func(answer string) []int { ids, _ := target.Encode(answer); return ids }
	}
	numbers := map[string]int{}
	for i, name := range c.Task.Classes {
		numbers[name] = i
	}
	return func(answer string) []int { return []int{numbers[answer]} }
}
