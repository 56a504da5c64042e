// Earlystopping shows when to stop training, on the losses of the notebook "SELF-ATTENTION": once the validation loss has
// failed to be below the best so far for as many epochs as one has patience,
//
//	stop at the first epoch with best < val for the last `patience` epochs
//
// and, before it, that notebook's attention tables, softmax(Q·Kᵀ/√d_k + M)·V. It doesn't print its queries and keys, but
// their products, so these go in as the scores: Q·Kᵀ = (Q·Kᵀ)·I.
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"os"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	s, err := attend()
	if err != nil {
		return err
	}
	s.Print(w)
	fmt.Fprintln(w)
	stopEarly(w, []losses{
		{0.457, 0.300}, {0.647, 0.378}, {0.628, 0.346}, // what the notebook's run drew
		{0.500, 0.250}, // never reached
	}, 2)
	return nil
}

// losses are those of one epoch.
type losses struct{ train, val float64 }

// stopEarly goes through the epochs that a training run would compute, and stops where it should.
func stopEarly(w io.Writer, epochs []losses, patience int) {
	stopping := train.NewEarlyStopping(patience)
	for epoch, l := range epochs {
		fmt.Fprintf(w, "Epoch %d: Train=%.3f, Val=%.3f\n", epoch, l.train, l.val)
		improved, stop := stopping.Observe(l.val)
		if improved {
			continue // a training run keeps a copy of its parameters here
		}
		if stop {
			fmt.Fprintf(w, "Early stopping at epoch %d\n", epoch)
			break
		}
	}
	fmt.Fprintf(w, "The best was epoch %d, with Val=%.3f\n", stopping.BestEpoch, stopping.Best)
}

// attend goes from the printed products Q·Kᵀ to the new values.
func attend() (*notebook.Stages, error) {
	const L, dK, dV = 4, 8, 8 // words, width of queries and keys, width of values
	g := G.NewGraph()
	product := notebook.Input(g, "Q·Kᵀ", notebook.Printed(printedProduct, L, L))
	eye := notebook.Input(g, "I", notebook.Eye(L))
	v := notebook.Input(g, "V", notebook.Printed(printedV, L, dV))

	scaled := G.Must(G.Div(product, G.NewConstant(math.Sqrt(dK)))) // (L, L)
	newV, weights, err := layers.ScaledDotProductWeights(&layers.Build{}, product, eye, v, layers.AttentionOptions{
		Mask:  layers.Mask{Causal: true},
		Scale: 1 / math.Sqrt(dK), // to be said: the width of the keys that it sees is L
	}) // (L, L) x (L, dV) -> (L, dV)
	if err != nil {
		return nil, err
	}

	var s notebook.Stages
	s.Add("V", v)
	s.Add("Q·Kᵀ", product)
	s.Add("var(Q·Kᵀ)", notebook.Variance(product))
	s.Add("var(Q·Kᵀ/√d_k)", notebook.Variance(scaled))
	s.Add("Q·Kᵀ/√d_k", scaled)
	s.Add("Attention", weights)
	s.Add("New V", newV)
	return &s, s.Run()
}
