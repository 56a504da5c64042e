package task

import (
	"maps"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
)

// monitored lists the values that early stopping may monitor: the loss and the metrics, training before validation. If
// c is nil, it lists the values of all tasks.
func monitored(c *Config) (values named) {
	var computed metrics
	for _, k := range everyKind {
		if c == nil {
			computed = append(computed, k.metrics(&Config{Config: model.Config{Data: data.Settings{File: "any"}, Task: data.Rule{Kind: k.about().Name}}})...)
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

// Choices returns the tables that flags of the command heed choose from, by the names of the flags.
func Choices() map[string]choices.Choice {
	var losses named
	for _, k := range everyKind {
		losses = append(losses, k.about().losses...)
	}
	table := map[string]choices.Choice{"monitor": choiceOf(monitored(nil)), "loss": choiceOf(losses), "weights": choiceOf(model.Weights)}
	checked := table["weights"]
	checked.Parse = func(text string) (any, error) {
		_, err := model.Weights.Index("kind of weights", text)
		return text, err
	}
	table["weights"] = checked
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
