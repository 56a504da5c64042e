// Package serve answers HTTP requests with a trained model:
//
//	model, err := model.Open("runs/reverse")
//	...
//	handler, err := serve.New(model, serve.Options{})
//	...
//	http.Handle("/reverse/", http.StripPrefix("/reverse", handler))
//
// Requests and answers are JSON. A request must have the media type application/json. The answer to a failed request is
// an object with the key error, whose text is one line. These are the endpoints:
//
//	GET  /             a page for trying the model; not for kind embed
//	POST predict       {"input": "gorgonia", "top": 3, "beam": 4}; not for kinds text and embed
//	POST generate      {"prompt": "To be", "tokens": 200, "temperature": 0.8, "seed": 1}; only for kind text
//	POST attention     {"input": "gorgonia", "layer": "blocks.1"}
//	GET  health        whether the service runs, and how busy it is
//	GET  openapi.json  a description of the endpoints and their limits, in OpenAPI 3.1
//
// [Handler.OpenAI] has other endpoints, for clients of OpenAI's API.
//
// The input of predict is a text, or a list of texts. The answer is {"answers": [{"input": "gorgonia", "answer":
// "ainogrog", "probability": 0.99}]}, with one entry per input, in their order: the JSON of a model.Answer. An entry
// has "cut": true if the input is longer than the model's context, and "unknown": true if it has symbols that training
// never saw. If tags mark entities, it has their spans. With a top, it has alternatives, the likeliest answers with
// their probabilities. If the model has no answer to an input, its entry has "error": "…" instead; the other inputs
// are still answered. Only kind seq2seq has a beam, which is at least as wide as top. A published model for tags has
// entities, the name of one of model.EntityRules; a model for questions has no_answer, see model.PredictOptions.
//
// A model of natural language inference also has labels to choose among in place of its own, a text or a list of texts,
// template and several: see model.Labels. With several, the alternatives are all labels unless top says otherwise.
//
// The endpoint generate also accepts the other fields of decode.SamplerSettings, such as top_k and min_p, over the
// Sampler of the model, and stop, a text or a list of texts before which the answer ends. It sends server-sent events,
// each with one object as data. A text event, {"text": "…"}, has the text since the event before. The last event is
// done or error. The event done has {"reason": "tokens"} if all tokens were written, and the reason "stop" if the text
// ended before. It has the reason "time" if the request took too long, or "ending" if the service is about to end. It
// also has "cut": true if the prompt is longer than the model's context. The event error has {"error": "…"}. The same
// request with the same seed always gives the same text. Generation stops when the client disconnects.
//
// The answer of attention has the model's answer to the input, and its layers. Each layer has a name, a meaning, a
// label for each query (rows) and each key (columns), and the weights of each head, row by row. It has "cut": true if
// the input is longer than the model's context.
//
// A failed request has one of these statuses:
//
//	400  the body is not valid JSON, or a value in it is not allowed
//	403  the request comes from a page of another site
//	404  there is no such endpoint
//	405  the endpoint needs another method
//	408  the request arrives too slowly
//	413  the body is too large
//	415  the media type is not application/json
//	422  the model can't use the prompt, or the input of attention
//	500  the model failed
//	503  the service is too busy or about to end; the answer has a Retry-After
//	504  the request took too long
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/heed-go/heed/train/model"
)

// Options are the limits of a service. If a field is 0, its default is used.
type Options struct {
	MaxBody   int           // bytes per request; 1 MiB by default
	MaxInputs int           // inputs per request; 256 by default
	MaxBeam   int           // the largest beam for seq2seq, and the largest top for seq2seq and tagging; 16 by default, at most model.MaxBeam
	MaxTop    int           // alternatives per request, top times the number of inputs; 4,096 by default
	MaxTokens int           // tokens per generation; 1,024 by default
	Sessions  int           // generations and attention requests at the same time; 16 by default
	Queue     int           // inputs that may wait; 1,024 by default, or MaxInputs if that is more
	Batch     int           // inputs of several requests that are answered together; 32 by default
	Time      time.Duration // to send and answer a request, and the same time again to receive the answer; a minute by default

	Threshold model.Threshold // for models with two labels: see model.PredictOptions

	// ErrorLog logs panics in the model. The requests that cause them get an error. If ErrorLog is nil, the standard
	// logger of package log is used.
	ErrorLog *log.Logger
}

// A Handler answers the requests for one model. Make a Handler with New. Several goroutines may call its methods at the
// same time.
type Handler struct {
	model     *model.Model
	does      model.Description
	options   Options
	endpoints map[string]endpoint
	large     places // of large requests
	sessions  places // of generations and attention requests
	page      http.Handler
	origins   *http.CrossOriginProtection

	ending context.Context // done when all requests must end at once
	end    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // requests in progress; there are no new ones when the Handler is closed
	waiting  []*job
	inputs   int  // number of inputs in the jobs that wait
	working  bool // work is running
}

