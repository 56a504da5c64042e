package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/model"
)

// languageModel predicts the next symbol of a text.
type languageModel struct{ common }

var textKind = languageModel{common{facts{
	Kind: model.KindOf(data.KindText), help: "the next character of a file",
	maxLen: 64,
}}}

func (languageModel) defaults(c *Config) {
	c.Model.Dim, c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 64, 16, 200, 3000
}
