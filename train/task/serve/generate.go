package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
)

// A generateRequest asks for the text that follows a prompt.
type generateRequest struct {
	Prompt string `json:"prompt"`
	Tokens int    `json:"tokens"`
	decode.SamplerSettings
	Seed uint64 `json:"seed"`
	Stop texts  `json:"stop"`
}

// options returns the options of the request for a model with the Sampler own.
func (g *generateRequest) options(own decode.Sampler) model.GenerateOptions {
	return model.GenerateOptions{Sampler: g.Over(own), Seed: g.Seed, MaxTokens: g.Tokens, Stop: g.Stop}
}

// readGenerate reads and checks a request.
func (h *Handler) readGenerate(w http.ResponseWriter, r *http.Request) (generateRequest, error) {
	wants := map[string]string{
		"prompt":      "the text to continue",
		"tokens":      fmt.Sprintf("a whole number from 1 to %d", h.options.MaxTokens),
		"temperature": "a number of at least 0",
		"top_k":       "a whole number of at least 1, or 0 for all",
		"top_p":       "a number from 0 to 1",
		"min_p":       "a number from 0 to 1",
		"seed":        "a whole number of at most 64 bits, not negative",
		"stop":        "a text, or a list of texts",

		"repetition_penalty": "a number from 0.01 to 100, or 0 for none",
		"presence_penalty":   "a number from -2 to 2",
		"frequency_penalty":  "a number from -2 to 2",
	}
	g := generateRequest{Tokens: h.defaultTokens(), Seed: 1}
	if err := h.read(w, r, &g, wants); err != nil {
		return g, err
	}
	wrong := func(name string, got any) error {
		return failf(http.StatusBadRequest, "%s must be %s, got %v", name, wants[name], got)
	}
	switch {
	case g.Prompt == "" && h.model.Config.Task.Published.Tokens == 0:
		return g, wrong("prompt", "none")
	case g.Tokens < 1 || g.Tokens > h.options.MaxTokens:
		return g, wrong("tokens", g.Tokens)
	}
	if err := g.options(h.model.Sampler()).Check(); err != nil {
		return g, failf(http.StatusBadRequest, "%v", err)
	}
	return g, nil
}

// defaultTokens returns the number of tokens to write if a request has none.
func (h *Handler) defaultTokens() int { return min(200, h.options.MaxTokens) }

// generate writes the text that follows a prompt, each token as soon as it is chosen.
func (h *Handler) generate(w http.ResponseWriter, r *http.Request) error {
	g, err := h.readGenerate(w, r)
	if err != nil {
		return err
	}
	s := &stream{h: h, w: w}
	reason, cut := "tokens", false
	err = h.inSession(func() error {
		cut = h.model.Cuts(g.Prompt)
		written, err := h.model.Generate(r.Context(), s, model.Prompt{Text: g.Prompt}, g.options(h.model.Sampler()))
		if written.Finish == "stop" {
			reason = "stop"
		}
		return err
	})
	switch cause := context.Cause(r.Context()); {
	case err == nil:
	case !s.begun:
		return inputError(err)
	case cause == errTime:
		reason = "time"
	case cause == errEnding:
		reason = "ending"
	default: // if the client has disconnected, nobody reads this
		s.send("error", object{"error": text.OneLine(err)})
		return nil
	}
	s.send("done", struct {
		Reason string `json:"reason"`
		Cut    bool   `json:"cut,omitempty"`
	}{reason, cut})
	return nil
}

// inputError returns err. If the model can't use the input, it adds the status 422.
func inputError(err error) error {
	var wrong *model.InputError
	if errors.As(err, &wrong) {
		return &statusError{http.StatusUnprocessableEntity, wrong.Err}
	}
	return err
}

// inSession calls f, which may write text for long. If Options.Sessions calls are already in progress, it returns an
// error with status 503 instead. If f panics, inSession logs that and returns an error.
func (h *Handler) inSession(f func() error) error {
	if !h.sessions.take() {
		return failf(http.StatusServiceUnavailable, "%d generations and attention requests are already in progress: try again later", cap(h.sessions))
	}
	defer h.sessions.give()
	return h.recovered(f)
}

// A stream sends the text that is written to it as events.
type stream struct {
	h     *Handler
	w     http.ResponseWriter
	begun bool
}

func (s *stream) Write(b []byte) (int, error) {
	return len(b), s.send("text", object{"text": string(b)})
}

// send sends an event with a JSON object as data.
func (s *stream) send(event string, object any) error {
	s.begun = true
	return s.h.event(s.w, event, object)
}
