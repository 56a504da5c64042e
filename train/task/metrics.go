package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
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

// monitored lists the values that early stopping may monitor: the loss and the metrics, training before validation. If
// c is nil, it lists the values of all tasks.
func monitored(c *Config) (values named) {
	var computed metrics
	for _, k := range everyKind {
		if c == nil {
			computed = append(computed, k.metrics(&Config{Data: data.Settings{File: "any"}, Task: data.Rule{Kind: k.about().Name}})...)
		}
	}
	if c != nil {
		computed = kindOf(c.Task.Kind).metrics(c)
	}
	for _, part := range [][2]string{{"train_", " in training, since the last check"}, {"val_", " in validation"}} {
		if c != nil && c.Data.Validation == 0 && part[0] == "val_" {
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
func (c *Config) labelled() bool { return c.fromRows() && c.Task.Kind == data.KindClassification }

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

// Choices returns the tables that flags of the command heed choose from, by the names of the flags.
func Choices() map[string]choices.Choice {
	var losses named
	for _, k := range everyKind {
		losses = append(losses, k.about().losses...)
	}
	table := map[string]choices.Choice{"monitor": choiceOf(monitored(nil)), "loss": choiceOf(losses)}
	maps.Copy(table, layers.Choices())
	maps.Copy(table, optim.Choices())
	return table
}

// choiceOf returns a choice of names. Config.check checks the name.
func choiceOf(names named) choices.Choice {
	return choices.Choice{
		All:   names.All(),
		Parse: func(text string) (any, error) { return text, nil },
		Text:  func(v any) string { return v.(string) },
	}
}
