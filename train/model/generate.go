package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/layers/decode"
)

// A Prompt is what a text model continues: a text or, if there are Messages, the next message of a conversation.
type Prompt struct {
	Text string // for a published model that has a token to begin with, it may be empty

	// Messages need a published model. They are written in the form of the folder's chat template or of the Template,
	// if it isn't empty: one of tokenizer.ChatTemplates. Names of special tokens in their contents are ordinary text.
	Messages   []tokenizer.Message
	Template   string
	NoThinking bool // see tokenizer.ChatTemplate
}

// GenerateOptions are the options of Generate.
type GenerateOptions struct {
	Sampler   decode.Sampler
	Seed      uint64   // seed of all draws
	MaxTokens int      // largest number of tokens to write; 0 means 1,024 or, for a published model, less if its context is full
	Stop      []string // the text ends before the first of these strings, also if several tokens make it
	Echo      bool     // write the prompt's Text first
}

// Check returns a *ConfigError if an option is wrong.
func (o GenerateOptions) Check() error {
	if slices.Contains(o.Stop, "") {
		return setting.Errorf("%s must be a text at which to end, got none", setting.Path("stop"))
	}
	return cmp.Or(setting.In("tokens", o.MaxTokens, o.MaxTokens >= 0, "at least 1"), o.Sampler.Check())
}

// Generated describes what Generate has written.
type Generated struct {
	PromptTokens int    // number of tokens that the model read
	Tokens       int    // number of tokens that it wrote
	Finish       string // "stop" if the model ended the text, or one of Stop came; "length" after MaxTokens
}

// mostTokens is the number of tokens that Generate writes if MaxTokens is 0.
const mostTokens = 1024

// Generate writes the model's continuation of a prompt to w, each character as soon as it is complete. Bytes that
// aren't part of a character, which a token may have, are written as U+FFFD. Text that may be the beginning of one of
// Stop is held back. A published model also ends the text itself, with one of its end tokens or, in a conversation,
// with the mark that its chat template has after an answer. Neither special tokens nor this mark are written.
//
// If the text grows longer than the model's context, generation goes on from the last half of the context. But for a
// published model, it is an error if the prompt and MaxTokens together exceed the context.
//
// The error is a *ConfigError if an option is wrong. It is an *InputError if the model's kind isn't text, if it doesn't
// know a symbol of the prompt, if it has no chat template, or if the context is too small. In these cases, nothing was
// written. After another error, or when ctx is cancelled, w has the text up to then, and the result counts its tokens.
func (m *Model) Generate(ctx context.Context, w io.Writer, p Prompt, o GenerateOptions) (Generated, error) {
	model, ok := m.Network.(writer)
	if !ok {
		return Generated{}, &InputError{p.Text, m.Config.Describe().Generate}
	}
	if err := o.Check(); err != nil {
		return Generated{}, err
	}
	ids, mark, err := m.promptIDs(p)
	if err != nil {
		return Generated{}, err
	}
	_, tok := m.Coder.Tokenizers()
	capacity, d := m.layout.Len, decode.Options{Sampler: o.Sampler, Seed: o.Seed, MaxTokens: cmp.Or(o.MaxTokens, mostTokens)}
	if room := capacity - len(ids); m.published == nil {
		d.Keep = max(1, capacity/2)
	} else if room < max(1, o.MaxTokens) {
		return Generated{}, &InputError{p.Text, fmt.Errorf("the prompt has %d tokens, and the model reads and writes at most %d together (max_position_embeddings): give a shorter prompt, or ask for at most %d tokens", len(ids), capacity, max(0, room))}
	} else {
		c := &m.published.model
		d.MaxTokens, d.End, d.Rules = min(d.MaxTokens, room), c.End, c.Search.Rules
		d.MinTokens = max(d.MinTokens, c.MinLen-len(ids))
	}
	if id, ok := m.markID(mark); ok {
		d.End = append(slices.Clip(d.End), id)
	} else if mark != "" { // several tokens write it
		o.Stop = append(slices.Clip(o.Stop), mark)
	}
	if d.MaxTokens < capacity-len(ids) {
		capacity = len(ids) + d.MaxTokens
	}
	session, err := decode.New(model.net, decode.Config{Adapter: m.adapter, Capacity: capacity, Vocab: min(tok.Len(), m.layout.Tokens)})
	if err != nil {
		return Generated{}, err
	}
	defer session.Close()
	out := &stopping{w: w, stop: o.Stop}
	if o.Echo {
		if _, err := io.WriteString(w, p.Text); err != nil {
			return Generated{}, err
		}
	}
	decoder := tokenizer.Decoder{Tokenizer: tok, SkipSpecial: m.published != nil}
	for i, id := range ids {
		if len(p.Messages) > 0 || i < len(ids)-readAgain { // an answer is a text of its own
			continue
		}
		if _, err := decoder.Next(id); err != nil {
			return Generated{}, err
		}
	}
	d.OnToken = func(_, token int) bool {
		var text string
		if text, out.err = decoder.Next(token); out.err == nil {
			out.write(text)
		}
		return out.err == nil && !out.ended
	}
	results, err := decode.Generate(ctx, session, [][]int{ids}, d)
	g := Generated{PromptTokens: len(ids), Finish: "length"}
	if results != nil {
		g.Tokens = len(results[0].Tokens)
	}
	if err := cmp.Or(err, out.err); err != nil {
		return g, err
	}
	if rest := decoder.Flush(); !out.ended {
		out.write(rest)
		out.flush()
	}
	if out.ended || results[0].Stop == decode.StopEnd {
		g.Finish = "stop"
	}
	return g, out.err
}

