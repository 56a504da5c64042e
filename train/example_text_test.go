package train_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/optim"
)

var (
	messages = []string{
		"I lost my card, please block it.", "My card was stolen!", "Someone took my card", "The machine kept my card.",
		"I can't find my card anywhere, what now?", "Block my card", "My card is gone, I think it was stolen yesterday.",
		"How do I send money to a friend?", "Send money", "I want to send 20 euros to my sister in Spain.", "Did my transfer arrive?",
		"Where is the money that I sent on Monday?", "How long does a transfer to another bank take?", "Transfer money abroad",
	}
	topics = []int{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1} // 0 means a lost card, 1 a transfer

	newMessages = []string{"Please block the card, it was stolen.", "Can I send money to Peru?", "I think I lost my card.", "My transfer to a friend is late"}
	newTopics   = []int{0, 1, 0, 1}
)

// A classifier for your own texts. Words become ids, and the rows of a batch are padded to one length. Bucket puts
// texts of similar length into the same batch. This keeps the padding short, and the number of lengths small; each
// length needs its own graph.
func ExampleFit_text() {
	vocab, err := tokenizer.New(tokenizer.Tokens, slices.Values(messages), 30) // at most 30 ids, for the most frequent words
	check(err)
	dataset := func(texts []string, classes []int) train.Dataset {
		rows := make([][]int, len(texts))
		for i, text := range texts {
			if rows[i], err = vocab.Encode(text); err != nil {
				log.Fatal(err)
			}
		}
		length := func(i int) int { return (len(rows[i]) + 3) / 4 * 4 }
		return train.Dataset{Len: len(texts), Bucket: length, Batch: func(examples []int) ([]*tensor.Dense, error) {
			var inputs [][]int
			var targets []int
			for _, i := range examples {
				inputs, targets = append(inputs, rows[i]), append(targets, classes[i])
			}
			b, err := data.Pad(inputs, length(examples[0]), vocab.Unknown())
			return []*tensor.Dense{
				tensor.New(tensor.WithShape(b.Size, b.Len), tensor.WithBacking(b.Inputs)),
				tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(b.Lengths)),
				tensor.New(tensor.WithShape(b.Size), tensor.WithBacking(targets)),
			}, err
		}}
	}
	params, err := layers.NewParams(tensor.Float32, 1)
	check(err)
	model, err := layers.NewSequenceClassifier(params, layers.SequenceClassifierConfig{
		Model: layers.ModelConfig{Vocab: vocab.Len(), Dim: 16, Layers: 1, Outputs: 2, Positions: layers.Sinusoidal{}},
	})
	check(err)
	loss := func(b *layers.Build, inputs G.Nodes) (layers.Loss, []train.Metric, error) {
		logits, err := model.Forward(b, inputs[0], layers.Mask{KeyLengths: inputs[1]}) // (B, T) -> (B, 2)
		if err != nil {
			return layers.Loss{}, nil, err
		}
		accuracy, err := train.Accuracy(b, logits, inputs[2])
		if err != nil {
			return layers.Loss{}, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, inputs[2], layers.CrossEntropyOptions{})
		return loss, []train.Metric{accuracy}, err
	}
	result, err := train.Fit(context.Background(), train.Problem{
		Params: params, Loss: loss, Train: dataset(messages, topics), Validation: dataset(newMessages, newTopics),
	}, train.Config{
		BatchSize: 4, MaxEpochs: 50,
		Optimizer: optim.Config{LearningRate: 0.01, WeightDecay: 0.01},
		Stopping:  train.StoppingConfig{Patience: 5},
	}, train.RunOptions{})
	check(err)
	fmt.Println("accuracy on new messages:", result.Best.Metrics["val_accuracy"])
	// Output:
	// accuracy on new messages: 1
}
