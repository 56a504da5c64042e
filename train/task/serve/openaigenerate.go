package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heed-go/heed/train/model"
)

// chat answers with the next message of a conversation.
func (a *openAI) chat(w http.ResponseWriter, r *http.Request, q *openAIRequest) error {
	messages, err := q.conversation()
	if err != nil {
		return err
	}
	standard := a.options.MaxTokens
	if standard >= 1024 {
		standard = 0 // 1,024, or less if the model's context is full
	}
	g := generation{openAI: a, w: w, request: q, chat: true}
	thinking := q.ChatTemplateKwargs.EnableThinking
	return g.answer(r.Context(), standard, model.Prompt{Messages: messages, NoThinking: thinking != nil && !*thinking})
}

// complete answers with the texts that follow prompts.
func (a *openAI) complete(w http.ResponseWriter, r *http.Request, q *openAIRequest) error {
	texts, err := a.texts(q.Prompt, "prompt")
	if err != nil {
		return err
	}
	prompts := make([]model.Prompt, len(texts))
	for i, text := range texts {
		prompts[i].Text = text
	}
	g := generation{openAI: a, w: w, request: q}
	return g.answer(r.Context(), min(16, a.options.MaxTokens), prompts...)
}

// A generation answers a request for text.
type generation struct {
	*openAI
	w       http.ResponseWriter
	request *openAIRequest
	chat    bool
	fields  object // of the answer and of each event
	index   int    // of the prompt
	begun   bool   // an event has been sent
}

// answer answers with the texts that follow the prompts. If the request has no number of tokens, it is standard.
func (g *generation) answer(ctx context.Context, standard int, prompts ...model.Prompt) error {
	o, err := g.request.options(g.model.Sampler(), standard, g.options.MaxTokens)
	if err != nil {
		return err
	}
	g.fields = object{"id": "cmpl-" + rand.Text(), "object": "text_completion", "created": time.Now().Unix(), "model": g.name}
	if g.chat {
		g.fields["id"], g.fields["object"] = "chat"+g.fields["id"].(string), "chat.completion"
		if g.request.Stream {
			g.fields["object"] = "chat.completion.chunk"
		}
	}
	read, written := 0, 0
	choices := []object{}
	err = g.inSession(func() error {
		for i, p := range prompts {
			g.index = i
			var whole strings.Builder
			var out io.Writer = &whole
			if g.request.Stream {
				out = textWriter(func(text string) error { return g.send(g.choice(text, "")) })
			}
			one, err := g.model.Generate(ctx, out, p, o)
			if err != nil {
				return err
			}
			read, written = read+one.PromptTokens, written+one.Tokens
			if !g.request.Stream {
				choices = append(choices, g.choice(whole.String(), one.Finish))
			} else if err := g.send(g.choice("", one.Finish)); err != nil {
				return err
			}
		}
		return nil
	})
	usage := object{"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
	switch {
	case err != nil && g.begun:
		e := &statusError{status: http.StatusInternalServerError, err: err}
		if !errors.As(context.Cause(ctx), &e) {
			errors.As(badInput(err, "prompt"), &e) // a conversation has one prompt, which is refused before it begins
		}
		return g.emit(openAIError(e)) // if the client has disconnected, nobody reads this
	case err != nil:
		return err
	case !g.request.Stream:
		g.fields["choices"], g.fields["usage"] = choices, usage
		return g.reply(g.w, g.fields)
	case g.request.StreamOptions.IncludeUsage:
		g.fields["choices"], g.fields["usage"] = choices, usage
		g.emit(g.fields)
	}
	g.eventLine(g.w, "", "[DONE]")
	return nil
}

// choice returns a text of the current prompt. A finish is the reason for its end. In a stream, that comes after the
// text.
func (g *generation) choice(text, finish string) object {
	c := object{"index": g.index, "logprobs": nil, "finish_reason": nil}
	if finish != "" {
		c["finish_reason"] = finish
	}
	switch {
	case !g.chat:
		c["text"] = text
	case !g.request.Stream:
		c["message"] = object{"role": "assistant", "content": text}
	case finish != "":
		c["delta"] = object{}
	default:
		c["delta"] = object{"content": text}
	}
	return c
}

// send sends a part of a choice. In a conversation, an event with the role comes first.
func (g *generation) send(c object) error {
	if g.chat && !g.begun {
		g.fields["choices"] = []object{{"index": 0, "logprobs": nil, "finish_reason": nil, "delta": object{"role": "assistant", "content": ""}}}
		if err := g.emit(g.fields); err != nil {
			return err
		}
	}
	g.fields["choices"] = []object{c}
	return g.emit(g.fields)
}

// emit sends an event.
func (g *generation) emit(data any) error {
	g.begun = true
	return g.event(g.w, "", data)
}

// A textWriter is a function that gets texts as an io.Writer.
type textWriter func(text string) error

func (f textWriter) Write(b []byte) (int, error) { return len(b), f(string(b)) }
