// Finetune trains a published encoder to classify texts, in a few minutes on a processor. It needs the model's folder
// and a file of texts with labels, in TSV, CSV or JSONL:
//
//	go run ./examples/finetune --from models/all-MiniLM-L6-v2 --data mails.csv --out runs/mails
//
// By default, it trains a low-rank adapter on the model, and a head. The run folder then has only these: 2 MB instead
// of 90. The page docs/finetuning.md says more.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("finetune")
	from := flags.String("from", "", "the `FOLDER` of a published model")
	data := flags.String("data", "", "a `FILE` of texts with labels")
	tune := flags.String("tune", "lora", "what to train: all, head, last:N or lora")
	out := flags.String("out", "runs/finetune", "the `FOLDER` of the run")
	epochs := flags.Size("epochs", 3, 1000, "passes over the file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from == "" || *data == "" {
		return flags.Wrong(errors.New("finetune needs --from, the folder of a published model, and --data, a file of texts with labels"))
	}
	config, err := task.Named("classification", 0)
	if err != nil {
		return err
	}
	config.Seed, config.Data.File, config.From.Tune = *seed, *data, *tune
	if err := config.StartFrom(*from); err != nil {
		return err
	}
	config.Training.MaxEpochs = *epochs
	return fit(w, config, *out)
}

// fit trains and validates the model, and then asks the saved one.
func fit(w io.Writer, config task.Config, out string) error {
	ctx := context.Background()
	t, err := task.New(config)
	if err != nil {
		return err
	}
	defer t.Close()
	fmt.Fprintf(w, "New parameters: %q\n", t.Loaded.Kept)
	summary, err := t.Train(ctx, out, train.RunOptions{Log: w})
	if err != nil {
		return err
	}
	fmt.Fprintln(w, summary.Score)

	m, err := model.Open(out) // reads the published folder, too, unless all parameters were trained
	if err != nil {
		return err
	}
	question := t.Config.Task.Example
	answer, err := m.Predict(question)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %s\n", question, answer)
	return nil
}
