package judge

import (
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/model"
)

var kinds = []Kind{
	{Kind: model.KindOf(data.KindText), Unit: "characters", Right: "predicted", LossUnit: "nats", scorer: classes{}},
	{Kind: model.KindOf(data.KindMaskedText), Unit: "masked characters", Right: "predicted", LossUnit: "nats", scorer: classes{}},
	{Kind: model.KindOf(data.KindSeq2Seq), Unit: "rows", Right: "exactly right", LossUnit: "nats", scorer: sequences{}},
	{Kind: model.KindOf(data.KindClassification), Unit: "labels", Right: "right", LossUnit: "nats", scorer: labels{}},
	{Kind: model.KindOf(data.KindTagging), Unit: "tags", Right: "right", LossUnit: "nats", scorer: tags{}},
	{Kind: model.KindOf(data.KindRegression), Unit: "rows", scorer: numbers{}},
	{Kind: model.KindOf(data.KindEmbed), Unit: "rows", scorer: texts{}},
}

// kindOf returns the kind with this name, with the words for rows of a file. If there is none, it returns a kind
// without a name.
func kindOf(name data.Kind) Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return Kind{scorer: classes{}}
}

// KindOf returns the kind of a configuration's task. Its words depend on the data: for a rule without a file, whole
// answers are counted, and for text in byte pairs, tokens are counted.
func KindOf(c *model.Config) Kind {
	k := kindOf(c.Task.Kind)
	if k.Metrics = k.metrics(c); k.Name != "" {
		k.Score = k.Metrics[0]
	}
	k.Kind = c.Kind()
	switch {
	case c.Drawn():
		k.Unit = "sequences"
		if k.Right != "" {
			k.Right = "exactly right"
		}
	case !k.Rows && c.Task.Source != nil:
		k.Unit = strings.Replace(k.Unit, "characters", "tokens", 1)
	}
	return k
}
