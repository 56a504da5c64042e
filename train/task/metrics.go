package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// named lists choices by name, each with a line of help.
type named = choices.Table[struct{}]

// metrics lists metrics by the names that they have in a loss.
type metrics = choices.Table[metric]

// A metric says how to read the values of a metric.
type metric struct {
	share bool // a share of right answers
	lower bool // lower is better
}

// accuracy is the metric that classifiers have.
var accuracy = choices.Entry[metric]{Name: "accuracy", About: "share of right answers", Value: metric{share: true}}

// classMetrics has the names of the metrics of one label of a file: see train.ClassMetrics. The metric of the label
// fraud is called recall[fraud].
var classMetrics = []string{"precision", "recall", "f1", "average_precision"}

// ofClass divides a name such as val_recall[fraud] into the metric and the label. It reports whether the name has this
// form.
func ofClass(name string) (metric, class string, ok bool) {
	metric, class, ok = strings.Cut(name, "[")
	class, closed := strings.CutSuffix(class, "]")
	return metric, class, ok && closed
}

// labelled reports whether the task learns the labels of a file.
func (c *Config) labelled() bool { return c.FromRows() && c.Task.Kind == data.KindClassification }

// checkMonitor returns an error if no value has the name of the monitored value. Before New has read the rows of a
// file, any label may be in the name.
func (c *Config) checkMonitor() error {
	name, path, names := c.Training.Stopping.Monitor, setting.Path("training.stopping.monitor"), monitored(c).Names()
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	listed := strings.Join(names, ", ")
	if c.labelled() {
		named, class, ok := ofClass(name)
		part, metric, _ := strings.Cut(named, "_")
		if classes := c.Task.Classes; ok && slices.Contains(names, part+"_loss") && slices.Contains(classMetrics, metric) {
			if classes == nil || slices.Contains(classes, class) {
				return nil
			}
			return setting.Errorf("%s %.100q must name a label of the file, got %.100q%s", path, name, class, text.DidYouMean(class, classes))
		}
		for _, m := range classMetrics {
			names = append(names, "val_"+m+"["+class+"]")
		}
		listed += fmt.Sprintf(", or for one label %s, each like val_%s[LABEL]", strings.Join(classMetrics, ", "), classMetrics[0])
	}
	return setting.Errorf("%s must be one of %s, got %.100q%s", path, listed, name, text.DidYouMean(name, names))
}

// direct sets an empty Mode to the direction in which the monitored metric improves. It leaves losses and unknown names
// to check.
func (c *Config) direct() {
	s := &c.Training.Stopping
	if s.Mode != "" || s.Monitor == "" || strings.HasSuffix(s.Monitor, "loss") {
		return
	}
	_, name, _ := strings.Cut(s.Monitor, "_")
	m, known := kindOf(c.Task.Kind).metrics(c).Get(name)
	_, _, class := ofClass(name)
	switch {
	case known && m.lower:
		s.Mode = "min"
	case known || class:
		s.Mode = "max"
	}
}

// spoken returns a metric's name in words.
func spoken(metric string) string {
	name, class, ofClass := ofClass(metric)
	if name = strings.ReplaceAll(name, "_", " "); ofClass {
		name += " of " + class
	}
	return name
}