// markID returns the id of the mark at the end of an answer, if a special token of the model writes it.
func (m *Model) markID(mark string) (id int, ok bool) {
	source, _ := m.Coder.Tokenizers()
	id, ok = source.Special()[mark]
	return id, ok && id < m.layout.Tokens
}

// promptIDs returns the tokens of a prompt and, for a conversation, the mark that ends the answer.
func (m *Model) promptIDs(p Prompt) (ids []int, mark string, err error) {
	if len(p.Messages) == 0 {
		b, encoded := m.encode(p.Text)
		return b.Inputs[:min(len(b.Inputs), append(b.Lengths, 0)[0])], "", encoded.Err
	}
	wrong := func(err error) ([]int, string, error) {
		return nil, "", &InputError{p.Messages[len(p.Messages)-1].Content, err}
	}
	if p.Text != "" || m.published == nil {
		return wrong(errors.New("a conversation needs a published model, and can't come with another text"))
	}
	template, err := m.published.chatTemplate(p.Template)
	if err != nil && p.Template == "" {
		err = fmt.Errorf("%w; a template can be chosen by name: %s", err, strings.Join(tokenizer.ChatTemplates(), ", "))
	}
	if err != nil {
		return wrong(err)
	}
	template.NoThinking = p.NoThinking
	source, _ := m.Coder.Tokenizers()
	if ids, _, err = template.Encode(source.(*tokenizer.Pipeline), p.Messages, true); err != nil {
		return wrong(err)
	}
	return ids, template.End(), nil
}

// readAgain is the number of the prompt's last tokens that are decoded before a continuation, because the text of the
// next token may depend on them. A character has at most 4 tokens.
const readAgain = 8

// stopping writes text until one of stop comes.
type stopping struct {
	w     io.Writer
	stop  []string
	held  string // may be the beginning of one of stop
	ended bool   // one of stop came
	err   error
}

// write writes the text up to one of stop, but holds back an end that may begin one.
func (s *stopping) write(text string) {
	s.held += text
	end, kept := len(s.held), 0
	for _, stop := range s.stop {
		if i := strings.Index(s.held, stop); i >= 0 && i < end {
			end, s.ended = i, true
		}
		for n := min(len(stop)-1, len(s.held)); n > kept; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				kept = n
			}
		}
	}
	if !s.ended {
		end -= kept
	}
	if end > 0 && s.err == nil {
		_, s.err = io.WriteString(s.w, s.held[:end])
	}
	if s.held = s.held[end:]; s.ended {
		s.held = ""
	}
}

// flush writes what write has held back.
func (s *stopping) flush() {
	if s.held != "" && s.err == nil {
		_, s.err = io.WriteString(s.w, s.held)
	}
}

// Sampler returns how the model's folder says that tokens are chosen, for GenerateOptions: in generation_config.json
// for a published model, whose likeliest token is chosen if that has no do_sample. Otherwise, tokens are drawn with the
// model's own probabilities. To replace some settings, use decode.SamplerSettings.
func (m *Model) Sampler() decode.Sampler {
	if m.published == nil {
		return decode.Sampler{Temperature: 1, TopP: 1}
	}
	return m.published.model.Sampler
}