// Many clients may send requests at the same time, and send them slowly. To limit memory, only mostLarge requests at a
// time may have more than largeBody bytes. Most requests have less.
const (
	largeBody = 1 << 16
	mostLarge = 32
)

// New returns a Handler for a model. The parameters of the model must not change while the Handler is used. New returns
// an error if the model is empty, if a limit is negative, if MaxBeam is more than model.MaxBeam, or if MaxInputs is
// more than Queue. If the model can't use the Threshold, the error is a *model.ConfigError.
//
// The model answers one batch at a time, on all processors. It answers waiting requests with the same beam and top
// together, but a request never waits for others to arrive. If a request ends while it waits, the model doesn't compute
// it.
//
// Only 32 requests with more than 64 KiB, or with unknown length, are accepted at the same time. Others get status 503.
// So clients can't fill the memory, whatever they send and however slowly.
//
// The Handler enforces its limits on any http.Server. Before a connection has sent the header of a request, only the
// server's ReadHeaderTimeout and IdleTimeout limit it.
func New(m *model.Model, o Options) (*Handler, error) {
	if m.Params == nil { // without this check, the goroutine of a request would panic
		return nil, errors.New("the model is empty: use a model from model.Open or task.New")
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	does := m.Config.Describe()
	if does.Predict == nil || o.Threshold != (model.Threshold{}) {
		if _, err := m.PredictAll(context.Background(), nil, model.PredictOptions{Threshold: o.Threshold}); err != nil {
			return nil, err
		}
	}
	h := &Handler{model: m, does: does, options: o, origins: http.NewCrossOriginProtection(), large: make(places, mostLarge), sessions: make(places, o.Sessions)}
	h.ending, h.end = context.WithCancel(context.Background())
	h.endpoints = map[string]endpoint{
		"/":             {http.MethodGet, h.try},
		"/attention":    {http.MethodPost, h.attention},
		"/health":       {http.MethodGet, h.health},
		"/openapi.json": {http.MethodGet, h.describe},
	}
	switch {
	case does.Generate == nil:
		h.endpoints["/generate"] = endpoint{http.MethodPost, h.generate}
	case does.Predict != nil:
		delete(h.endpoints, "/")
	default:
		h.endpoints["/predict"] = endpoint{http.MethodPost, h.predict}
	}
	var err error
	h.page, err = h.newPage()
	return h, err
}

// complete checks the limits, and sets the defaults.
func (o *Options) complete() error {
	for _, limit := range []struct {
		name              string
		value             *int
		standard, maximum int
	}{
		{"MaxBody", &o.MaxBody, 1 << 20, math.MaxInt},
		{"MaxInputs", &o.MaxInputs, 256, math.MaxInt},
		{"MaxBeam", &o.MaxBeam, 16, model.MaxBeam},
		{"MaxTop", &o.MaxTop, 4096, math.MaxInt},
		{"MaxTokens", &o.MaxTokens, 1024, math.MaxInt},
		{"Sessions", &o.Sessions, 16, math.MaxInt},
		{"Queue", &o.Queue, max(1024, o.MaxInputs), math.MaxInt},
		{"Batch", &o.Batch, 32, math.MaxInt},
	} {
		if *limit.value < 0 {
			return fmt.Errorf("the %s must be at least 1, or 0 for %d, got %d", limit.name, limit.standard, *limit.value)
		}
		if *limit.value > limit.maximum {
			return fmt.Errorf("the %s must be at most %d, got %d", limit.name, limit.maximum, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.standard
		}
	}
	if o.Time < 0 {
		return fmt.Errorf("the Time must be above 0, or 0 for %v, got %v", time.Minute, o.Time)
	}
	if o.Queue < o.MaxInputs {
		return fmt.Errorf("the Queue must be at least MaxInputs, which is %d, got %d", o.MaxInputs, o.Queue)
	}
	if o.Time == 0 {
		o.Time = time.Minute
	}
	if o.ErrorLog == nil {
		o.ErrorLog = log.Default()
	}
	return nil
}

// ServeHTTP answers a request. Its path must be the path of an endpoint; use http.StripPrefix to remove a prefix.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.answerRequest(w, r, h.endpoints, failed)
}

// Shutdown refuses new requests, and waits until all accepted requests are answered. If ctx is done before that,
// Shutdown ends these requests at once and returns ctx.Err(). Requests that wait are then answered with an error.
//
// Also call the Shutdown of the http.Server, which closes its listeners and waits until all answers are sent.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	defer h.end()
	idle := make(chan struct{})
	go func() {
		h.requests.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// health answers that the service runs, and how busy it is.
func (h *Handler) health(w http.ResponseWriter, _ *http.Request) error {
	h.mu.Lock()
	waiting := h.inputs
	h.mu.Unlock()
	return h.reply(w, struct {
		Status   string `json:"status"`
		Waiting  int    `json:"waiting"`
		Sessions int    `json:"sessions"`
	}{"ok", waiting, len(h.sessions)})
}
