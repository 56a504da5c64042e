package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// small returns a small untrained model for a configuration.
func small(t testing.TB, c task.Config) *model.Model {
	t.Helper()
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 16, 1, 2
	c.Model.Block.FeedForward.Hidden = 32
	c.Data.Validation = 0
	made := must.Get(task.New(c))(t)
	t.Cleanup(func() { made.Close() })
	return made.Model
}

func named(t testing.TB, name string) *model.Model {
	t.Helper()
	c := must.Get(task.Named(name, 0))(t)
	return small(t, c)
}

// writer returns a small untrained text model.
func writer(t testing.TB) *model.Model {
	t.Helper()
	c := must.Get(task.Named("text", 16))(t)
	c.Data.File = filepath.Join(t.TempDir(), "text.txt")
	content := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 100)
	must.Do(t, os.WriteFile(c.Data.File, []byte(content), 0o666))
	return small(t, c)
}

// A gate is a model that reacts to the beginning of an input. At wait, it waits until it is opened. At panic, it
// panics. At exit, it ends its goroutine.
type gate struct {
	*model.Model
	reached chan string // inputs that begin with wait
	opened  chan struct{}
	passed  sync.Map // inputs that the model has started to answer
}

func newGate(t testing.TB) *gate {
	g := &gate{reached: make(chan string, 100), opened: make(chan struct{})}
	g.Model = small(t, task.Defaults(data.Rule{
		Name: "gate", Kind: data.KindTagging, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789", MaxLen: 12,
		Sample: func(rng *rand.Rand, _ int) string { return fmt.Sprint(rng.IntN(10000)) },
		Answer: func(source string) (string, error) { return source, nil },
		Spell: func(source, answer string) (string, string) {
			g.passed.Store(source, true)
			if strings.HasPrefix(source, "wait") {
				g.reached <- source
				<-g.opened
			}
			if strings.HasPrefix(source, "panic") {
				panic("the gate is \x1b[31mclosed")
			}
			if strings.HasPrefix(source, "exit") {
				runtime.Goexit()
			}
			return source, answer
		},
	}))
	return g
}

// start starts a service on the loopback interface.
func start(t testing.TB, m *model.Model, o Options) (*Handler, *httptest.Server) {
	t.Helper()
	h := must.Get(New(m, o))(t)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, s
}

// A reply is the answer to a request.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends a POST request with JSON.
func post(ctx context.Context, url, body string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer key") // ignored
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer got.Body.Close()
	answer, err := io.ReadAll(got.Body)
	return reply{got.StatusCode, got.Header, string(answer)}, err
}

// replied posts a request, and checks that its answer has this status and all words in its body.
func replied(t *testing.T, url, body string, status int, words ...string) reply {
	t.Helper()
	got, err := post(t.Context(), url, body)
	if err != nil || got.status != status {
		t.Errorf("%s %s: got %+v, %v, want status %d", url, body, got, err, status)
	}
	must.Have(t, got.body, words...)
	return got
}

