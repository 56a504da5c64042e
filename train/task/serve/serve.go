// Package serve answers HTTP requests with a trained model:
//
//	model, err := task.Open("runs/reverse")
//	...
//	handler, err := serve.New(model, serve.Options{})
//	...
//	http.Handle("/reverse/", http.StripPrefix("/reverse", handler))
//
// Requests and answers are JSON. A request has the media type application/json, and an answer that isn't a success is
// an object with the key error, whose text is on one line:
//
//	GET  /             a page to try it
//	POST predict       {"inputs": ["gorgonia"], "beam": 4, "scores": true}; not of text
//	POST generate      {"prompt": "To be", "tokens": 200, "temperature": 0.8, "seed": 1}; of text alone
//	POST attention     {"input": "gorgonia", "layer": "blocks.1"}
//	GET  health        whether it is there, and how busy
//	GET  openapi.json  a description of all this, in OpenAPI 3.1, with the limits
//
// An answer of predict has an entry for each input, in their order: {"answer": "ainogrog", "log_prob": -0.01}, with the
// natural logarithm of the answer's probability where scores is true, "unknown": true where the input has symbols that
// training never saw, or {"error": "…"} for an input that the model can't take, which doesn't touch the others.
//
// What generate writes, with top_k and top_p too, comes as server-sent events of one object each. A text event,
// {"text": "…"}, has what was written since the last one. The last event is done, with {"reason": "tokens"} where there
// are as many as were asked for, and "time" or "ending" where the service has cut it off, or error, {"error": "…"}. One
// seed always writes the same. It stops when the client goes.
//
// An answer of attention has the model's answer to the input and its layers, each with a name and a meaning, a label
// for each query (rows) and each key (columns), and the weights of each head, row by row.
//
// The statuses are 400 for what isn't the JSON that is wanted, 404 and 405 for what isn't there, 403 for what a page of
// another site asks, 408 for a request that comes too slowly, 413 and 415 for one that is too large or not JSON, 422
// for a prompt, or an input of attention, that the model can't take, 500 for what fails in the model, 503 with a
// Retry-After where too much waits already or the service is about to end, and 504 for what takes too long.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heed-go/heed/train/task"
)

// Options are the limits of a service. What is 0 has the default.
type Options struct {
	MaxBody   int           // bytes of a request; 1 MiB by default
	MaxInputs int           // inputs of a request; 256 by default
	MaxBeam   int           // hypotheses that answers of pairs are searched with; 16 by default, at most task.MaxBeam
	MaxTokens int           // tokens that a generation writes; 1,024 by default
	Sessions  int           // generations, and answers of attention, at once; 16 by default
	Queue     int           // inputs that wait to be answered; 1,024 by default, or MaxInputs if that is more
	Batch     int           // inputs of several requests that are answered together; 32 by default
	Time      time.Duration // to send a request and have it answered, and again to take the answer; a minute by default

	// ErrorLog is told of panics in the model, which are no more than an error to the requests that meet them; nil for
	// the standard logger of package log.
	ErrorLog *log.Logger
}

// A Handler is a service of one model. Make one with New. Its methods may be called by any number of goroutines.
type Handler struct {
	model     *task.Model
	options   Options
	endpoints map[string]endpoint
	large     chan struct{} // has one for each large request under way
	page      http.Handler
	origins   *http.CrossOriginProtection

	ending context.Context // is done when what is under way is to end at once
	end    context.CancelFunc

	mu       sync.Mutex
	closed   bool
	active   int           // requests
	idle     chan struct{} // closed when the Handler is closed and no request is active
	waiting  []*job
	inputs   int  // of the jobs that wait
	working  bool // whether work runs
	sessions int
}

// Any number of clients may send requests, slowly too. So that they don't fill the memory, only mostLarge requests at
// once may have more than largeBody bytes, which is more than most requests have.
const (
	largeBody = 1 << 16
	mostLarge = 32
)

// An endpoint is what answers the requests of a path. Where it returns an error it has written nothing.
type endpoint struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) error
}

