package docs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/optim"
	"github.com/heed-go/heed/train/task"
)

// Which letters of a word occur more than once?
func Example_rule() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)

	rule := data.Rule{
		Name: "repeated", Kind: data.KindTagging, Alphabet: "abcdefgh.*", MaxLen: 8,
		Sample: func(rng *rand.Rand, maxLen int) string {
			word := make([]byte, 1+rng.IntN(maxLen))
			for i := range word {
				word[i] = "abcdefgh"[rng.IntN(8)]
			}
			return string(word)
		},
		Answer: func(word string) (string, error) {
			return strings.Map(func(letter rune) rune {
				if strings.Count(word, string(letter)) > 1 {
					return '*'
				}
				return '.'
			}, word), nil
		},
	}
	config := task.Defaults(rule)
	config.Model.Layers = 1
	config.Training.MaxEpochs, config.Training.Optimizer.LearningRate = 3, 0.01
	t, err := task.New(config)
	check(err)
	summary, err := t.Train(ctx, dir, train.RunOptions{}) // dir is the run folder
	check(err)
	fmt.Println("nine in ten right:", *summary.ValScore > 0.9)

	m, err := model.Open(dir) // a program that opens the folder doesn't need the rule
	check(err)
	fmt.Println(m.Predict("abcbd"))
	// Output:
	// nine in ten right: true
	// .*.*. <nil>
}

// A Problem of your own: which thermometers in a room are faulty?
func Example_problem() {
	ctx := context.Background()
	const sensors, width = 6, 16
	readings := func(seed uint64, n int) train.Dataset {
		rng := rand.New(rand.NewPCG(seed, 1))
		x, off := make([]float32, n*sensors), make([]float32, n*sensors)
		for i := range n {
			room := rng.Float32()
			for s := i * sensors; s < (i+1)*sensors; s++ {
				x[s] = room + 0.03*float32(rng.NormFloat64())
				if rng.IntN(5) == 0 {
					x[s], off[s] = x[s]+0.3, 1
				}
			}
		}
		d, err := train.Tensors(
			tensor.New(tensor.WithShape(n, sensors, 1), tensor.WithBacking(x)),
			tensor.New(tensor.WithShape(n, sensors, 1), tensor.WithBacking(off)))
		check(err)
		return d
	}

	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	embed, err1 := layers.NewLinear(params.Scope("embed"), 1, width, layers.LinearConfig{})
	encoder, err2 := layers.NewEncoder(params.Scope("encoder"), layers.ModelConfig{
		Dim: width, Layers: 1, Outputs: 1, Positions: layers.NoPositions{},
		Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: 2}},
	})
	check(errors.Join(err1, err2))

	result, err := train.Fit(ctx, train.Problem{
		Params: params,
		Loss: func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
			x, err := embed.Forward(b, inputs[0]) // (B, S, 1) -> (B, S, D)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			logits, err := encoder.Forward(b, x, layers.Mask{}) // (B, S, D) -> (B, S, 1)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			accuracy, err := train.BinaryAccuracy(b, logits, inputs[1], nil)
			if err != nil {
				return layers.Loss{}, nil, err
			}
			loss, err := layers.BinaryCrossEntropy(b, logits, inputs[1], nil)
			return loss, []train.Metric{accuracy}, err
		},
		Train: readings(1, 2000), Validation: readings(2, 500),
	}, train.Config{
		BatchSize: 50, MaxEpochs: 20,
		Optimizer: optim.Config{LearningRate: 0.005, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Monitor: "val_accuracy", Mode: "max", Patience: 8},
	}, train.RunOptions{})
	check(err)
	fmt.Println("99 in 100 right:", result.Best.Metrics["val_accuracy"] > 0.99)
	// Output:
	// 99 in 100 right: true
}

// Train on a file of rows, like heed train --task classification.
func Example_rows() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "heed")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "weather.csv")
	var rows strings.Builder
	rows.WriteString("text,label\n")
	for i := range 300 {
		fmt.Fprintf(&rows, "%d degrees,%s\n", 3*i, map[bool]string{false: "cold", true: "hot"}[3*i >= 100])
	}
	check(os.WriteFile(file, []byte(rows.String()), 0o666))

	config, err := task.Named("classification", 0)
	check(err)
	config.Data.File = file
	config.Training.MaxEpochs = 3
	t, err := task.New(config)
	check(err)
	defer t.Close()
	fmt.Print(strings.ReplaceAll(t.DescribeData(), dir+"/", ""))
	_, err = t.Train(ctx, filepath.Join(dir, "run"), train.RunOptions{})
	check(err)
	fmt.Println(t.Predict("500 degrees"))
	// Output:
	// weather.csv: 300 rows with 300 different sources
	//   columns: text and label, named in the header
	//   sources: characters; vocabulary of 16; length at most 11, median 11
	//   training labels: hot 239 (88.5 %), cold 31 (11.5 %)
	//   training: 270 rows; validation: 30 rows (all rows of 30 sources, chosen by seed 1)
	//   most frequent: always answering hot is right for 90.0 % of the validation labels
	//   few validation labels: cold 3 (with fewer than 20, scores per label are rough)
	// hot <nil>
}