// recorded returns the answer to a JSON request, without a connection. A header has the form "Name: value".
func recorded(h http.Handler, method, path string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", body)
	r.URL.Path = path
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		if name, value, ok := strings.Cut(header, ":"); ok {
			r.Header.Set(name, strings.TrimSpace(value))
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// predicted is the answer to POST predict.
type predicted struct {
	Answers []struct {
		Input, Error string
		Answer       *string
		Probability  *float64
		Cut          bool
	}
	Error string
}

// ask sends a request to POST predict and checks the status of its answer.
func ask(ctx context.Context, url string, status int, request any) (predicted, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return predicted{}, err
	}
	got, err := post(ctx, url+"/predict", string(body))
	if err != nil {
		return predicted{}, err
	}
	var p predicted
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != status || got.header.Get("Content-Type") != "application/json" {
		return p, fmt.Errorf("%.200s: status %d, want %d: %.300s, %v", body, got.status, status, got.body, err)
	}
	return p, nil
}

// For several kinds, the service answers inputs like Model.PredictAll, in the same order.
func TestPredict(t *testing.T) {
	for _, test := range []struct {
		task   string
		inputs []string
		beam   int
		top    int
	}{
		{"reverse", []string{"gorgonia", "x", "", "attention", "<script>", "gorgonia"}, 0, 3},
		{"brackets", []string{"(())", "([)]", "a", "\x1b[31m", strings.Repeat("(", 1000)}, 0, 5},
		{"dates", []string{"3 may 1999", "monday", "may 3rd, 2001", "\u202e", "2/3/04"}, 0, 0},
		{"dates", []string{"3 may 1999", "may 3rd, 2001"}, 3, 0},
		{"dates", []string{"3 may 1999", "may 3rd, 2001"}, 2, 4},
	} {
		t.Run(fmt.Sprint(test.task, test.beam, test.top), func(t *testing.T) {
			m := named(t, test.task)
			_, s := start(t, m, Options{})
			want := must.Get(m.PredictAll(t.Context(), test.inputs, model.PredictOptions{Beam: test.beam, Top: test.top}))(t)
			request := map[string]any{"input": test.inputs}
			if test.beam > 0 {
				request["beam"] = test.beam
			}
			if test.top > 0 {
				request["top"] = test.top
			}
			got := replied(t, s.URL+"/predict", string(must.Get(json.Marshal(request))(t)), 200)
			if want := fmt.Sprintf(`{"answers":%s}`+"\n", must.Get(text.JSON(want))(t)); got.body != want {
				t.Errorf("got %s, want %s", got.body, want)
			}
		})
	}
}

// If a text is longer than the context of the model, the answers say so: for classification, the end doesn't count.
func TestCut(t *testing.T) {
	c := must.Get(task.Named("classification", 4))(t)
	c.Data.File = filepath.Join(t.TempDir(), "rows.csv")
	rows := "text,label\n" + strings.Repeat("aaaa,a\nbbbb,b\n", 10)
	must.Do(t, os.WriteFile(c.Data.File, []byte(rows), 0o666))
	_, s := start(t, small(t, c), Options{})
	got := must.Get(ask(t.Context(), s.URL, 200, map[string]any{"input": []string{"aaaa", "aaaab", "aaab"}}))(t)
	if a := got.Answers; a[0].Cut || !a[1].Cut || a[2].Cut || *a[1].Probability != *a[0].Probability {
		t.Errorf("got %+v, want only the second to be cut, with the answer to the first", a)
	}
	_, w := start(t, writer(t), Options{})
	for _, test := range []struct{ url, body, want string }{
		{s.URL + "/attention", `{"input": "aaaa"}`, `"cut":false`},
		{s.URL + "/attention", `{"input": "aaaab"}`, `"cut":true`},
		{w.URL + "/generate", `{"prompt": "The quick brown ", "tokens": 1}`, `{"reason":"tokens"}`},
		{w.URL + "/generate", `{"prompt": "The quick brown f", "tokens": 1}`, `{"reason":"tokens","cut":true}`},
	} {
		replied(t, test.url, test.body, 200, test.want)
	}
}

// A wrong request gets the right status, and one line of JSON without control characters.
func TestRefused(t *testing.T) {
	models := map[string]*model.Model{"": named(t, "dates"), "/tagging": named(t, "reverse"), "/text": writer(t), "/classes": named(t, "brackets")}
	const predict = "POST /predict"
	for _, test := range []struct {
		name, what, body string
		header           string // of the request, as "Name: value"
		status           int
		words            string
	}{
		{"no endpoint", "GET /predictions\x1b[31m", "", "", 404, `a model of kind seq2seq has no endpoint "/predictions\\x1b[31m": the endpoints are GET /, GET /health, GET /openapi.json, POST /attention, POST /predict`},
		{"generate of seq2seq", "POST /generate", `{"prompt": "a"}`, "", 404, `a model of kind seq2seq has no endpoint "/generate"`},
		{"predict of text", "POST /text/predict", `{"input": ["a"]}`, "", 404, `a model of kind text has no endpoint "/predict"`},
		{"method of the page", "POST /", "{}", "", 405, "must be GET, HEAD"},
		{"method", "GET /predict", "", "", 405, "the method for /predict must be POST"},
		{"method of health", "DELETE /health", "", "", 405, "must be GET, HEAD"},
		{"no type", predict, `{"input": ["a"]}`, "Content-Type:", 415, "must be application/json"},
		{"a form", predict, "inputs=a", "Content-Type: application/x-www-form-urlencoded", 415, "application/json"},
		{"another charset", predict, `{"input": ["a"]}`, "Content-Type: application/json; charset=latin1", 415, "latin1"},
		{"gzip", predict, "\x1f\x8b", "Content-Encoding: gzip", 415, "no Content-Encoding"},
		{"another site", predict, `{"input": ["a"]}`, "Origin: https://other.example", 403, "another site"},
		{"another site, by Sec-Fetch-Site", predict, `{"input": ["a"]}`, "Sec-Fetch-Site: cross-site", 403, "another site"},
		{"nothing", predict, "", "", 400, "must be JSON"},
		{"not UTF-8", predict, "{\"input\": [\"\xff\"]}", "", 400, "JSON must be UTF-8"},
		{"a list", predict, `["a"]`, "", 400, "must be an object, got array"},
		{"null", predict, `null`, "", 400, "input must be a text, or a list of 1 to 256 texts"},
		{"another key", predict, `{"input": ["a"], "temp\u001b": 1}`, "", 400, `unknown key "temp\\x1b": the keys are beam, input, top`},
		{"no inputs", predict, `{}`, "", 400, "input must be a text, or a list of 1 to 256 texts, got 0"},
		{"no input for attention", "POST /attention", `{}`, "", 400, "input must be a text"},
		{"null for attention", "POST /attention", `null`, "", 400, "input must be a text"},
		{"attention of null", "POST /attention", `{"input": null}`, "", 400, "input must be a text"},
		{"a number", predict, `{"input": 1}`, "", 400, "input must be a text, or a list of 1 to 256 texts, got number"},
		{"no list", predict, `{"input": null}`, "", 400, "input must be a text, or a list of 1 to 256 texts, got 0"},
		{"numbers", predict, `{"input": ["a", 1]}`, "", 400, "input must be a text, or a list of 1 to 256 texts, got number"},
		{"null among them", predict, `{"input": ["a", null]}`, "", 400, "got null among them"},
		{"too many", predict, `{"input": ["a"` + strings.Repeat(`,"a"`, 256) + `]}`, "", 400, "got 257"},
		{"a beam above the maximum", predict, `{"input": ["a"], "beam": 17}`, "", 400, "beam must be a whole number from 1 to 16, got 17"},
		{"a beam of 0", predict, `{"input": ["a"], "beam": 0}`, "", 400, "beam must be"},
		{"too large a number", predict, `{"input": ["a"], "beam": 1e999999}`, "", 400, "beam must be"},
		{"the old name", predict, `{"inputs": ["a"]}`, "", 400, `unknown key "inputs": the keys are beam, input, top; did you mean input?`},
		{"a negative top", predict, `{"input": "a", "top": -1}`, "", 400, "top must be a whole number from 1 to 16, or 0 for none, got -1"},
		{"a top above the maximum", predict, `{"input": "a", "top": 17}`, "", 400, "top must be a whole number from 1 to 16, or 0 for none, got 17"},
		{"a top for tagging above the maximum", "POST /tagging/predict", `{"input": "a", "top": 17}`, "", 400, "top must be a whole number from 1 to 16"},
		{"a top above the maximum for classes", "POST /classes/predict", `{"input": "a", "top": 4097}`, "", 400, "top must be a whole number from 1 to 4096"},
		{"too many alternatives in all", "POST /classes/predict", `{"input": ["(", ")"], "top": 2049}`, "", 400, "top must be at most 2048 for 2 inputs, got 2049"},
		{"oversize", predict, `{"input": ["` + strings.Repeat("a", 1<<20) + `"]}`, "", 413, "at most 1048576 bytes"},
		{"no prompt", "POST /text/generate", `{"tokens": 3}`, "", 400, "prompt must be the text to continue, got none"},
		{"a prompt with an unknown symbol", "POST /text/generate", `{"prompt": "文"}`, "", 422, "文"},
		{"too many tokens", "POST /text/generate", `{"prompt": "a", "tokens": 1025}`, "", 400, "tokens must be a whole number from 1 to 1024, got 1025"},
		{"no tokens", "POST /text/generate", `{"prompt": "a", "tokens": 0}`, "", 400, "tokens must be"},
		{"a negative temperature", "POST /text/generate", `{"prompt": "a", "temperature": -1}`, "", 400, "temperature must be finite and at least 0, got -1"},
		{"an infinite temperature", "POST /text/generate", `{"prompt": "a", "temperature": 1e999}`, "", 400, "temperature must be"},
		{"top_k as a text", "POST /text/generate", `{"prompt": "a", "top_k": "9"}`, "", 400, "top_k must be a whole number of at least 1, or 0 for all, got string"},
		{"top_k with temperature 0", "POST /text/generate", `{"prompt": "a", "temperature": 0, "top_k": 3}`, "", 400, "top_k needs a temperature above 0, got 3: leave out top_k"},
		{"seed", "POST /text/generate", `{"prompt": "a", "seed": -1}`, "", 400, "seed must be a whole number of at most 64 bits, not negative, got number -1"},
		{"attention of an unknown layer", "POST /attention", `{"input": "3 may 1999", "layer": "<script>"}`, "", 422, `no layer's name contains`},
		{"attention of a list", "POST /attention", `{"input": ["a"]}`, "", 400, "input must be a text, got array"},
		{"a beam for tagging", "POST /tagging/predict", `{"input": ["a"], "beam": 2}`, "", 400, `unknown key "beam"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			method, path, _ := strings.Cut(test.what, " ")
			prefix := regexp.MustCompile("^(/tagging|/text|/classes)?").FindString(path)
			path = path[len(prefix):]
			h := must.Get(New(models[prefix], Options{}))(t)
			w := recorded(h, method, path, strings.NewReader(test.body), test.header)
			body := w.Body.String()
			var got struct{ Error string }
			if err := json.Unmarshal([]byte(body), &got); err != nil || strings.Count(body, "\n") != 1 || strings.ContainsAny(body, "\x1b\x7f") || len(body) > 1000 {
				t.Errorf("got %q, %v, want one line of JSON", body, err)
			}
			if quoted, _ := json.Marshal(got.Error); w.Code != test.status || !strings.Contains(string(quoted), strings.ReplaceAll(test.words, `"`, `\"`)) {
				t.Errorf("got status %d and %s; want %d and %s", w.Code, quoted, test.status, test.words)
			}
			if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow != "") {
				t.Errorf("got the header Allow %q with status %d", allow, w.Code)
			}
		})
	}
}