// New makes a service of a model, whose parameters nothing may write while it is used. It is an error if a limit is
// negative, if MaxBeam is more than task.MaxBeam, or if MaxInputs is more than the Queue.
//
// Requests that wait are answered together, as long as they want the same beam, one batch at a time over all
// processors. So a request never waits for others to come, and one that has ended before its turn is never computed.
//
// Of requests with more than 64 KiB, or of a length that they don't tell, only 32 are under way at once, and others are
// answered with 503: whatever clients send and however slowly, it doesn't fill the memory.
//
// The Handler keeps to its limits on any http.Server; what a connection does before it has sent a request's header is
// up to the server's ReadHeaderTimeout and IdleTimeout.
func New(m *task.Model, o Options) (*Handler, error) {
	if m.Params == nil { // else it would fail in the goroutine of a request
		return nil, errors.New("the model is empty: task.Open or task.New makes one")
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	h := &Handler{model: m, options: o, origins: http.NewCrossOriginProtection(), idle: make(chan struct{}), large: make(chan struct{}, mostLarge)}
	h.ending, h.end = context.WithCancel(context.Background())
	h.endpoints = map[string]endpoint{
		"/":             {http.MethodGet, h.try},
		"/attention":    {http.MethodPost, h.attention},
		"/health":       {http.MethodGet, h.health},
		"/openapi.json": {http.MethodGet, h.describe},
	}
	if m.Config.Kind().Generates {
		h.endpoints["/generate"] = endpoint{http.MethodPost, h.generate}
	} else {
		h.endpoints["/predict"] = endpoint{http.MethodPost, h.predict}
	}
	var err error
	h.page, err = h.newPage()
	return h, err
}

// complete checks the limits, and sets the defaults of those that are 0.
func (o *Options) complete() error {
	for _, limit := range []struct {
		name           string
		value          *int
		standard, most int
	}{
		{"MaxBody", &o.MaxBody, 1 << 20, math.MaxInt},
		{"MaxInputs", &o.MaxInputs, 256, math.MaxInt},
		{"MaxBeam", &o.MaxBeam, 16, task.MaxBeam},
		{"MaxTokens", &o.MaxTokens, 1024, math.MaxInt},
		{"Sessions", &o.Sessions, 16, math.MaxInt},
		{"Queue", &o.Queue, max(1024, o.MaxInputs), math.MaxInt},
		{"Batch", &o.Batch, 32, math.MaxInt},
	} {
		if *limit.value < 0 {
			return fmt.Errorf("the %s must be at least 1, or 0 for %d, got %d", limit.name, limit.standard, *limit.value)
		}
		if *limit.value > limit.most {
			return fmt.Errorf("the %s must be at most %d, got %d", limit.name, limit.most, *limit.value)
		}
		if *limit.value == 0 {
			*limit.value = limit.standard
		}
	}
	if o.Time < 0 {
		return fmt.Errorf("the Time must be above 0, or 0 for %v, got %v", time.Minute, o.Time)
	}
	if o.Queue < o.MaxInputs {
		return fmt.Errorf("the Queue must have room for a request, whose MaxInputs are %d, got %d", o.MaxInputs, o.Queue)
	}
	if o.Time == 0 {
		o.Time = time.Minute
	}
	if o.ErrorLog == nil {
		o.ErrorLog = log.Default()
	}
	return nil
}

// ServeHTTP answers a request. Its path is that of an endpoint: http.StripPrefix takes off what is before it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	ctx, cancel := context.WithTimeoutCause(r.Context(), h.options.Time, errTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(h.ending, func() { stop(errEnding) })()
	if err := h.serve(w, r.WithContext(ctx)); err != nil {
		h.fail(w, ctx, err)
	}
}

// serve answers a request, or returns why it doesn't.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	if !h.enter() {
		return errEnding
	}
	defer h.leave()
	e, ok := h.endpoints[r.URL.Path]
	if !ok {
		return failf(http.StatusNotFound, "there is no %.100q for a model of %s: there is %s", r.URL.Path, h.model.Config.Task.Kind, h.listed())
	}
	if r.Method != e.method && !(r.Method == http.MethodHead && e.method == http.MethodGet) {
		w.Header().Set("Allow", allowed(e.method))
		return failf(http.StatusMethodNotAllowed, "%s is asked by %s, got %.20q", r.URL.Path, allowed(e.method), r.Method)
	}
	if err := h.origins.Check(r); err != nil {
		return failf(http.StatusForbidden, "%v: a page of another site may not ask", err)
	}
	if r.ContentLength > largeBody || r.ContentLength < 0 {
		select {
		case h.large <- struct{}{}:
			defer func() { <-h.large }()
		default:
			return failf(http.StatusServiceUnavailable, "%d requests of more than %d bytes, or of a length they don't tell, are under way: try again later", mostLarge, largeBody)
		}
	}
	return e.serve(w, r)
}

func allowed(method string) string {
	if method == http.MethodGet {
		return "GET, HEAD"
	}
	return method
}

// listed returns the endpoints for an error.
func (h *Handler) listed() string {
	var all []string
	for path, e := range h.endpoints {
		all = append(all, e.method+" "+path)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// enter notes a request that begins. It reports false if none may.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.active++
	return true
}

func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active--; h.closed && h.active == 0 {
		close(h.idle)
	}
}

// Shutdown refuses requests from now on, and waits until those that were taken are answered. When ctx is done it has
// them end at once, those that wait with an error, and returns ctx.Err().
//
// It is for use beside the Shutdown of the http.Server, which closes what it listens on, and waits until all answers
// are sent.
func (h *Handler) Shutdown(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed && h.active == 0 {
		close(h.idle)
	}
	h.closed = true
	h.mu.Unlock()
	defer h.end()
	select {
	case <-h.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// health says that the service is there.
func (h *Handler) health(w http.ResponseWriter, _ *http.Request) error {
	h.mu.Lock()
	waiting, sessions := h.inputs, h.sessions
	h.mu.Unlock()
	return h.write(w, http.StatusOK, struct {
		Status   string `json:"status"`
		Waiting  int    `json:"waiting"`
		Sessions int    `json:"sessions"`
	}{"ok", waiting, sessions})
}
