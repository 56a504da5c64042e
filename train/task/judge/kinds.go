package judge

import (
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/model"
)

const linear = "a linear baseline"

var kinds = []Kind{
	{name: data.KindText, Unit: "characters", Right: "predicted", LossUnit: "nats", scorer: classes{}},
	{name: data.KindMaskedText, Unit: "masked characters", Right: "predicted", LossUnit: "nats", scorer: classes{}},
	{name: data.KindSeq2Seq, Unit: "rows", Right: "exactly right", LossUnit: "nats", scorer: sequences{}},
	{name: data.KindClassification, Unit: "labels", Right: "right", LossUnit: "nats", Baseline: linear, scorer: labels{}},
	{name: data.KindMultiLabel, Unit: "rows", Right: "exactly right", LossUnit: "nats", Baseline: linear, scorer: several{}},
	{name: data.KindTagging, Unit: "tags", Right: "right", LossUnit: "nats", Baseline: linear, scorer: tags{}},
	{name: data.KindRegression, Unit: "rows", Baseline: linear, scorer: numbers{}},
	{name: data.KindEmbed, Unit: "rows", Baseline: "TF-IDF of words", scorer: texts{}},
	{name: data.KindQA, Unit: "windows", Right: "exactly right", LossUnit: "nats", scorer: extracts{}},
}

// kindOf returns the kind with this name, with the words for rows of a file. The answers of a kind without a line are
// compared as texts.
func kindOf(name data.Kind) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{Unit: "answers", Right: "exactly right", LossUnit: "nats", scorer: exact{}}
}

// KindOf returns the kind of a configuration's task. Its words depend on the data: for a rule without a file, whole
// answers are counted, and for text in byte pairs, tokens are counted.
func KindOf(c *model.Config) Kind {
	k := kindOf(c.Task.Kind)
	k.Metrics = k.metrics(c)
	k.Score = k.Metrics[0]
	switch {
	case c.Drawn():
		k.Unit = "sequences"
		if k.Right != "" {
			k.Right = "exactly right"
		}
	case c.Task.Source != nil:
		k.Unit = strings.Replace(k.Unit, "characters", "tokens", 1)
	}
	return k
}