// The function take removes the first job and the jobs that can be answered with it. The rest keep their order.
func TestTake(t *testing.T) {
	h := &Handler{options: Options{Batch: 5}, inputs: 99}
	for i, beam := range []int{1, 1, 2, 1, 1, 2, 1} {
		j := job{options: model.PredictOptions{Beam: beam}}
		j.inputs = make([]string, []int{2, 2, 1, 2, 1, 90, 1}[i])
		h.waiting = append(h.waiting, &j)
	}
	jobs := append([]*job(nil), h.waiting...)
	for _, want := range []string{"[0 1 4]", "[2]", "[3 6]", "[5]", "[]"} {
		var got []int
		for _, taken := range h.take() {
			for i, j := range jobs {
				if j == taken {
					got = append(got, i)
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("got jobs %v, want %s", got, want)
		}
	}
	if h.inputs != 0 || h.working {
		t.Errorf("got %d waiting inputs and working %t, want 0 and false", h.inputs, h.working)
	}
}

// While the model is busy, requests wait until the queue is full, and others are refused. If a client disconnects, its
// request leaves the queue and the model never computes it. All other waiting requests are answered.
func TestFullQueue(t *testing.T) {
	c, g, h, s := busy(t, Options{MaxInputs: 2, Queue: 4}, 200)
	defer c.Wait()
	c.ask(s.URL, 200, "a", "b")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := ask(ctx, s.URL, 200, asked("left", "too"))
		left <- err
	}()
	waits(t, h, 4)
	if got := replied(t, s.URL+"/predict", `{"input": ["c"]}`, 503, "already waiting (4)"); got.header.Get("Retry-After") == "" {
		t.Errorf("got the header %v, want Retry-After in it", got.header)
	}
	replied(t, s.URL+"/predict", `{"input": []}`, 400) // a wrong request while the queue is full
	leave()
	if err := <-left; err == nil {
		t.Error("a request whose client disconnected has an answer")
	}
	waits(t, h, 2)
	c.ask(s.URL, 200, "d")
	waits(t, h, 3)
	close(g.opened)
	c.Wait()
	if _, begun := g.passed.Load("left"); begun {
		t.Error("the model has started to answer an input that nobody waits for")
	}
}

// asked returns a request for answers to texts.
func asked(texts ...string) map[string]any { return map[string]any{"input": texts} }

// clients send requests in the background of a test.
type clients struct {
	*testing.T
	sync.WaitGroup
}

// do calls f in a new goroutine. An error fails the test. Wait waits for all of these goroutines.
func (c *clients) do(f func() error) {
	c.Go(func() {
		if err := f(); err != nil {
			c.Error(err)
		}
	})
}

// ask requests answers to texts in the background. The answer must have this status.
func (c *clients) ask(url string, status int, texts ...string) {
	c.do(func() error {
		p, err := ask(c.Context(), url, status, asked(texts...))
		for _, a := range p.Answers {
			if a.Answer == nil {
				return fmt.Errorf("got %+v, want an answer", a)
			}
		}
		return err
	})
}

// busy starts a service whose model is a gate, and keeps the model busy with a request that will get this status. Call
// Wait at the end of the test.
func busy(t *testing.T, o Options, status int) (*clients, *gate, *Handler, *httptest.Server) {
	t.Helper()
	g := newGate(t)
	h, s := start(t, g.Model, o)
	c := &clients{T: t}
	c.ask(s.URL, status, "wait")
	<-g.reached
	return c, g, h, s
}

// waits waits until the number of queued inputs is want.
func waits(t *testing.T, h *Handler, want int) {
	t.Helper()
	until(t, func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.inputs != want {
			return fmt.Sprintf("%d inputs wait, want %d", h.inputs, want)
		}
		return ""
	})
}

