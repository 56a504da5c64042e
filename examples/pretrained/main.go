// Pretrained starts from published models. With --text, it continues a prompt. With --encoder, it compares sentences by
// their embeddings, and then trains a head of its own on the encoder, in a Gorgonia graph:
//
//	go run ./examples/pretrained --text models/SmolLM2-135M --encoder models/all-MiniLM-L6-v2
//
// The page docs/pretrained.md says which models open, and how to get their folders.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/examples/internal/example"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/model"
)

func main() { example.Main(run) }

func run(w io.Writer, args []string) error {
	flags, seed := example.New("pretrained")
	text := flags.String("text", "", "the `FOLDER` of a published model that writes text")
	encoder := flags.String("encoder", "", "the `FOLDER` of a published model that embeds texts")
	prompt := flags.String("prompt", "Once upon a time", "text to continue")
	steps := flags.Size("steps", 60, 10_000, "training steps of the head")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *text == "" && *encoder == "" {
		return flags.Wrong(errors.New("pretrained needs --text or --encoder, the folder of a published model"))
	}
	if *text != "" {
		if err := continueText(w, *text, *prompt); err != nil {
			return err
		}
	}
	if *encoder == "" {
		return nil
	}
	if err := compare(w, *encoder); err != nil {
		return err
	}
	return trainHead(w, *encoder, *seed, *steps)
}

// continueText writes a prompt and what the model writes after it.
func continueText(w io.Writer, folder, prompt string) error {
	m, err := model.Open(folder)
	if err != nil {
		return err
	}
	options := model.GenerateOptions{Sampler: m.Sampler(), MaxTokens: 50, Echo: true}
	_, err = m.Generate(context.Background(), w, model.Prompt{Text: prompt}, options)
	fmt.Fprintln(w)
	return err
}

// The first sentences are about animals, the others about food.
var sentences = []string{
	"A cat sleeps on the sofa.", "The dog chases a ball.", "Birds sing in the tree.", "A horse runs across the field.",
	"She bakes a loaf of bread.", "The soup needs more salt.", "He fries an egg in butter.", "We ordered pasta with cheese.",
}

// compare writes how similar the first sentence is to the others: the cosine of the angle between their embeddings.
func compare(w io.Writer, folder string) error {
	m, err := model.Open(folder)
	if err != nil {
		return err
	}
	vectors, _, err := m.Embed(context.Background(), sentences)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nSimilarity to %q:\n", sentences[0])
	for i, v := range vectors[1:] {
		fmt.Fprintf(w, "%6.3f  %s\n", dot(v, vectors[0]), sentences[1+i])
	}
	return nil
}

func dot(a, b []float32) (sum float32) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// trainHead trains a linear head on the frozen encoder, and asks it about two new sentences.
func trainHead(w io.Writer, folder string, seed uint64, steps int) error {
	published, err := pretrained.Open(folder, tensor.Float32)
	if err != nil {
		return err
	}
	if published.Encoder == nil {
		return fmt.Errorf("%s isn't an encoder", folder)
	}
	for _, p := range published.Params.All() {
		p.Frozen = true
	}
	tokens, err := tokenizer.Open(folder)
	if err != nil {
		return err
	}
	params := example.Must(layers.NewParams(tensor.Float32, seed))
	head, err := layers.NewLinear(params.Scope("topic"), published.Model.Dim, 2, layers.LinearConfig{})
	if err != nil {
		return err
	}
	// logits adds the encoder and the head to a graph.
	logits := func(b *layers.Build, ids, lengths *G.Node) (*G.Node, error) {
		states, err := published.Encoder.Forward(b, ids, layers.Mask{KeyLengths: lengths}) // (B, T) -> (B, T, Dim)
		if err != nil {
			return nil, err
		}
		pooled, err := layers.Pool(b, states, lengths, layers.MeanPooling) // -> (B, Dim)
		if err != nil {
			return nil, err
		}
		return head.Forward(b, pooled) // -> (B, 2)
	}

	g, b := G.NewGraph(), &layers.Build{Training: true}
	ids, lengths, err := batch(g, tokens, sentences)
	if err != nil {
		return err
	}
	y, err := logits(b, ids, lengths)
	if err != nil {
		return err
	}
	targets := input(g, "targets", []int{0, 0, 0, 0, 1, 1, 1, 1}, len(sentences))
	loss, err := layers.CrossEntropy(b, y, targets, layers.CrossEntropyOptions{})
	if err != nil {
		return err
	}
	learned := b.Learnables() // the head alone, because the encoder is frozen
	if _, err := G.Grad(loss.Mean, learned...); err != nil {
		return err
	}
	var value G.Value
	G.Read(loss.Mean, &value)
	vm := G.NewTapeMachine(g, G.BindDualValues(learned...))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.02))
	fmt.Fprintf(w, "\nA head of %d numbers learns animals and food:\n", params.Count())
	for step := range steps {
		if err := vm.RunAll(); err != nil {
			return err
		}
		if step%20 == 0 || step == steps-1 {
			fmt.Fprintf(w, "Step %2d: loss %.4f\n", step, value.Data())
		}
		if err := solver.Step(G.NodesToValueGrads(learned)); err != nil {
			return err
		}
		vm.Reset()
	}

	questions := []string{"A cow eats grass.", "The cake is in the oven."}
	answer, err := layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, outputs G.Nodes, err error) {
		ids, lengths, err := batch(g, tokens, questions)
		if err != nil {
			return nil, nil, err
		}
		y, err := logits(b, ids, lengths)
		return nil, G.Nodes{y}, err
	})
	if err != nil {
		return err
	}
	out, err := answer.Call()
	if err != nil {
		return err
	}
	scores := out[0].Float32s()
	for i, question := range questions {
		topic := "animals"
		if scores[2*i+1] > scores[2*i] {
			topic = "food"
		}
		fmt.Fprintf(w, "%-8s %s\n", topic, question)
	}
	return nil
}

// batch returns the ids of texts, (B, T), padded to the longest text, and the lengths, (B).
func batch(g *G.ExprGraph, tokens *tokenizer.Pipeline, texts []string) (ids, lengths *G.Node, err error) {
	inputs, counts, longest := make([]tokenizer.Input, len(texts)), make([]int, len(texts)), 0
	for i, text := range texts {
		if inputs[i], err = tokens.Input(text); err != nil {
			return nil, nil, err
		}
		counts[i] = len(inputs[i].Tokens)
		longest = max(longest, counts[i])
	}
	padded := make([]int, len(texts)*longest)
	for i, in := range inputs {
		for j, t := range in.Tokens {
			padded[i*longest+j] = t.ID
		}
	}
	return input(g, "ids", padded, len(texts), longest), input(g, "lengths", counts, len(texts)), nil
}

func input(g *G.ExprGraph, name string, values []int, shape ...int) *G.Node {
	value := tensor.New(tensor.WithShape(shape...), tensor.WithBacking(values))
	return G.NewTensor(g, tensor.Int, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(value))
}
