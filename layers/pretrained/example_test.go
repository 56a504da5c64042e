package pretrained_test

import (
	"context"
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/layers/pretrained"
)

// A published model continues a text. The folder's tokenizer, which package data/tokenizer opens, gives the ids of the
// text, and makes text of the answer.
func ExampleOpen() {
	m, err := pretrained.Open("testdata/llama", tensor.Float32)
	check(err)
	session, err := decode.New(m.Decoder, decode.Config{Capacity: m.MaxLen})
	check(err)
	results, err := decode.Generate(context.Background(), session, [][]int{{m.Start, 5, 7}}, decode.Options{Sampler: m.Sampler, MaxTokens: 6, End: m.End})
	check(err)
	fmt.Println(results[0].Tokens)
	// Output: [7 7 17 35 28 37]
}

// A published model without its head is an encoder in a Gorgonia graph of your own. Here a new head for two classes
// gets the states of two texts, and the gradients of all parameters follow.
func ExampleConfig_States() {
	m, err := pretrained.Open("testdata/bert-states", tensor.Float32) // or ReadConfig, States and Open for a model with a head
	check(err)
	head, err := layers.NewLinear(m.Params.Scope("classes"), m.Model.Dim, 2, layers.LinearConfig{})
	check(err)
	g, b := G.NewGraph(), &layers.Build{Training: true}
	ids := G.NodeFromAny(g, tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]int{5, 6, 7, 8, 9, 0})), G.WithName("ids"))
	lengths := G.NodeFromAny(g, tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{3, 2})), G.WithName("lengths"))
	classes := G.NodeFromAny(g, tensor.New(tensor.WithShape(2), tensor.WithBacking([]int{0, 1})), G.WithName("classes"))
	states := G.Must(m.Encoder.Forward(b, ids, layers.Mask{KeyLengths: lengths})) // (2, 3, Dim)
	logits := G.Must(head.Forward(b, G.Must(layers.Pool(b, states, lengths, m.Pooling))))
	loss, err := layers.CrossEntropy(b, logits, classes, layers.CrossEntropyOptions{})
	check(err)
	grads, err := G.Grad(loss.Mean, b.Learnables()...)
	check(err)
	fmt.Println(logits.Shape(), len(grads), "gradients")
	// Output: (2, 2) 39 gradients
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
