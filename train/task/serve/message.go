package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/webpage"
)

// A statusError is an error with the HTTP status of its answer.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func failf(status int, format string, args ...any) error {
	return &statusError{status, fmt.Errorf(format, args...)}
}

// Reasons why a request's context ends, other than a client that disconnects.
var (
	errTime   = &statusError{http.StatusGatewayTimeout, errors.New("the request took too long: ask for less at a time, or try again later")}
	errEnding = &statusError{http.StatusServiceUnavailable, errors.New("the service is about to end: try again when it has been restarted")}
)

// fail answers a request with err. But if err isn't a statusError and the request's context has ended, it answers with
// the reason why the context has ended.
func (h *Handler) fail(w http.ResponseWriter, ctx context.Context, err error, failed func(http.Header, *statusError) any) {
	e := &statusError{http.StatusInternalServerError, err}
	if !errors.As(err, &e) && ctx.Err() != nil && !errors.As(context.Cause(ctx), &e) {
		return // the client has disconnected
	}
	if e.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, e.status, failed(w.Header(), e))
}

// failed returns the answer to a request of the Handler's own endpoints that has failed.
func failed(_ http.Header, e *statusError) any {
	return struct {
		Error string `json:"error"`
	}{text.OneLine(e.err)}
}

// reply answers a request with JSON. The client has Options.Time to receive the answer. If answer can't be JSON, reply
// returns an error, and writes nothing.
func (h *Handler) reply(w http.ResponseWriter, answer any) error {
	return h.write(w, http.StatusOK, answer)
}

func (h *Handler) write(w http.ResponseWriter, status int, answer any) error {
	body, err := text.JSON(answer)
	if err != nil {
		return err
	}
	h.deadline(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // if this fails, the client has disconnected
	return nil
}

// deadline limits the time for writing to the client from now on, if w is a network connection.
func (h *Handler) deadline(w http.ResponseWriter) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.options.Time))
}

// event sends a server-sent event, without a name if it is "", with JSON as data.
func (h *Handler) event(w http.ResponseWriter, name string, data any) error {
	line, err := text.JSON(data)
	if err != nil {
		return err
	}
	return h.eventLine(w, name, string(line))
}

// eventLine sends an event whose data is a line, and flushes the connection.
func (h *Handler) eventLine(w http.ResponseWriter, name, data string) error {
	w.Header().Set("Content-Type", "text/event-stream") // before the first event
	if name != "" {
		name = "event: " + name + "\n"
	}
	h.deadline(w)
	_, err := fmt.Fprintf(w, "%sdata: %s\n\n", name, data)
	if err == nil {
		http.NewResponseController(w).Flush()
	}
	return err
}

// read reads a request's body, and decodes it into a pointer to a struct. The argument wants describes the valid values
// of each key.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, into any, wants map[string]string) error {
	body, err := h.readBody(w, r)
	if err != nil {
		return err
	}
	if err := parse(body, into, wants); err != nil {
		return &statusError{http.StatusBadRequest, err}
	}
	return nil
}

// readBody reads a request's body, which must be of the type application/json, within the limits. Its errors are
// *statusErrors. The body may be any bytes.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset, ok := parameters["charset"]; err != nil || kind != "application/json" || ok && !strings.EqualFold(charset, "utf-8") {
		return nil, failf(http.StatusUnsupportedMediaType, "the Content-Type must be application/json, got %.100q", r.Header.Get("Content-Type"))
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" {
		return nil, failf(http.StatusUnsupportedMediaType, "the body must have no Content-Encoding, got %.100q", coding)
	}
	tooLarge := failf(http.StatusRequestEntityTooLarge, "a request may have at most %d bytes: ask for less at a time", h.options.MaxBody)
	if r.ContentLength > int64(h.options.MaxBody) {
		return nil, tooLarge
	}
	webpage.ReadBody(w, h.options.Time)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.options.MaxBody)))
	if err != nil {
		webpage.IgnoreBody(w, r) // the rest of it
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, failf(http.StatusRequestTimeout, "the request must arrive within %v", h.options.Time)
	case err != nil:
		return nil, failf(http.StatusBadRequest, "the request didn't arrive completely: %v", err)
	}
	return body, nil
}

// parse decodes JSON into a pointer to a struct. The JSON must be one object that has only keys of wants.
func parse(body []byte, into any, wants map[string]string) error {
	unknown, last := false, ""
	err := jsonkeys.Check(body, func(key string) bool {
		unknown, last = wants[key] == "", key
		return !unknown
	})
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(into)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		wrong.Field = wrong.Field[strings.LastIndex(wrong.Field, ".")+1:] // without the name of an embedded struct
	}
	switch {
	case unknown:
		keys := slices.Sorted(maps.Keys(wants))
		return fmt.Errorf("%w: the keys are %s%s", err, strings.Join(keys, ", "), text.DidYouMean(last, keys))
	case errors.As(err, new(*json.SyntaxError)):
		return fmt.Errorf("the body must be JSON: %w", err)
	case wrong != nil && wants[wrong.Field] != "":
		return fmt.Errorf("%s must be %s, got %.100s", wrong.Field, wants[wrong.Field], wrong.Value)
	case wrong != nil:
		return fmt.Errorf("the body must be an object, got %.100s", wrong.Value)
	}
	return err
}
