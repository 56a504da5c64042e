package task

import (
	"cmp"
	"context"
	"fmt"
	"io"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/layers/decode"
)

// languageModel predicts the next symbol of a text.
type languageModel struct{ common }

var textKind = languageModel{common{Kind{
	Name: data.KindText, About: "the next character of a file",
	Generates: true, Unit: "characters", Right: "predicted", LossUnit: "nats",
	aligned: true, causal: true, units: "characters, bpe", maxLen: 64,
}}}

func (languageModel) defaults(c *Config) {
	c.Model.Dim, c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 64, 16, 200, 3000
}

func (languageModel) network(m *Model) (network, error) {
	net, err := layers.NewDecoder(m.Params, m.Config.Model)
	return writer{newClassifier(m, func(b *layers.Build, inputs G.Nodes) (*G.Node, error) {
		return net.Forward(b, inputs[0], layers.Mask{}) // (B, Len, Classes)
	}), net}, err
}

// A writer is the network of a language model.
type writer struct {
	classifier
	net *layers.Decoder
}

// Generate writes a prompt and the model's continuation to w, each character as soon as it is complete. Bytes that
// aren't part of a character, which a token may have, are written as U+FFFD. If the text grows longer than the model's
// context, generation goes on from the last half of the context. Generate sets the options End, Keep and OnToken
// itself.
//
// The error is an *InputError if the model's kind isn't text or if it doesn't know a symbol of the prompt. In this
// case, nothing was written. After another error, or when ctx is cancelled, w has the text up to then.
func (m *Model) Generate(ctx context.Context, w io.Writer, prompt string, o decode.Options) error {
	model, ok := m.network.(writer)
	if !ok {
		return &InputError{prompt, fmt.Errorf("the model learned the task %s, and only text models generate text", m.Config.Task.Name)}
	}
	b, encoded := m.encode(prompt)
	if encoded.Err != nil {
		return encoded.Err
	}
	session, err := decode.New(model.net, decode.Config{Capacity: m.layout.Len})
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := io.WriteString(w, prompt); err != nil {
		return err
	}
	_, tok := m.coder.Tokenizers()
	decoder, ids := tokenizer.Decoder{Tokenizer: tok}, b.Inputs[:b.Lengths[0]]
	if _, err := decoder.Next(ids[len(ids)-1]); err != nil { // the text of the next token may depend on the last token
		return err
	}
	var failed error // from decoding or writing
	write := func(text string) {
		if text != "" {
			_, failed = io.WriteString(w, text)
		}
	}
	o.End, o.Keep = nil, max(1, m.layout.Len/2)
	o.OnToken = func(_, token int) bool {
		var text string
		if text, failed = decoder.Next(token); failed == nil {
			write(text)
		}
		return failed == nil
	}
	if _, err := decode.Generate(ctx, session, [][]int{ids}, o); err != nil || failed != nil {
		return cmp.Or(err, failed)
	}
	write(decoder.Flush())
	return failed
}
