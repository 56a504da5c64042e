package task

import (
	"github.com/heed-go/heed/data"
)

// languageModel predicts the next symbol of a text.
type languageModel struct{ common }

var textKind = languageModel{common{facts{
	name: data.KindText, help: "the next character of a file",
	symbols: true, maxLen: 64,
}}}

func (languageModel) defaults(c *Config) {
	c.Model.Dim, c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 128, 16, 200, 3000
}