// until calls f until it returns "". After 30 seconds, it fails the test with the last string.
func until(t *testing.T, f func() string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		missing := f()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatal(missing)
		}
	}
}

// Only mostLarge large requests are accepted at the same time. Meanwhile, small requests are still answered.
func TestLargeRequests(t *testing.T) {
	h, _ := start(t, named(t, "copy"), Options{})
	ask := func(body io.Reader, want int) {
		t.Helper()
		if w := recorded(h, "POST", "/predict", body); w.Code != want {
			t.Errorf("got status %d and %s, want %d", w.Code, w.Body, want)
		}
	}
	const small = `{"input": ["abc"]}`
	large := func() io.Reader { return strings.NewReader(small + strings.Repeat(" ", largeBody)) }
	var slow []*io.PipeWriter
	var clients sync.WaitGroup
	for range mostLarge {
		body, rest := io.Pipe()
		clients.Go(func() { ask(body, 200) })
		io.WriteString(rest, small) // returns when the service has read it
		slow = append(slow, rest)
	}
	ask(large(), 503)
	ask(strings.NewReader(small), 200)
	for _, rest := range slow {
		rest.Close()
	}
	clients.Wait()
	ask(large(), 200)
}

// If the model panics, only the request that caused the panic gets an error. Other requests in the same batch are
// answered.
func TestPanic(t *testing.T) {
	var logged strings.Builder
	c, g, h, s := busy(t, Options{ErrorLog: log.New(&logged, "", 0)}, 200)
	defer c.Wait()
	c.ask(s.URL, 200, "a")
	c.ask(s.URL, 500, "panic")
	c.ask(s.URL, 500, "exit")
	c.ask(s.URL, 200, "b")
	waits(t, h, 4)
	close(g.opened)
	c.Wait()
	if !strings.Contains(logged.String(), "the gate is") || !strings.Contains(logged.String(), "serve_test.go") || !strings.Contains(logged.String(), "runtime.Goexit") {
		t.Errorf("got the log %q, want the panic with its stack, and runtime.Goexit", logged.String())
	}
}

