// Vision learns to classify ten kinds of clothes on Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): 60,000 images of 28
// x 28 pixels for training, and 10,000 for a test. The model is a Vision Transformer (Dosovitskiy et al., 2021, An
// image is worth 16x16 words):
//
//	logits = W·mean(Encoder(patches·W_eᵀ + b_e + positions)) + b
//
// An image is a sequence of 49 patches, one every 4 pixels. Each patch overlaps its neighbours by 2 pixels. Each epoch
// trains with slightly shifted images, made in the background. Validation with the last 5,000 training images chooses
// the best epoch. The program reads the test images only after training.
//
// Debian's package dataset-fashion-mnist has the images. --data names another folder with the same four files.
//
//	go run ./examples/vision --epochs 5 --seed 2
package main

import (
	"context"
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

const batch = 64 // number of images per step

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("vision")
	folder := flags.String("data", "/usr/share/datasets/fashion-mnist", "`FOLDER` with the images: four files whose names end in ubyte.gz")
	epochs := flags.Size("epochs", 12, 1000, "epochs to train")
	blocks := flags.Size("blocks", 4, 24, "encoder blocks")
	heads := flags.Size("heads", 4, 64, "heads per block, each 16 wide")
	if err := flags.Parse(args); err != nil {
		return err
	}
	images, err := load(*folder, "train")
	if err != nil {
		return fmt.Errorf("can't load the images: install Debian's package dataset-fashion-mnist, or name their folder with --data: %w", err)
	}
	known, unseen := images.split(len(images.labels) * 11 / 12)
	params := example.Must(layers.NewParams(tensor.Float32, *seed))
	m := newModel(params, *blocks, *heads)
	problem := train.Problem{
		Params: params, Loss: m.loss, Train: known.varied(*seed), Validation: unseen.plain(), ValidationSize: 250,
	}
	steps := *epochs * ((problem.Train.Len + batch - 1) / batch)
	_, err = train.Fit(context.Background(), problem, train.Config{
		BatchSize: batch, MaxEpochs: *epochs, Optimizer: optimizer(steps), Stopping: train.StoppingConfig{Monitor: "val_accuracy", Mode: "max"},
	}, train.RunOptions{Seed: *seed, Log: w})
	if err != nil {
		return err
	}
	test, err := load(*folder, "t10k")
	if err != nil {
		return err
	}
	problem.Validation = test.plain()
	metrics, err := train.Evaluate(context.Background(), problem)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%.2f %% of %d test images are classified correctly.\n", 100*metrics["val_accuracy"], len(test.labels))
	return nil
}

// optimizer uses Muon for the blocks' matrices and AdamW for all other parameters. The rate rises, and then falls along
// a cosine.
func optimizer(steps int) optim.Config {
	return optim.Config{
		Solver: optim.Muon{LearningRate: 0.005, Beta2: 0.98}, LearningRate: 0.002, WeightDecay: 0.05, ClipNorm: 1,
		Schedule: optim.ScheduleConfig{WarmUp: min(200, steps/10), Decay: steps, Floor: 0.01},
		Average:  min(0.998, float64(steps)/float64(steps+10)),
	}
}

// model is a linear layer for the patches, and a classifier.
type model struct {
	embed      *layers.Linear
	classifier *layers.SequenceClassifier
}

func newModel(p *layers.Params, blocks, heads int) model {
	return model{
		embed: example.Must(layers.NewLinear(p.Scope("embed"), patch*patch, 16*heads, layers.LinearConfig{})),
		classifier: example.Must(layers.NewSequenceClassifier(p, layers.SequenceClassifierConfig{Model: layers.ModelConfig{
			Dim: 16 * heads, Layers: blocks, Outputs: classes, Positions: layers.Learned{MaxLen: grid * grid, Init: layers.Normal(0.02)},
			Block: layers.BlockConfig{Attention: layers.AttentionConfig{Heads: heads}, FeedForward: layers.FeedForwardConfig{Activation: layers.GELUTanh}},
		}})),
	}
}

// loss adds the mean loss of a batch of patches and labels to a graph.
func (m model) loss(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
	x := G.Must(m.embed.Forward(b, inputs[0]))                  // (B, 49, 64) -> (B, 49, D)
	logits := G.Must(m.classifier.Forward(b, x, layers.Mask{})) // (B, 49, D) -> (B, 10)
	accuracy, err := train.Accuracy(b, logits, inputs[1])
	if err != nil {
		return layers.Loss{}, nil, err
	}
	loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{LabelSmoothing: 0.1})
	return loss, []train.Metric{accuracy}, err
}
