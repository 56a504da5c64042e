package task

import (
	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/kinds"
	"github.com/heed-go/heed/internal/ops"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/score"
)

// A metric is a measure that the loss of some tasks returns.
type metric struct {
	// has reports whether a task has the metric or, before New has read the rows of a file, whether it may have it.
	has func(c *Config) bool

	add func(t *Task, b *layers.Build, logits, targets *G.Node) (train.Metric, error) // adds it to a graph
}

// metrics lists all metrics. A StoppingConfig may monitor them and the loss.
var metrics = kinds.Table[metric]{
	{Name: "accuracy", About: "share of right answers", Value: metric{func(*Config) bool { return true }, accuracy}},
	{Name: "macro_f1", About: "mean F1 score of the labels of a file", Value: metric{
		func(c *Config) bool { return c.fromRows() && c.Kind().Classes && !c.Kind().AnswerUnits },
		func(_ *Task, b *layers.Build, logits, targets *G.Node) (train.Metric, error) {
			return train.MacroF1(b, logits, targets)
		},
	}},
	{Name: "entity_f1", About: "F1 score of entities in the tags of a file, such as B-PER and I-PER", Value: metric{
		func(c *Config) bool {
			return c.fromRows() && c.Kind().Classes && c.Kind().AnswerUnits && (c.Task.Target == nil || tagsOf(c.Task.Target) != nil)
		},
		entityF1,
	}},
}

func accuracy(t *Task, b *layers.Build, logits, targets *G.Node) (train.Metric, error) {
	right, counted, err := ops.CountRight(b.Env(), logits, targets, t.unknownClass(), !t.Config.Kind().aligned)
	return train.Metric{Name: "accuracy", Sum: right, Count: counted}, err
}

// tagsOf returns the text of each tag. It returns nil if the tags aren't made for entities: see score.Entities.
func tagsOf(t tokenizer.Tokenizer) []string {
	tags := make([]string, t.Len())
	var all score.Entities
	for id := range tags {
		tags[id], _ = t.Decode([]int{id})
		if id != t.Unknown() {
			all.Add(nil, tags[id:id+1])
		}
	}
	if all.Others > 0 || all.Total().Rows == 0 {
		return nil
	}
	return tags
}

// entityF1 adds the F1 score of score.Entities.
func entityF1(t *Task, b *layers.Build, logits, targets *G.Node) (train.Metric, error) {
	tags := tagsOf(t.Config.Task.Target)
	sums, err := ops.SumAnswers(b.Env(), "entity f1", logits, targets, 2, func(sums []float64, answers, targets []int) {
		var answered, right []string
		for i, id := range targets {
			if id < 0 { // padding
				continue
			}
			tag := "O"
			if answers[i] >= 0 {
				tag = tags[answers[i]]
			}
			answered, right = append(answered, tag), append(right, tags[id])
		}
		var e score.Entities
		e.Add(answered, right)
		total := e.Total()
		sums[0] += float64(2 * total.Right)
		sums[1] += float64(total.Answers + total.Rows)
	})
	return train.Metric{Name: "entity_f1", Sum: sums, Value: func(sums []float64) float64 {
		return sums[0] / max(sums[1], 1)
	}}, err
}

// monitored lists the values that a StoppingConfig may monitor: the loss and the metrics, training before validation.
// If c is nil, it lists the values of all tasks.
func monitored(c *Config) (values kinds.Table[struct{}]) {
	for _, part := range [][2]string{{"train_", " in training, since the last check"}, {"val_", " in validation"}} {
		if c != nil && c.Data.Validation == 0 && part[0] == "val_" {
			break
		}
		values = append(values, kinds.Entry[struct{}]{Name: part[0] + "loss", About: "mean loss" + part[1]})
		for _, m := range metrics {
			if c == nil || m.Value.has(c) {
				values = append(values, kinds.Entry[struct{}]{Name: part[0] + m.Name, About: m.About + part[1]})
			}
		}
	}
	return values
}

func init() {
	kinds.Choices["monitor"] = kinds.Choice{
		All:   monitored(nil).All(),
		Parse: func(text string) (any, error) { return text, nil }, // Config.check checks the name
		Text:  func(v any) string { return v.(string) },
	}
}
