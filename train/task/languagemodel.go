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

// languageModel predicts the symbol of a text that follows.
type languageModel struct{ common }

var textKind = languageModel{common{Kind{
	Name: data.KindText, About: "the next character of a file",
	Generates: true, Unit: "characters", Right: "predicted",
	aligned: true, causal: true, units: "characters, bpe", maxLen: 64,
}}}

func (languageModel) defaults(c *Config) {
	c.Model.Dim, c.Training.BatchSize, c.Training.StepsPerEpoch, c.Training.Optimizer.Schedule.Decay = 64, 16, 200, 3000
}

func (languageModel) network(m *Model) (forward, error) {
	net, err := layers.NewDecoder(m.Params, m.Config.Model)
	m.decoder = net
	return func(b *layers.Build, in G.Nodes) (*G.Node, error) {
		return net.Forward(b, in[0], layers.Mask{}) // (B, Len, Classes)
	}, err
}

// Generate writes a prompt and what a text model writes after it to w, each character as soon as it is chosen: of
// tokens, as soon as its last byte is. Bytes that make no character, as a token's may, are written as U+FFFD. Where
// the text has outgrown the model's context, it goes on from the last half of the context. The options' End, Keep and
// OnToken are Generate's own. A prompt that the model doesn't know is an *InputError, as is one to a model of another
// kind; after any other error, and when ctx is cancelled, what was written stays.
func (m *Model) Generate(ctx context.Context, w io.Writer, prompt string, o decode.Options) error {
	if m.decoder == nil {
		return &InputError{prompt, fmt.Errorf("the model learned the task %s, and only text models write on", m.Config.Task.Name)}
	}
	b, err := m.encode(prompt)
	if err != nil {
		return err
	}
	session, err := decode.New(m.decoder, decode.Config{Capacity: m.layout.Len})
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := io.WriteString(w, prompt); err != nil {
		return err
	}
	_, tok := m.coder.Tokenizers()
	decoder, ids := tokenizer.Decoder{Tokenizer: tok}, b.Inputs[:b.Lengths[0]]
	if _, err := decoder.Next(ids[len(ids)-1]); err != nil { // what comes next may depend on it
		return err
	}
	var failed error // to write
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
