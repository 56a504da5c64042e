// Package metrics has the names of metrics, and their words.
package metrics

import (
	"fmt"
	"strings"
)

// A Metric says how good answers are.
type Metric struct {
	Name  string // in a loss, in the history and in reports
	About string
	Share bool // a share of right answers
	Lower bool // lower is better
}

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

// Text describes the values of a model, such as "Baseline: a linear model, accuracy 0.7600, macro f1 0.7100". Without
// values, it returns "".
func Text(about string, list []Metric, values map[string]float64) string {
	var words []string
	for _, m := range list {
		if v, ok := values[m.Name]; ok {
			words = append(words, fmt.Sprintf("%s %.4f", Spoken(m.Name), v))
		}
	}
	if words == nil {
		return ""
	}
	return about + ", " + strings.Join(words, ", ") + "\n"
}
