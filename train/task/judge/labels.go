package judge

import (
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/train/model"
)

// labels judges labels, one for each source.
type labels struct{ classes }

func (labels) metrics(c *model.Config) []metrics.Metric {
	if !c.FromRows() {
		return []metrics.Metric{accuracy}
	}
	return []metrics.Metric{accuracy, {Name: "macro_f1", About: "mean F1 score of the labels of a file"}}
}
