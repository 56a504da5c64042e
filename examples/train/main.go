// Train learns a sequence task with attention, from random weights to predictions: to reverse digits.
//
//	logits = MultiHeadAttention(x, x, x)·Wᵀ + b,  x = embeddings of the digits + embeddings of their positions
//
// The program doesn't say which digit to look at. W_q and W_k learn it, and the attention weights show it. One in ten
// training answers is wrong. A model that trains for too long memorises these and gets worse on new sequences, so Fit
// stops when the validation loss stops falling, and keeps the best weights.
//
//	go run ./examples/train --seed 2 --length 12
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("train")
	length := flags.Size("length", 8, 32, "digits per sequence")
	dim := flags.Size("dim", 32, 256, "width of the model")
	patience := flags.Size("patience", 3, 100, "epochs to wait for a lower validation loss")
	out := flags.Picture("the attention weights of an answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	params := example.Must(layers.NewParams(tensor.Float64, *seed))
	m := newModel(params, *length, *dim)
	rng := notebook.Source(*seed)
	known := example.Must(train.Tensors(draw(rng, 1024, *length, 0.1)))
	unseen := example.Must(train.Tensors(draw(rng, 500, *length, 0.1)))
	_, err := train.Fit(context.Background(), train.Problem{
		Params: params, Loss: m.loss, Train: known, Validation: unseen, ValidationSize: 500,
	}, train.Config{
		BatchSize: 64, MaxEpochs: 200,
		Optimizer: optim.Config{LearningRate: 0.003, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Patience: *patience},
	}, train.RunOptions{Log: w})
	if err != nil {
		return err
	}
	sequences, _ := draw(rng, 3, *length, 0)
	return m.show(w, sequences, *out)
}

// draw makes examples: random digits (N, T), and the same digits reversed, with a share of them wrong.
func draw(rng *rand.Rand, size, length int, wrong float64) (sequences, backwards *tensor.Dense) {
	digits, answers := make([]int, size*length), make([]int, size*length)
	for i := range digits {
		digits[i] = rng.IntN(10)
		answer := digits[i]
		if rng.Float64() < wrong {
			answer = (answer + 1 + rng.IntN(9)) % 10
		}
		answers[i-i%length+length-1-i%length] = answer
	}
	return tensor.New(tensor.WithShape(size, length), tensor.WithBacking(digits)), tensor.New(tensor.WithShape(size, length), tensor.WithBacking(answers))
}

// model is the model for sequences of T digits.
type model struct {
	length    int // T
	digits    *layers.Embedding
	positions layers.Positions
	attention *layers.MultiHeadAttention // W_q, W_k, W_v, W_o
	out       *layers.Linear
}

func newModel(p *layers.Params, length, dim int) model {
	return model{
		length:    length,
		digits:    example.Must(layers.NewEmbedding(p.Scope("digits"), 10, dim, layers.Init{})),
		positions: example.Must(layers.Learned{MaxLen: length}.New(p.Scope("positions"), dim, layers.AttentionConfig{})),
		attention: example.Must(layers.NewMultiHeadAttention(p.Scope("attention"), dim, layers.AttentionConfig{})),
		out:       example.Must(layers.NewLinear(p.Scope("out"), dim, 10, layers.LinearConfig{})),
	}
}

// forward adds the model to a graph: (B, T) -> (B, T, 10).
func (m model) forward(b *layers.Build, digits *G.Node) *G.Node {
	x := G.Must(m.digits.Forward(b, digits))                   // (B, T) -> (B, T, D)
	x = G.Must(m.positions.Embed(b, x, nil))                   // (B, T, D)
	x = G.Must(m.attention.Forward(b, x, x, x, layers.Mask{})) // (B, T, D)
	return G.Must(m.out.Forward(b, x))                         // (B, T, D) x (10, D)ᵀ -> (B, T, 10)
}

// loss adds the mean loss of a batch of digits and answers to a graph.
func (m model) loss(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
	loss, err := layers.CrossEntropy(b, m.forward(b, inputs[0]), inputs[1], layers.CrossEntropyOptions{})
	return loss, nil, err
}

// show prints sequences, (B, T), and their answers. For the first one, it also prints and draws the attention weights.
func (m model) show(w io.Writer, sequences *tensor.Dense, out string) error {
	b := &layers.Build{CaptureWeights: true}
	logits := m.forward(b, notebook.Input(G.NewGraph(), "digits", sequences))
	var s notebook.Stages
	s.Add("logits", logits)                           // (B, T, 10)
	s.Add("weights", b.AttentionWeights()[0].Weights) // (B, 1, T, T)
	if err := s.Run(); err != nil {
		return err
	}
	best, err := s.Get("logits").Argmax(2) // (B, T)
	if err != nil {
		return err
	}
	text := func(t *tensor.Dense, i int) string {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Data().([]int)[i*m.length:][:m.length]), " ", ""), "[]")
	}
	for i := range sequences.Shape()[0] {
		fmt.Fprintf(w, "%s -> %s\n", text(sequences, i), text(best, i))
	}
	fmt.Fprintln(w, "What each digit of the first answer attends to:")
	rows, columns := strings.Split(text(best, 0), ""), strings.Split(text(sequences, 0), "")
	weights := s.Values("weights")[:m.length*m.length]
	notebook.Table(w, rows, columns, weights, 2)
	return picture.Draw(out, text(sequences, 0)+" backwards", picture.Layer("What each digit attends to", rows, columns, weights))
}