// A request that takes longer than Options.Time gets status 504.
func TestTime(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	h, _ := start(t, g.Model, Options{Time: 100 * time.Millisecond})
	defer close(g.opened)
	// This request needs no connection, so it can't get the status of a request that arrives too slowly.
	if got := recorded(h, "POST", "/predict", strings.NewReader(`{"input": "wait"}`)); got.Code != 504 || !strings.Contains(got.Body.String(), "too long") {
		t.Errorf("got status %d and %s, want 504", got.Code, got.Body)
	}
}

// pipes is a listener whose connections have no buffer: a write waits until the other side reads.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// If a client doesn't read its answer, the service closes the connection.
func TestSlowReader(t *testing.T) {
	h := must.Get(New(named(t, "reverse"), Options{Time: 100 * time.Millisecond}))(t)
	closed := make(chan struct{})
	s := &http.Server{Handler: h, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}}
	l := pipes{make(chan net.Conn)}
	go s.Serve(l)
	defer s.Close()
	client, server := net.Pipe()
	l.conns <- server
	close(l.conns)
	fmt.Fprint(client, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the connection stays open, although the client doesn't read")
	}
}

// Shutdown waits until accepted requests are answered, and refuses new ones.
func TestShutdown(t *testing.T) {
	c, g, h, s := busy(t, Options{}, 200)
	defer c.Wait()
	c.ask(s.URL, 200, "a")
	waits(t, h, 1)
	ended := make(chan error, 1)
	go func() { ended <- h.Shutdown(t.Context()) }()
	until(t, func() string {
		if got, err := http.Get(s.URL + "/health"); err != nil || got.StatusCode != 503 {
			return fmt.Sprintf("GET /health: got %v, %v, want status 503", got, err)
		}
		return ""
	})
	if p, err := ask(t.Context(), s.URL, 503, asked("b")); err != nil || !strings.Contains(p.Error, "about to end") {
		t.Errorf("got %+v, %v", p, err)
	}
	select {
	case err := <-ended:
		t.Errorf("Shutdown returned %v before all requests were answered", err)
	default:
	}
	close(g.opened)
	must.Do(t, <-ended)
	must.Do(t, h.Shutdown(t.Context())) // again
}

