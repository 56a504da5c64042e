package task

import (
	"cmp"
	"context"
	"fmt"
	"math"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers"
)

// WindowOptions say how ScoreText divides a text.
type WindowOptions struct {
	Window int // number of tokens that the model sees at once; 0 means its context, but at most 8,192
	Stride int // number of tokens between the starts of two windows, less than Window; 0 means half of the Window
}

// maxWindow is the largest default Window.
const maxWindow = 1 << 13

// A TextScore says how well a model predicts a text.
type TextScore struct {
	Loss   float64 // mean cross-entropy of the Tokens, in nats
	Tokens int     // number of predicted tokens: all but the first
	Bytes  int     // length of the text in UTF-8
}

// Perplexity returns e to the power of the loss.
func (s TextScore) Perplexity() float64 { return math.Exp(s.Loss) }

// BitsPerByte returns the loss of all tokens in bits, divided by the bytes of the text. Models with different
// tokenizers can be compared by it.
func (s TextScore) BitsPerByte() float64 {
	return s.Loss * float64(s.Tokens) / math.Ln2 / float64(s.Bytes)
}

func (s TextScore) String() string {
	return fmt.Sprintf("Loss=%.6f per token, perplexity %.4f, %.6f bits per byte (%d tokens, %d bytes)", s.Loss, s.Perplexity(), s.BitsPerByte(), s.Tokens, s.Bytes)
}

// ScoreText scores a published text model on a text. The tokenizer encodes the whole text at once, with the special
// tokens of its template. Each token after the first is predicted once, from all tokens before it in its window.
// Windows overlap, so that a token in any window but the first has at least Window − Stride tokens before it.
//
// The logits are computed for a few rows at a time, so memory grows with the Window, but not with the number of
// different tokens. The error is a *ConfigError if an option is wrong, and an *InputError if the model isn't a
// published text model or if the text has fewer than two tokens.
func (m *Model) ScoreText(ctx context.Context, files data.TextFiles, o WindowOptions) (s TextScore, err error) {
	model, ok := m.network.(writer)
	if !ok || m.published == nil {
		return s, &InputError{files.Paths[0], fmt.Errorf("the model %s isn't a published text model", m.Config.Task.Name)}
	}
	o.Window = cmp.Or(o.Window, min(m.layout.Len, maxWindow))
	o.Stride = cmp.Or(o.Stride, max(1, o.Window/2))
	if err := cmp.Or(setting.Between("window", o.Window, 2, m.layout.Len), setting.Between("stride", o.Stride, 1, o.Window-1)); err != nil {
		return s, err
	}
	text, err := data.OpenText(files, nil)
	if err != nil {
		return s, err
	}
	defer text.Close()
	content, err := text.Content()
	if err != nil {
		return s, err
	}
	source, _ := m.coder.Tokenizers()
	input, err := source.(*tokenizer.Pipeline).WithLimit(0).Input(content)
	if s.Bytes, s.Tokens = len(content), len(input.Tokens)-1; err == nil && s.Tokens < 1 {
		err = &InputError{files.Paths[0], fmt.Errorf("the text has %d tokens, too few to predict one", len(input.Tokens))}
	}
	if err != nil {
		return s, err
	}
	score, err := newTextScorer(model.net, o.Window)
	for start, done := 0, 1; err == nil && done < len(input.Tokens); start += o.Stride { // done tokens are predicted, or the first
		var loss float64
		end := min(start+o.Window, len(input.Tokens))
		loss, err = score.window(ctx, input.Tokens[start:end], done-start)
		s.Loss, done = s.Loss+loss, end
	}
	s.Loss /= float64(s.Tokens)
	return s, err
}

// scoreRows is the largest number of rows of logits that are computed at a time.
const scoreRows = 128

// A textScorer predicts the tokens of windows.
type textScorer struct {
	rows    int // number of rows of logits that are computed at a time
	cache   *layers.Cache
	forward *layers.Function // ids and targets, (1, rows) -> the mean loss
}

func newTextScorer(net *layers.Decoder, window int) (*textScorer, error) {
	cache, err := layers.NewCache(1, window)
	if err != nil {
		return nil, err
	}
	s := &textScorer{rows: min(scoreRows, window), cache: cache}
	s.forward, err = layers.NewFunction(func(b *layers.Build, g *G.ExprGraph) (inputs, out G.Nodes, err error) {
		b.Cache = cache
		inputs = G.Nodes{intNode(g, "ids", 1, s.rows), intNode(g, "targets", 1, s.rows)}
		logits, err := net.Forward(b, inputs[0], layers.Mask{})
		if err != nil {
			return nil, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
		return inputs, G.Nodes{loss}, err
	})
	return s, err
}

// window returns the loss of the tokens from index first on, given the tokens before them in the window.
func (s *textScorer) window(ctx context.Context, tokens []tokenizer.Token, first int) (sum float64, err error) {
	s.cache.Reset()
	for start := 0; start < len(tokens)-1; start += s.rows { // the last token is only a target
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		ids, targets, n, counted := make([]int, s.rows), make([]int, s.rows), min(s.rows, len(tokens)-1-start), 0
		for i := range targets {
			if targets[i] = data.Ignore; i < n {
				ids[i] = tokens[start+i].ID
				if start+i+1 >= first {
					targets[i], counted = tokens[start+i+1].ID, counted+1
				}
			}
		}
		if err := s.cache.Extend(n); err != nil {
			return 0, err
		}
		out, err := s.forward.Call(intTensor(ids, 1, s.rows), intTensor(targets, 1, s.rows))
		if err != nil {
			s.cache.Cancel()
			return 0, err
		}
		s.cache.Commit()
		sum += float64(counted) * float64(out[0].Data().(float32))
	}
	return sum, nil
}
