package task

import (
	"maps"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/choices"
	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/task/judge"
)

// Choices returns the tables that flags of the command heed choose from, by the names of the flags.
func Choices() map[string]choices.Choice {
	whole := Config{Config: model.Config{Data: data.Settings{File: "any", Validation: 1}}}
	var losses named
	var computed []metrics.Metric
	for _, k := range kinds {
		whole.Task.Kind = k.about().name
		losses, computed = append(losses, k.about().losses...), append(computed, judge.KindOf(&whole.Config).Metrics...)
	}
	table := map[string]choices.Choice{"monitor": choiceOf(monitored(&whole, computed)), "loss": choiceOf(losses), "weights": choiceOf(model.Weights), "entities": choiceOf(model.EntityRules)}
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
func choiceOf[V any](names choices.Table[V]) choices.Choice {
	return choices.Choice{
		All:   names.All(),
		Parse: func(text string) (any, error) { return text, nil },
		Text:  func(v any) string { return v.(string) },
	}
}
