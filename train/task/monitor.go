package task

import "github.com/heed-go/heed/internal/kinds"

// monitored are the values that a Stopping may monitor, those of training first.
var monitored = kinds.Table[struct{}]{
	{Name: "train_loss", About: "mean loss of training since the last check"},
	{Name: "train_accuracy", About: "share of what training got right since then"},
	{Name: "val_loss", About: "mean loss of validation"},
	{Name: "val_accuracy", About: "share of what validation got right"},
}

func init() {
	kinds.Choices["monitor"] = kinds.Choice{
		All:   monitored.All(),
		Parse: func(text string) (any, error) { return text, nil }, // which check looks at
		Text:  func(v any) string { return v.(string) },
	}
}
