// Heatmap trains an encoder to reverse words, and draws which letters each letter attends to: a grid of heat maps with
// a row for each block and a column for each head. It writes the picture to runs/heatmap.png.
//
//	go run ./examples/heatmap --word letters --out runs/letters.png
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/task"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("heatmap")
	word := flags.String("word", "attention", "`WORD` to reverse: up to 10 letters from a to z")
	out := flags.String("out", filepath.Join("runs", "heatmap.png"), "draw the picture in this `FILE`")
	epochs := flags.Size("epochs", 12, 1000, "maximum number of epochs")
	blocks := flags.Size("blocks", 2, 8, "encoder blocks")
	heads := flags.Size("heads", 4, 16, "heads per block, each 8 wide")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := task.Named("reverse", 0)
	if err != nil {
		return err
	}
	config.Seed = *seed
	config.Model.Layers, config.Model.Block.Attention.Heads, config.Model.Dim = *blocks, *heads, 8**heads
	config.Training.MaxEpochs, config.Training.Optimizer.Schedule.Decay = *epochs, 100**epochs
	t, err := task.New(config)
	if err != nil {
		return err
	}
	if _, err := t.Predict(*word); err != nil { // report a wrong word before training
		return flags.Wrong(err)
	}
	options := train.RunOptions{Seed: *seed, Log: w}
	if _, err := train.Fit(context.Background(), t.Problem(), t.Config.Training.Config, options); err != nil {
		return err
	}
	attention, err := t.Attention(*word, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s -> %s\n", *word, attention.Answer)
	figure := heatmap.Figure{Title: attention.Input + " → " + attention.Answer, Key: attention.Key}
	for _, l := range attention.Layers {
		figure.Layers = append(figure.Layers, heatmap.Layer(l))
	}
	if err := picture.Write(*out, figure); err != nil {
		return err
	}
	fmt.Fprintf(w, "Attention weights of each letter: %s\n", *out)
	return nil
}
