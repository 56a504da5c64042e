package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task/judge"
)

// classMetrics has the names of the metrics of one label of a file: see train.ClassMetrics. The metric of the label
// fraud is called recall[fraud].
var classMetrics = []string{"precision", "recall", "f1", "average_precision"}

// monitored lists the values that early stopping may monitor: the loss and the computed metrics, training before
// validation.
func monitored(c *Config, computed []metrics.Metric) (values named) {
	for _, part := range [][2]string{{"train_", " in training, since the last check"}, {"val_", " in validation"}} {
		if c.Data.Validation == 0 && part[0] == "val_" {
			break
		}
		values = append(values, choices.Entry[struct{}]{Name: part[0] + "loss", About: "mean loss" + part[1]})
		for _, m := range computed {
			if _, listed := values.Get(part[0] + m.Name); !listed {
				values = append(values, choices.Entry[struct{}]{Name: part[0] + m.Name, About: m.About + part[1]})
			}
		}
	}
	return values
}

// checkMonitor returns an error if no value has the name of the monitored value. Before New has read the rows of a
// file, any label may be in the name.
func (c *Config) checkMonitor(k facts) error {
	name, path, names := c.Training.Stopping.Monitor, setting.Path("training.stopping.monitor"), monitored(c, judge.KindOf(&c.Config).Metrics).Names()
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	listed := strings.Join(names, ", ")
	if c.FromRows() && k.format.Labels {
		named, class, ok := metrics.OfClass(name)
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
	computed := judge.KindOf(&c.Config).Metrics
	i := slices.IndexFunc(computed, func(m metrics.Metric) bool { return m.Name == name })
	_, _, class := metrics.OfClass(name)
	switch {
	case i >= 0 && computed[i].Lower:
		s.Mode = "min"
	case i >= 0 || class:
		s.Mode = "max"
	}
}
