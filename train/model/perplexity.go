package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	G "gorgonia.org/gorgonia"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/chats"
	"github.com/heed-go/heed/internal/logit"
	"github.com/heed-go/heed/internal/ops"
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

// A TextScore says how well a model predicts a text, or the assistant's messages in conversations.
type TextScore struct {
	Loss   float64 // mean cross-entropy of the Tokens, in nats
	Tokens int     // number of predicted tokens: all but the first, or those that the assistant writes
	Bytes  int     // length in UTF-8 of the text, or of the assistant's messages
}

// Perplexity returns e to the power of the loss.
func (s TextScore) Perplexity() float64 { return math.Exp(s.Loss) }

// BitsPerByte returns the loss of all tokens in bits, divided by the bytes of the text. Models with different
// tokenizers can be compared by it.
func (s TextScore) BitsPerByte() float64 {
	return s.Loss * float64(s.Tokens) / math.Ln2 / float64(s.Bytes)
}

// String describes the score on one line.
func (s TextScore) String() string {
	return fmt.Sprintf("Loss=%.6f per token, perplexity %.4f, %.6f bits per byte (%d tokens, %d bytes)", s.Loss, s.Perplexity(), s.BitsPerByte(), s.Tokens, s.Bytes)
}

// ScoreText scores a published text model on a text. The tokenizer encodes the whole text at once, with the special
// tokens of its template. Each token after the first is predicted once, from all tokens before it in its window.
// Windows overlap, so that a token in any window but the first has at least Window − Stride tokens before it.
//
// The logits are computed for a few rows at a time, so memory grows with the Window, but not with the number of
// different tokens.
//
// If the files have conversations (see data.TextFiles.Chats), each is a text of its own in the form of the model's chat
// template, and only the tokens count that the assistant writes.
//
// The error is a *ConfigError if an option is wrong, and an *InputError if the model isn't a published text model or if
// the text has fewer than two tokens.
func (m *Model) ScoreText(ctx context.Context, files data.TextFiles, o WindowOptions) (s TextScore, err error) {
	model, ok := m.Network.(writer)
	if !ok || m.published == nil {
		return s, &InputError{files.Paths[0], fmt.Errorf("the model %s isn't a published text model", m.Config.Task.Name)}
	}
	o.Window = cmp.Or(o.Window, min(m.layout.Len, maxWindow))
	o.Stride = cmp.Or(o.Stride, max(1, o.Window/2))
	if err := cmp.Or(setting.Between("window", o.Window, 2, m.layout.Len), setting.Between("stride", o.Stride, 1, o.Window-1)); err != nil {
		return s, err
	}
	var texts []chats.Chat
	if files.HaveChats() {
		texts, s.Bytes, err = m.readChats(files)
	} else {
		texts, s.Bytes, err = m.readText(files)
	}
	if err != nil {
		return s, err
	}
	score, err := newTextScorer(model.net, o.Window)
	for _, text := range texts {
		targets := text.Targets()
		for start, done := 0, 0; err == nil && done < len(targets); start += o.Stride { // done targets are predicted
			var loss float64
			var counted int
			end := min(start+o.Window-1, len(targets))
			for i := start; i < done; i++ {
				targets[i] = data.Ignore
			}
			loss, counted, err = score.window(ctx, text.IDs[start:end], targets[start:end])
			s.Loss, s.Tokens, done = s.Loss+loss, s.Tokens+counted, end
		}
	}
	s.Loss /= float64(s.Tokens)
	return s, err
}

// readText returns a whole text as one conversation in which all is learned.
func (m *Model) readText(files data.TextFiles) (texts []chats.Chat, bytes int, err error) {
	text, err := data.OpenText(files, nil)
	if err != nil {
		return nil, 0, err
	}
	defer text.Close()
	content, err := text.Content()
	if err != nil {
		return nil, 0, err
	}
	source, _ := m.Coder.Tokenizers()
	input, err := source.(*tokenizer.Pipeline).WithLimit(0).Input(content)
	var c chats.Chat
	for _, token := range input.Tokens {
		c.IDs, c.Answers = append(c.IDs, token.ID), append(c.Answers, true)
	}
	if err == nil && len(c.IDs) < 2 {
		err = &InputError{files.Paths[0], fmt.Errorf("the text has %d tokens, too few to predict one", len(c.IDs))}
	}
	return []chats.Chat{c}, len(content), err
}

// readChats returns conversations, and the number of bytes that the assistant wrote.
func (m *Model) readChats(files data.TextFiles) (list []chats.Chat, bytes int, err error) {
	source, _ := m.Coder.Tokenizers()
	encode, err := m.published.chatEncoder(source)
	if err != nil {
		return nil, 0, err
	}
	list, err = chats.Encoder(func(messages []tokenizer.Message) (chats.Chat, error) {
		for _, message := range messages {
			if message.Role == "assistant" {
				bytes += len(message.Content)
			}
		}
		return encode(messages)
	}).Read(files, 0, new(string))
	return list, bytes, err
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
		inputs = G.Nodes{ops.IntNode(g, "ids", 1, s.rows), ops.IntNode(g, "targets", 1, s.rows)}
		logits, err := net.Forward(b, inputs[0], layers.Mask{})
		if err != nil {
			return nil, nil, err
		}
		loss, err := layers.CrossEntropy(b, logits, inputs[1], layers.CrossEntropyOptions{})
		return inputs, G.Nodes{loss.Mean, loss.Count}, err
	})
	return s, err
}

// window returns the loss of a window's targets that aren't Ignore, and their number.
func (s *textScorer) window(ctx context.Context, ids, targets []int) (sum float64, total int, err error) {
	s.cache.Reset()
	for start := 0; start < len(ids); start += s.rows {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		n := min(s.rows, len(ids)-start)
		inputs, outputs := make([]int, s.rows), slices.Repeat([]int{data.Ignore}, s.rows)
		copy(inputs, ids[start:][:n])
		copy(outputs, targets[start:][:n])
		if err := s.cache.Extend(n); err != nil {
			return 0, 0, err
		}
		out, err := s.forward.Call(ops.IntTensor(inputs, 1, s.rows), ops.IntTensor(outputs, 1, s.rows))
		if err != nil {
			s.cache.Cancel()
			return 0, 0, err
		}
		s.cache.Commit()
		count, mean := out[1].Data().(float64), out[0].Data().(float32)
		if err := logit.CheckFinite(mean); err != nil {
			return 0, 0, err
		}
		sum, total = sum+count*float64(mean), total+int(count)
	}
	return sum, total, nil
}
