// Entities finds entities in texts, such as names of people and places, with a published model for tags:
//
//	go run ./examples/entities --folder models/ner --text 'Ann Lee lives in Oslo.'
//
// The page docs/pretrained.md says which models open, and how to get their folders.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/train/model"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, _ := example.New("entities")
	folder := flags.String("folder", "", "the `FOLDER` of a published model for tags")
	text := flags.String("text", "Ann Lee lives in Oslo.", "text with entities")
	rule := flags.String("rule", "words", "how tags become entities: words, first, average, max, simple or none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *folder == "" {
		return flags.Wrong(errors.New("entities needs --folder, the folder of a published model for tags"))
	}
	m, err := model.Open(*folder)
	if err != nil {
		return err
	}
	answers, err := m.PredictAll(context.Background(), []string{*text}, model.PredictOptions{Entities: *rule})
	if err != nil {
		return err
	}
	for _, e := range answers[0].Spans {
		fmt.Fprintf(w, "%-6s %.3f  bytes %d to %d  %s\n", e.Label, e.Score, e.Start, e.End, e.Text)
	}
	return answers[0].Err
}
