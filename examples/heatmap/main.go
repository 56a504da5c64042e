// Heatmap trains an encoder to reverse words and draws whom each letter attends to: a grid of heat maps, a row of them
// for each block and a column for each head. The picture goes to runs/heatmap.png.
//
//	go run ./examples/heatmap --word letters --out runs/letters.png
package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
)

const (
	batch      = 64
	validation = 250
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("heatmap")
	word := flags.String("word", "attention", "the `WORD` to reverse, of up to 10 letters from a to z")
	out := flags.String("out", filepath.Join("runs", "heatmap.png"), "the picture to write, a `FILE`")
	epochs := flags.Size("epochs", 12, 1000, "epochs at most")
	blocks := flags.Size("blocks", 2, 8, "blocks of the encoder")
	heads := flags.Size("heads", 4, 16, "heads of a block, each 8 wide")
	if err := flags.Parse(args); err != nil {
		return err
	}
	task, err := data.Named("reverse", 0)
	if err != nil {
		return err
	}
	labeler, err := data.NewLabeler(task)
	if err != nil {
		return err
	}
	input, err := labeler.Batch([]string{*word}, 1)
	if err != nil {
		return flags.Wrong(err)
	}
	params, err := layers.NewParams(tensor.Float32, *seed)
	if err != nil {
		return err
	}
	model, err := layers.NewEncoder(params, layers.ModelConfig{
		Vocab: labeler.Tokens(), Dim: 8 * *heads, Layers: *blocks, Outputs: labeler.Labels(),
		Positions: layers.Learned{MaxLen: labeler.Len()},
		Block:     layers.BlockConfig{Attention: layers.AttentionConfig{Heads: *heads}},
	})
	if err != nil {
		return err
	}
	problem, err := learn(*seed, task, labeler, params, model)
	if err != nil {
		return err
	}
	solver := train.NewAdamW(3e-3)
	solver.ClipNorm = 1
	solver.Schedule = train.WarmUpCosine(100, 100**epochs, 0.1)
	if _, err := train.Fit(context.Background(), problem, train.Config{Patience: 3, MaxEpochs: *epochs, Solver: solver, Log: w}); err != nil {
		return err
	}
	answer, maps, err := attend(model, labeler, input)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s -> %s\n", *word, answer)
	if err := draw(*out, strings.Split(*word+".", ""), maps); err != nil { // the dot is the token that ends a word
		return err
	}
	fmt.Fprintf(w, "Whom each letter attends to: %s\n", *out)
	return nil
}

// learn is the task as train.Fit takes it: batches of words, and the loss of the labels that the model gives them.
func learn(seed uint64, task data.Task, labeler *data.Labeler, params *layers.Params, model *layers.Encoder) (train.Problem, error) {
	split, err := data.NewSplit(task, seed, validation)
	if err != nil {
		return train.Problem{}, err
	}
	feed := func(sources []string, size int) (train.Batch, error) {
		b, err := labeler.Batch(sources, size)
		return train.Batch{
			Values: []*tensor.Dense{
				tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Inputs)),
				tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(b.Lengths)),
				tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Targets)),
			},
			Weight: float64(b.Counted()),
		}, err
	}
	return train.Problem{
		Params: params,
		Loss: func(b *layers.Build, g *G.ExprGraph, size int) (*G.Node, G.Nodes, error) {
			ids := G.NewMatrix(g, tensor.Int, G.WithShape(size, labeler.Len()), G.WithName("ids"))
			lengths := G.NewVector(g, tensor.Int, G.WithShape(size), G.WithName("lengths"))
			targets := G.NewMatrix(g, tensor.Int, G.WithShape(size, labeler.Len()), G.WithName("targets"))
			logits, err := model.Forward(b, ids, layers.Mask{KeyLengths: lengths}) // (B, T, labels)
			if err != nil {
				return nil, nil, err
			}
			loss, err := layers.CrossEntropy(b, logits, targets)
			return loss, G.Nodes{ids, lengths, targets}, err
		},
		BatchSize: batch, Steps: 100,
		Train:          func(epoch, step int) (train.Batch, error) { return feed(split.Train(epoch, step, batch), batch) },
		ValidationSize: validation, ValidationSteps: 1,
		Validation: func(int) (train.Batch, error) { return feed(split.Validation(), validation) },
	}, nil
}

// attend runs the model on one word. It returns the answer and, for each block, the attention weights (1, H, T, T).
func attend(model *layers.Encoder, labeler *data.Labeler, input data.Batch) (string, []*tensor.Dense, error) {
	g := G.NewGraph()
	ids := G.NewMatrix(g, tensor.Int, G.WithShape(1, input.Len), G.WithName("ids"),
		G.WithValue(tensor.New(tensor.WithShape(1, input.Len), tensor.WithBacking(input.Inputs))))
	lengths := G.NewVector(g, tensor.Int, G.WithShape(1), G.WithName("lengths"),
		G.WithValue(tensor.New(tensor.WithShape(1), tensor.WithBacking(input.Lengths))))
	b := &layers.Build{CaptureWeights: true}
	logits, err := model.Forward(b, ids, layers.Mask{KeyLengths: lengths})
	if err != nil {
		return "", nil, err
	}
	var scores G.Value
	G.Read(logits, &scores)
	weights := make([]G.Value, len(b.Captured()))
	for i, c := range b.Captured() {
		G.Read(c.Weights, &weights[i])
	}
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return "", nil, err
	}
	best, err := tensor.Argmax(scores.(*tensor.Dense), 2)
	if err != nil {
		return "", nil, err
	}
	answer, err := labeler.Answer(best.Data().([]int)[:input.Lengths[0]])
	maps := make([]*tensor.Dense, len(weights))
	for i, w := range weights {
		maps[i] = w.(*tensor.Dense)
	}
	return answer, maps, err
}
