package serve

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/heed-go/heed/internal/webpage"
)

// An endpoint answers the requests for a path that have this method. GET includes HEAD. The function serve must write
// nothing before it returns an error. It reads requests with readBody. It uses the model inside inSession or queue, and
// answers with reply or event. The context of the request ends after Options.Time, and when Shutdown ends all requests
// at once.
type endpoint struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) error
}

// answerRequest answers a request to one of the endpoints, by their paths. A path that ends in a slash, except "/",
// stands for all paths below it. If the request fails, the JSON of the result of failed is the answer. The function
// failed may set headers of the answer. The text of the error that it gets may have several lines.
func (h *Handler) answerRequest(w http.ResponseWriter, r *http.Request, endpoints map[string]endpoint, failed func(http.Header, *statusError) any) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	webpage.IgnoreBody(w, r) // until readBody reads it
	ctx, cancel := context.WithTimeoutCause(r.Context(), h.options.Time, errTime)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(h.ending, func() { stop(errEnding) })()
	if err := h.serve(w, r.WithContext(ctx), endpoints); err != nil {
		h.fail(w, ctx, err, failed)
	}
}

// serve answers a request, or returns an error if it can't.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, endpoints map[string]endpoint) error {
	if !h.enter() {
		return errEnding
	}
	defer h.requests.Done()
	e, ok := endpointFor(r.URL.Path, endpoints)
	if !ok {
		return failf(http.StatusNotFound, "a model of kind %s has no endpoint %.100q: the endpoints are %s", h.model.Config.Task.Kind, r.URL.Path, listed(endpoints))
	}
	if r.Method != e.method && !(r.Method == http.MethodHead && e.method == http.MethodGet) {
		w.Header().Set("Allow", allowed(e.method))
		return failf(http.StatusMethodNotAllowed, "the method for %s must be %s, got %.20q", r.URL.Path, allowed(e.method), r.Method)
	}
	if err := h.origins.Check(r); err != nil {
		return failf(http.StatusForbidden, "%v: a page of another site can't use this service", err)
	}
	if r.ContentLength > largeBody || r.ContentLength < 0 {
		if !h.large.take() {
			return failf(http.StatusServiceUnavailable, "%d requests with more than %d bytes, or with unknown length, are already in progress: try again later", mostLarge, largeBody)
		}
		defer h.large.give()
	}
	return e.serve(w, r)
}

// places limit how many requests do something at the same time. The channel has one element for each of them.
type places chan struct{}

// take takes a place, and reports whether one was free.
func (p places) take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

// give gives a place back.
func (p places) give() { <-p }

// endpointFor returns the endpoint for a path.
func endpointFor(path string, endpoints map[string]endpoint) (e endpoint, ok bool) {
	if e, ok = endpoints[path]; ok {
		return e, true
	}
	for start, e := range endpoints {
		if len(start) > 1 && strings.HasSuffix(start, "/") && strings.HasPrefix(path, start) {
			return e, true
		}
	}
	return e, false
}

func allowed(method string) string {
	if method == http.MethodGet {
		return "GET, HEAD"
	}
	return method
}

// listed returns a list of the endpoints, for an error.
func listed(endpoints map[string]endpoint) string {
	var list []string
	for path, e := range endpoints {
		list = append(list, e.method+" "+path)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// enter counts a new request. It returns false if the Handler is closed.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.requests.Add(1)
	}
	return !h.closed
}
