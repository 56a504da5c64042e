// Earlystopping shows when to stop training, with the losses of the notebook "SELF-ATTENTION":
//
//	stop at the first epoch with best <= val in each of the last `patience` epochs
//
// Here best is the lowest validation loss before these epochs, and val is the loss in each of them. An equal loss is no
// improvement.
//
// Before that, it shows the notebook's attention tables, softmax(Q·Kᵀ/√d_k + M)·V. The notebook doesn't print its
// queries and keys, so their printed variances can't be checked: the program prints them beside the variances of random
// queries and keys. It does print their products, so the program uses these as queries, with I as keys:
// Q·Kᵀ = (Q·Kᵀ)·I.
//
// With a flag, it draws random inputs and losses:
//
//	go run ./examples/earlystopping --seed 2 --patience 4
package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

func main() { example.Main(run) }

//go:embed printed.txt
var printedText string

// The notebook's printed numbers, rounded to 8 decimals.
var printed = notebook.Sections(printedText)

// printedRun has the random losses of the notebook's run.
var printedRun = []losses{{0.457, 0.300}, {0.647, 0.378}, {0.628, 0.346}}

// printedVariances are those of queries and keys that the notebook doesn't print.
const printedVariances = "var(Q) 0.990742029467248 and var(K) 0.9085049295453562"

func run(w io.Writer, args []string) error {
	flags, seed := example.New("earlystopping")
	words := flags.Size("words", 4, 64, "words of the sentence")
	dK := flags.Size("dk", 8, 512, "width of queries and keys")
	dV := flags.Size("dv", 8, 512, "width of values")
	epochs := flags.Size("epochs", 20, 1000, "maximum number of epochs")
	patience := flags.Size("patience", 2, 1000, "epochs to wait for a lower validation loss")
	out := flags.Picture("the losses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rng := notebook.Source(*seed)
	q, k, v := notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dK), notebook.Randn(rng, *words, *dV)
	s, err := notebook.Attend(q, k, v, layers.AttentionOptions{Mask: layers.Mask{Causal: true}})
	if err != nil {
		return err
	}
	if !flags.Own() {
		fmt.Fprintf(w, "The notebook's %s can't be computed, because it doesn't print Q and K. Random ones from seed %d:\n", printedVariances, *seed)
	}
	s.Print(w, "Q", "K", "var(Q)", "var(K)")
	epochLosses := printedRun
	if flags.Own() {
		epochLosses = nil
		for range *epochs {
			epochLosses = append(epochLosses, losses{train: 0.3 + 0.4*rng.Float64(), val: 0.2 + 0.6*rng.Float64()})
		}
	} else {
		fmt.Fprintln(w, "\nFrom the notebook's V and Q·Kᵀ:")
		if s, err = attendPrinted(); err != nil {
			return err
		}
	}
	s.Print(w, "V", "Q·Kᵀ", "var(Q·Kᵀ)", "var(Q·Kᵀ/√d_k)", "Q·Kᵀ/√d_k", "mask", "Q·Kᵀ/√d_k + M", "Attention", "New V")
	fmt.Fprintf(w, "d_k: %d\n\n", *dK)
	return stopEarly(w, epochLosses, *patience, *out)
}

// losses are the mean losses in one epoch.
type losses struct{ train, val float64 }

// stopEarly prints the epochs of a training run until early stopping ends it, and draws the losses.
func stopEarly(w io.Writer, epochs []losses, patience int, out string) error {
	stopping := train.EarlyStopping{StoppingConfig: train.StoppingConfig{Patience: patience}}
	var history []train.Check
	for epoch, loss := range epochs {
		check := train.Check{Epoch: epoch, TrainLoss: loss.train, ValLoss: loss.val, Validated: true}
		fmt.Fprintln(w, check)
		history = append(history, check)
		if _, stop := stopping.Observe(check.ValLoss); stop {
			fmt.Fprintf(w, "Early stopping at epoch %d\n", epoch)
			break
		}
	}
	fmt.Fprintf(w, "The best was epoch %d, with Val=%.3f\n", stopping.BestCheck, stopping.Best)
	if out == "" {
		return nil
	}
	return draw(out, history, cmp.Or(stopping.Because(), "all epochs are done"))
}

// draw writes a picture of the losses in each epoch.
func draw(path string, history []train.Check, because string) error {
	var training, validation plotter.XYs
	for _, c := range history {
		training = append(training, plotter.XY{X: float64(c.Epoch), Y: c.TrainLoss})
		validation = append(validation, plotter.XY{X: float64(c.Epoch), Y: c.ValLoss})
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "Stopped: "+because, "epoch", "loss"
	p.Y.Min = 0 // leaves space for the legend
	if err := plotutil.AddLinePoints(p, "training", training, "validation", validation); err != nil {
		return err
	}
	return p.Save(16*vg.Centimeter, 8*vg.Centimeter, path)
}

// attendPrinted computes attention from the notebook's products and values.
func attendPrinted() (*notebook.Stages, error) {
	return notebook.Attend(notebook.Printed(printed["Q·Kᵀ"], 4, 4), notebook.Eye(4), notebook.Printed(printed["V"], 4, 8), layers.AttentionOptions{
		Mask:  layers.Mask{Causal: true},
		Scale: 1 / math.Sqrt(8), // the default would use the width of the keys, which is 4 for I
	})
}