// If the context of Shutdown is done, accepted requests end with an error.
func TestShutdownAtOnce(t *testing.T) {
	c, g, h, s := busy(t, Options{}, 503)
	defer c.Wait()
	c.ask(s.URL, 503, "a")
	waits(t, h, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(ctx); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	h.requests.Wait()
	close(g.opened)
}

func TestNew(t *testing.T) {
	m := named(t, "reverse")
	for _, test := range []struct {
		model *model.Model
		o     Options
		want  string
	}{
		{&model.Model{}, Options{}, "the model is empty"},
		{m, Options{Batch: -1}, "Batch must be at least 1, or 0 for 32, got -1"},
		{m, Options{Time: -1}, "the Time must be above 0, or 0 for 1m0s"},
		{m, Options{Threshold: model.Threshold{Label: "yes", P: 0.5}}, "threshold is for models with two labels"},
		{m, Options{MaxInputs: 10, Queue: 9}, "at least MaxInputs, which is 10, got 9"},
	} {
		must.Refuse(New(test.model, test.o))(t, test.want)
	}
	if h, err := New(m, Options{MaxInputs: 5000}); err != nil || h.options.Queue != 5000 {
		t.Errorf("the default Queue: got %v, %v, want 5000", h, err)
	}
}

// A service answers with its Threshold.
func TestThreshold(t *testing.T) {
	c := must.Get(task.Named("brackets", 0))(t)
	b := must.Get(task.New(c))(t)
	for _, label := range c.Task.Classes {
		_, s := start(t, b.Model, Options{Threshold: model.Threshold{Label: label}})
		r := replied(t, s.URL+"/predict", `{"input": "()", "top": 1}`, 200)
		if want := fmt.Sprintf(`"answer":%q`, label); strings.Count(r.body, want) != 2 {
			t.Errorf("got %+v, want %s as the answer and as the first alternative", r, want)
		}
	}
}

// If tags mark entities, answers have spans, and the description says so.
func TestSpans(t *testing.T) {
	for rows, marked := range map[string]bool{"ann sees rome\tB-PER O B-LOC\n": true, "ann sees rome\tNOUN VERB NOUN\n": false} {
		c := must.Get(task.Named("tagging", 0))(t)
		c.Data.File = filepath.Join(t.TempDir(), "rows.tsv")
		must.Do(t, os.WriteFile(c.Data.File, []byte(strings.Repeat(rows, 20)), 0o666))
		h, s := start(t, small(t, c), Options{})
		if got := replied(t, s.URL+"/predict", `{"input": " rome  sees ann"}`, 200); strings.Contains(got.body, `"spans":[`) != marked {
			t.Errorf("got %+v, want spans: %t", got, marked)
		}
		description := recorded(h, "GET", "/openapi.json", nil).Body.String()
		if strings.Contains(description, `"spans":{`) != marked {
			t.Errorf("want spans in the description: %t, got %s", marked, description)
		}
	}
}

// The description lists all endpoints. Requests that follow its schemas are accepted.
func TestDescription(t *testing.T) {
	for name, m := range map[string]*model.Model{"dates": named(t, "dates"), "reverse": named(t, "reverse"), "text": writer(t)} {
		h := must.Get(New(m, Options{MaxInputs: 7}))(t)
		w := recorded(h, "GET", "/openapi.json", nil)
		var d struct {
			OpenAPI string
			Paths   map[string]map[string]struct {
				Summary     string
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Properties map[string]struct {
								Type     any
								MaxItems int
							}
							Required []string
						}
					}
				}
				Responses map[string]any
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 || d.OpenAPI != "3.1.0" {
			t.Fatalf("got %d, %v: %s", w.Code, err, w.Body)
		}
		if len(d.Paths) != len(h.endpoints) {
			t.Errorf("%s: got %d described paths, want %d", name, len(d.Paths), len(h.endpoints))
		}
		for path, e := range h.endpoints {
			operation := d.Paths[path][strings.ToLower(e.method)]
			if operation.Summary == "" || len(operation.Responses) < 2 {
				t.Errorf("%s: %s %s: got %+v, want a summary and two responses", name, e.method, path, operation)
			}
			if e.method != http.MethodPost {
				continue
			}
			example := map[string]any{}
			for key, p := range operation.RequestBody.Content["application/json"].Schema.Properties {
				if key == "layer" { // an ordinary text is in no layer's name
					continue
				}
				example[key] = map[string]any{"[string array]": []string{"a"}, "integer": 1, "number": 0.5, "boolean": true, "string": map[string]string{"dates": "3 may 1999", "reverse": "a", "text": "The"}[name]}[fmt.Sprint(p.Type)]
			}
			body, _ := json.Marshal(example)
			if w := recorded(h, e.method, path, bytes.NewReader(body)); w.Code != 200 {
				t.Errorf("%s: %s with %s: got status %d and %s, want 200", name, path, body, w.Code, w.Body)
			}
		}
		if name == "text" {
			continue
		}
		predict := d.Paths["/predict"]["post"].RequestBody.Content["application/json"].Schema
		if _, beam := predict.Properties["beam"]; predict.Properties["input"].MaxItems != 7 || beam != (name == "dates") || fmt.Sprint(predict.Required) != "[input]" {
			t.Errorf("%s: got the schema %+v for predict", name, predict)
		}
	}
}

