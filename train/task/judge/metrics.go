package judge

import (
	"fmt"
	"strings"

	"github.com/heed-go/heed/internal/choices"
)

// Metrics lists metrics by the names that they have in a loss and in a Report.
type Metrics = choices.Table[Metric]

// A Metric says how to read the values of a metric.
type Metric struct {
	Share bool // a share of right answers
	Lower bool // lower is better
}

// accuracy is the metric that classifiers have.
var accuracy = choices.Entry[Metric]{Name: "accuracy", About: "share of right answers", Value: Metric{Share: true}}

// OfClass divides the name of a metric of one label, such as val_recall[fraud], into the metric and the label. It
// reports whether the name has this form.
func OfClass(name string) (metric, class string, ok bool) {
	metric, class, ok = strings.Cut(name, "[")
	class, closed := strings.CutSuffix(class, "]")
	return metric, class, ok && closed
}

// Spoken returns a metric's name in words.
func Spoken(metric string) string {
	name, class, ofClass := OfClass(metric)
	if name = strings.ReplaceAll(name, "_", " "); ofClass {
		name += " of " + class
	}
	return name
}

// ValuesText describes the values of a model, such as "Baseline: a linear model, accuracy 0.7600, macro f1 0.7100".
// Without values, it returns "".
func ValuesText(about string, names Metrics, values map[string]float64) string {
	var words []string
	for _, m := range names {
		if v, ok := values[m.Name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", Spoken(m.Name), v))
		}
	}
	if words == nil {
		return ""
	}
	return about + ", " + strings.Join(words, ", ") + "\n"
}
