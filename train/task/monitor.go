package task

import "github.com/heed-go/heed/internal/kinds"

// monitored lists the values that a Stopping may monitor, training before validation.
var monitored = kinds.Table[struct{}]{
	{Name: "train_loss", About: "mean training loss since the last check"},
	{Name: "train_accuracy", About: "share of right training answers since the last check"},
	{Name: "val_loss", About: "mean validation loss"},
	{Name: "val_accuracy", About: "share of right validation answers"},
}

func init() {
	kinds.Choices["monitor"] = kinds.Choice{
		All:   monitored.All(),
		Parse: func(text string) (any, error) { return text, nil }, // Config.check checks the name
		Text:  func(v any) string { return v.(string) },
	}
}