// A model whose numbers overflow has no answer.
func TestNoAnswer(t *testing.T) {
	m, text := named(t, "copy"), writer(t)
	for _, m := range []*model.Model{m, text} {
		all := m.Params.All()
		for _, p := range all[len(all)-2:] {
			for i := range p.Value.Float32s() {
				p.Value.Float32s()[i] = 3e38 // finite, but sums aren't
			}
		}
	}
	_, s := start(t, m, Options{})
	_, written := start(t, text, Options{})
	_, completed := startOpenAI(t, text, Options{})
	for url, body := range map[string]string{
		s.URL + "/predict":                `{"input": "abc"}`,
		s.URL + "/attention":              `{"input": "abc"}`,
		written.URL + "/attention":        `{"input": "The"}`,
		written.URL + "/generate":         `{"prompt": "The", "tokens": 3}`,
		completed.URL + "/v1/completions": `{"prompt": "The"}`,
	} {
		replied(t, url, body, 500, "weights are damaged")
	}
}

// A published model for tags answers with entities, by the rule that a request names.
func TestEntities(t *testing.T) {
	m := must.Get(model.Open("../../model/testdata/entities/pieces"))(t)
	h, s := start(t, m, Options{})
	const input = "Müller-Lüdenscheidt lives in Oslo"
	for _, rule := range append(m.Config.Describe().Entities, "") {
		want := must.Get(m.PredictAll(t.Context(), []string{input}, model.PredictOptions{Entities: rule}))(t)
		var got struct {
			Answers []struct{ Spans []model.Span }
		}
		r := replied(t, s.URL+"/predict", fmt.Sprintf(`{"input": %q, "entities": %q}`, input, rule), 200)
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Answers) != 1 || !slices.Equal(got.Answers[0].Spans, want[0].Spans) || want[0].Spans[0].Score == 0 {
			t.Errorf("%q: got %s, %v, want %+v", rule, r.body, err, want[0].Spans)
		}
	}
	replied(t, s.URL+"/predict", `{"input": "a", "entities": "frist"}`, 400, "entities must be one of words, first")
	replied(t, s.URL+"/predict", `{"input": "a", "top": 1}`, 400, "the keys are entities, input")
	must.Lack(t, recorded(h, "GET", "/", nil).Body.String(), "Likeliest answers") // which this model doesn't have
}
