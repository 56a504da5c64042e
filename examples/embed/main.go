// Embed shows attention in an ordinary Gorgonia program, with its own graph, gorgonia.Grad, a tape machine and a
// solver.
//
// The model learns to look up letters. Six letters are stored at six positions. A query names a position, and the
// answer is the letter there. The keys are the letters plus their positions, and the values are the letters:
//
//	logits = MultiHeadAttention(query, letters + positions, letters)·W_outᵀ + b_out
//
// So attention must find the position that the query names. The program prints the weights, which show that it does.
//
// Flags change the letters, the seed and the sizes:
//
//	go run ./examples/embed --stored headache --steps 600 --seed 2
package main

import (
	"fmt"
	"io"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/examples/internal/picture"
	"github.com/heed-go/heed/layers"
)

const letters = "abcdefgh"

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("embed")
	word := flags.String("stored", "cafdha", "`LETTERS` to store and look up after training, each from a to h; the model has one position per letter")
	dim := flags.Size("dim", 16, 256, "width of the model")
	steps := flags.Size("steps", 300, 100_000, "training steps")
	out := flags.Picture("the attention weights of each query")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stored, err := parse(*word)
	if err != nil {
		return flags.Wrong(err)
	}
	m := newModel(*seed, len(stored), *dim)
	if _, err := m.fit(w, *seed, *steps); err != nil {
		return err
	}
	predicted, weights, err := m.lookUp(stored)
	if err != nil {
		return err
	}
	rows, columns := make([]string, len(stored)), make([]string, len(stored))
	right := 0
	for i, l := range stored {
		rows[i] = fmt.Sprintf("position %d? %c", i, letters[predicted[i]])
		columns[i] = fmt.Sprintf("%d: %c", i, letters[l])
		if predicted[i] == l {
			right++
		}
	}
	fmt.Fprintf(w, "\n%d of %d right. Each query's answer, and its attention weights:\n", right, len(stored))
	notebook.Table(w, rows, columns, weights, 2)
	return picture.Draw(*out, "Looking up what a position holds", picture.Layer("Attention weights", rows, strings.Split(*word, ""), weights))
}

// parse returns the index of each letter of a word.
func parse(word string) ([]int, error) {
	if len(word) < 1 || len(word) > 32 || strings.Trim(word, letters) != "" {
		return nil, fmt.Errorf("expected 1 to 32 letters from a to h, got %q", word)
	}
	stored := make([]int, len(word))
	for i := range word {
		stored[i] = strings.IndexByte(letters, word[i])
	}
	return stored, nil
}

// fit trains on random questions and returns the loss of each step.
func (m *model) fit(w io.Writer, seed uint64, steps int) ([]float64, error) {
	const batch = 32
	g := G.NewGraph()
	inputs := m.newInputs(g, batch)
	targets := G.NewMatrix(g, tensor.Int, G.WithShape(batch, 1), G.WithName("targets"))

	b := &layers.Build{Training: true}
	loss, err := layers.CrossEntropy(b, m.forward(b, inputs), targets, layers.CrossEntropyOptions{})
	if err != nil {
		return nil, err
	}
	var lossValue G.Value
	G.Read(loss.Mean, &lossValue)

	learnables := b.Learnables() // includes W_q, W_k, W_v and W_o
	if _, err := G.Grad(loss.Mean, learnables...); err != nil {
		return nil, err
	}
	vm := G.NewTapeMachine(g, G.BindDualValues(learnables...))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.003))

	rng := notebook.Source(seed)
	losses := make([]float64, steps)
	for step := range losses {
		stored, asked, answers := m.questions(rng, batch)
		for node, ids := range map[*G.Node][]int{inputs.stored: stored, inputs.asked: asked, targets: answers} {
			if err := G.Let(node, tensor.New(tensor.WithShape(node.Shape()...), tensor.WithBacking(ids))); err != nil {
				return nil, err
			}
		}
		if err := vm.RunAll(); err != nil {
			return nil, err
		}
		losses[step] = lossValue.Data().(float64)
		if err := solver.Step(G.NodesToValueGrads(learnables)); err != nil {
			return nil, err
		}
		vm.Reset()
		if step%30 == 0 || step == steps-1 {
			fmt.Fprintf(w, "Step %3d: loss %.4f\n", step, losses[step])
		}
	}
	return losses, nil
}

// lookUp asks for the letter at every position of one stored word. It makes a new graph over the same parameters,
// because evaluation has another batch size and mode. The weights are (S, S), with a row for each question.
func (m *model) lookUp(stored []int) (predicted []int, weights []float64, err error) {
	answer, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		b.CaptureWeights = true
		in := m.newInputs(g, m.size)
		logits := m.forward(b, in)
		return G.Nodes{in.stored, in.asked}, G.Nodes{logits, b.AttentionWeights()[0].Weights}, nil // (S, 1, V), (S, 1, 1, S)
	})
	if err != nil {
		return nil, nil, err
	}
	var repeated, asked []int
	for i := range m.size {
		repeated, asked = append(repeated, stored...), append(asked, i)
	}
	out, err := answer.Call(
		tensor.New(tensor.WithShape(m.size, m.size), tensor.WithBacking(repeated)),
		tensor.New(tensor.WithShape(m.size, 1), tensor.WithBacking(asked)))
	if err != nil {
		return nil, nil, err
	}
	best, err := out[0].Argmax(2)
	if err != nil {
		return nil, nil, err
	}
	return best.Data().([]int), out[1].Float64s(), nil
}
