package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/train/task"
)

// small makes a model of a task with new weights, which answers something.
func small(t testing.TB, c task.Config) *task.Model {
	t.Helper()
	c.Model.Dim, c.Model.Layers, c.Model.Block.Attention.Heads = 16, 1, 2
	c.Model.Block.FeedForward.Hidden = 32
	c.Data.Validation = 0
	made, err := task.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	return made.Model
}

func named(t testing.TB, name string) *task.Model {
	t.Helper()
	c, err := task.Named(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return small(t, c)
}

// writer makes a model of text.
func writer(t testing.TB) *task.Model {
	t.Helper()
	c, err := task.Named("text", 16)
	if err != nil {
		t.Fatal(err)
	}
	c.Data.File = filepath.Join(t.TempDir(), "text.txt")
	content := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 100)
	if err := os.WriteFile(c.Data.File, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return small(t, c)
}

// A gate is a model that stops at inputs that begin with wait, until it is opened, panics at those that begin with
// panic, and ends its goroutine at those that begin with exit.
type gate struct {
	*task.Model
	reached chan string // what has come to the gate
	opened  chan struct{}
	passed  sync.Map // inputs that the model has begun with
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

// start starts a service on the loopback.
func start(t testing.TB, m *task.Model, o Options) (*Handler, *httptest.Server) {
	t.Helper()
	h, err := New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, s
}

// A reply is what comes back.
type reply struct {
	status int
	header http.Header
	body   string
}

// post sends JSON.
func post(ctx context.Context, url, body string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	return do(r)
}

func do(r *http.Request) (reply, error) {
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return reply{got.StatusCode, got.Header, string(body)}, err
}

// predicted is what POST predict answers.
type predicted struct {
	Answers []struct {
		Answer  *string
		LogProb *float64 `json:"log_prob"`
		Unknown bool
		Error   string
	}
	Error string
}

// ask asks for answers, and checks the status.
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

// Answers are those of Model.Predict, in the order of the inputs, of every kind that has some.
func TestPredict(t *testing.T) {
	for _, test := range []struct {
		task   string
		inputs []string
		beam   int
	}{
		{"reverse", []string{"gorgonia", "x", "", "attention", "<script>", "gorgonia"}, 0},
		{"brackets", []string{"(())", "([)]", "a", "\x1b[31m", strings.Repeat("(", 1000)}, 0},
		{"dates", []string{"3 may 1999", "monday", "may 3rd, 2001", "\u202e", "2/3/04"}, 0},
		{"dates", []string{"3 may 1999", "may 3rd, 2001"}, 3},
	} {
		t.Run(fmt.Sprint(test.task, test.beam), func(t *testing.T) {
			m := named(t, test.task)
			_, s := start(t, m, Options{})
			want, err := m.PredictAll(t.Context(), test.inputs, task.PredictOptions{Beam: test.beam})
			if err != nil {
				t.Fatal(err)
			}
			request := map[string]any{"inputs": test.inputs, "scores": true}
			if test.beam > 0 {
				request["beam"] = test.beam
			}
			got, err := ask(t.Context(), s.URL, 200, request)
			if err != nil || len(got.Answers) != len(want) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for i, a := range got.Answers {
				switch w := want[i]; {
				case w.Err != nil:
					if a.Answer != nil || a.LogProb != nil || a.Error == "" || strings.Contains(w.Err.Error(), a.Error) == false {
						t.Errorf("%q: got %+v, want the error %v", test.inputs[i], a, w.Err)
					}
				case a.Answer == nil || *a.Answer != w.Text || !(math.Abs(*a.LogProb-w.LogProb) < -1e-4*w.LogProb) || a.Unknown != w.Unknown || a.Error != "":
					t.Errorf("%q: got %+v, want %+v", test.inputs[i], a, w)
				}
			}
			delete(request, "scores")
			if got, err = ask(t.Context(), s.URL, 200, request); err != nil || got.Answers[0].LogProb != nil {
				t.Errorf("without scores: got %+v, %v", got, err)
			}
		})
	}
}

// What isn't a request gets the status that says why, and one line of JSON that a terminal can show.
func TestRefused(t *testing.T) {
	models := map[string]*task.Model{"": named(t, "dates"), "/tags": named(t, "reverse"), "/text": writer(t)}
	const predict = "POST /predict"
	for _, test := range []struct {
		name, what, body string
		header           string // of the request, as "Name: value"
		status           int
		words            string
	}{
		{"no endpoint", "GET /predictions\x1b[31m", "", "", 404, `there is no "/predictions\\x1b[31m" for a model of seq2seq: there is GET /, GET /health, GET /openapi.json, POST /attention, POST /predict`},
		{"not of pairs", "POST /generate", `{"prompt": "a"}`, "", 404, `there is no "/generate" for a model of seq2seq`},
		{"not of text", "POST /text/predict", `{"inputs": ["a"]}`, "", 404, `there is no "/predict" for a model of text`},
		{"method of the page", "POST /", "{}", "", 405, "by GET, HEAD"},
		{"method", "GET /predict", "", "", 405, "/predict is asked by POST"},
		{"method of health", "DELETE /health", "", "", 405, "by GET, HEAD"},
		{"no type", predict, `{"inputs": ["a"]}`, "Content-Type:", 415, "must be application/json"},
		{"a form", predict, "inputs=a", "Content-Type: application/x-www-form-urlencoded", 415, "application/json"},
		{"another charset", predict, `{"inputs": ["a"]}`, "Content-Type: application/json; charset=latin1", 415, "latin1"},
		{"gzip", predict, "\x1f\x8b", "Content-Encoding: gzip", 415, "without Content-Encoding"},
		{"another site", predict, `{"inputs": ["a"]}`, "Origin: https://other.example", 403, "another site"},
		{"another site, as fetch has it", predict, `{"inputs": ["a"]}`, "Sec-Fetch-Site: cross-site", 403, "another site"},
		{"nothing", predict, "", "", 400, "must be JSON"},
		{"not JSON", predict, `{"inputs": ["a"]`, "", 400, "must be JSON"},
		{"two values", predict, `{"inputs": ["a"]} {}`, "", 400, "must be JSON"},
		{"deep", predict, strings.Repeat("[", 20000), "", 400, "must be JSON"},
		{"not UTF-8", predict, "{\"inputs\": [\"\xff\"]}", "", 400, "UTF-8"},
		{"a list", predict, `["a"]`, "", 400, "must be an object, got array"},
		{"null", predict, `null`, "", 400, "inputs must be a list of 1 to 256 texts"},
		{"another key", predict, `{"inputs": ["a"], "temp\u001b": 1}`, "", 400, `unknown key "temp\\x1b"`},
		{"another case", predict, `{"Inputs": ["a"]}`, "", 400, `unknown key "Inputs"`},
		{"twice", predict, `{"inputs": ["a"], "inputs": ["b"]}`, "", 400, `"inputs" is given twice`},
		{"no inputs", predict, `{}`, "", 400, "inputs must be a list of 1 to 256 texts, got 0"},
		{"one input", predict, `{"inputs": "a"}`, "", 400, "inputs must be a list of 1 to 256 texts, got string"},
		{"numbers", predict, `{"inputs": ["a", 1]}`, "", 400, "inputs must be a list of 1 to 256 texts, got number"},
		{"null among them", predict, `{"inputs": ["a", null]}`, "", 400, "got null among them"},
		{"too many", predict, `{"inputs": ["a"` + strings.Repeat(`,"a"`, 256) + `]}`, "", 400, "got 257"},
		{"too wide", predict, `{"inputs": ["a"], "beam": 17}`, "", 400, "beam must be a whole number from 1 to 16, got 17"},
		{"no width", predict, `{"inputs": ["a"], "beam": 0}`, "", 400, "beam must be"},
		{"half a width", predict, `{"inputs": ["a"], "beam": 1.5}`, "", 400, "beam must be a whole number from 1 to 16, got number 1.5"},
		{"too large a number", predict, `{"inputs": ["a"], "beam": 1e999999}`, "", 400, "beam must be"},
		{"scores", predict, `{"inputs": ["a"], "scores": "yes"}`, "", 400, "scores must be true or false, got string"},
		{"oversize", predict, `{"inputs": ["` + strings.Repeat("a", 1<<20) + `"]}`, "", 413, "at most 1048576 bytes"},
		{"no prompt", "POST /text/generate", `{"tokens": 3}`, "", 400, "prompt must be the text to write on from, got none"},
		{"a prompt of others", "POST /text/generate", `{"prompt": "文"}`, "", 422, "文"},
		{"too many tokens", "POST /text/generate", `{"prompt": "a", "tokens": 1025}`, "", 400, "tokens must be a whole number from 1 to 1024, got 1025"},
		{"no tokens", "POST /text/generate", `{"prompt": "a", "tokens": 0}`, "", 400, "tokens must be"},
		{"cold", "POST /text/generate", `{"prompt": "a", "temperature": -1}`, "", 400, "temperature must be a number of at least 0, got -1"},
		{"hot", "POST /text/generate", `{"prompt": "a", "temperature": 1e999}`, "", 400, "temperature must be"},
		{"top_k", "POST /text/generate", `{"prompt": "a", "top_k": -1}`, "", 400, "top_k must be"},
		{"top_p", "POST /text/generate", `{"prompt": "a", "top_p": 0}`, "", 400, "top_p must be a number above 0 and at most 1, got 0"},
		{"nothing to draw", "POST /text/generate", `{"prompt": "a", "temperature": 0, "top_k": 3}`, "", 400, "leave out top_k and top_p"},
		{"seed", "POST /text/generate", `{"prompt": "a", "seed": -1}`, "", 400, "seed must be a whole number of at most 64 bits, not negative, got number -1"},
		{"attention to nothing", "POST /attention", `{}`, "", 422, "empty"},
		{"attention of no layer", "POST /attention", `{"input": "3 may 1999", "layer": "<script>"}`, "", 422, `part of a layer's name is wanted`},
		{"attention of two", "POST /attention", `{"input": ["a"]}`, "", 400, "input must be a text, got array"},
		{"a beam of tags", "POST /tags/predict", `{"inputs": ["a"], "beam": 2}`, "", 400, `unknown key "beam"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			method, path, _ := strings.Cut(test.what, " ")
			of := regexp.MustCompile("^(/tags|/text)?").FindString(path)
			path = path[len(of):]
			h, err := New(models[of], Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(method, "/", strings.NewReader(test.body))
			r.URL.Path = path
			r.Header.Set("Content-Type", "application/json")
			if name, value, ok := strings.Cut(test.header, ":"); ok {
				r.Header.Set(name, strings.TrimSpace(value))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.String()
			var got struct{ Error string }
			if err := json.Unmarshal([]byte(body), &got); err != nil || strings.Count(body, "\n") != 1 || strings.ContainsAny(body, "\x1b\x7f") || len(body) > 1000 {
				t.Errorf("got %q, %v, want a line of JSON", body, err)
			}
			if quoted, _ := json.Marshal(got.Error); w.Code != test.status || !strings.Contains(string(quoted), strings.ReplaceAll(test.words, `"`, `\"`)) {
				t.Errorf("got %d, %s; want %d and %s", w.Code, quoted, test.status, test.words)
			}
			if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow != "") {
				t.Errorf("Allow is %q", allow)
			}
		})
	}
}

// What a terminal or a page would obey leaves the service as an escape, of which JSON makes the same text again.
func TestEncode(t *testing.T) {
	const hostile = "a\x1b[31m\u009b31m\u202e</script>&\u2028\x7f\U000e0001é文😀\r\n\t\x00"
	encoded, err := encode(hostile)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"a\u001b[31m\u009b31m\u202e\u003c/script\u003e\u0026\u2028\u007f\udb40\udc01é文😀\r\n\t\u0000"`; string(encoded) != want {
		t.Errorf("got %s, want %s", encoded, want)
	}
	var back string
	if err := json.Unmarshal(encoded, &back); err != nil || back != hostile {
		t.Errorf("got %q back, %v", back, err)
	}
}

// Of what waits, the first and what can be answered with it are taken, and the rest keeps its order.
func TestTake(t *testing.T) {
	h := &Handler{options: Options{Batch: 5}, inputs: 99}
	for i, j := range []job{{beam: 1}, {beam: 1}, {beam: 2}, {beam: 1}, {beam: 1}, {beam: 2}, {beam: 1}} {
		j.inputs = make([]string, []int{2, 2, 1, 2, 1, 90, 1}[i])
		h.waiting = append(h.waiting, &j)
	}
	all := append([]*job(nil), h.waiting...)
	for _, want := range []string{"[0 1 4]", "[2]", "[3 6]", "[5]", "[]"} {
		var got []int
		for _, taken := range h.take() {
			for i, j := range all {
				if j == taken {
					got = append(got, i)
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("took %v, want %s", got, want)
		}
	}
	if h.inputs != 0 || h.working {
		t.Errorf("%d inputs are left, working %v", h.inputs, h.working)
	}
}

// While the model is busy, requests up to the limit wait, and no more do. Those that their clients leave make room, and
// are never begun with; those that stay are answered.
func TestFullQueue(t *testing.T) {
	c := &clients{T: t}
	defer c.Wait()
	g := newGate(t)
	h, s := start(t, g.Model, Options{MaxInputs: 2, Queue: 4})
	c.ask(s.URL, 200, "wait")
	<-g.reached
	c.ask(s.URL, 200, "a", "b")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := ask(ctx, s.URL, 200, inputs("left", "too"))
		left <- err
	}()
	waits(t, h, 4)
	if got, err := post(t.Context(), s.URL+"/predict", `{"inputs": ["c"]}`); err != nil || got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "4 inputs") {
		t.Errorf("got %+v, %v, want 503", got, err)
	}
	if got, err := post(t.Context(), s.URL+"/predict", `{"inputs": []}`); err != nil || got.status != 400 {
		t.Errorf("a wrong request while the queue is full: got %+v, %v, want 400", got, err)
	}
	leave()
	if err := <-left; err == nil {
		t.Error("a request that was left has an answer")
	}
	waits(t, h, 2)
	c.ask(s.URL, 200, "d")
	waits(t, h, 3)
	close(g.opened)
	c.Wait()
	if _, begun := g.passed.Load("left"); begun {
		t.Error("the model has begun with what nobody waits for")
	}
}

// inputs is a request.
func inputs(of ...string) map[string]any { return map[string]any{"inputs": of} }

// clients ask while a test goes on.
type clients struct {
	*testing.T
	sync.WaitGroup
}

// do has a client do something, which must end well before Wait returns.
func (c *clients) do(f func() error) {
	c.Go(func() {
		if err := f(); err != nil {
			c.Error(err)
		}
	})
}

// ask has a client ask for answers, which must have this status.
func (c *clients) ask(url string, status int, of ...string) {
	c.do(func() error {
		p, err := ask(c.Context(), url, status, inputs(of...))
		for _, a := range p.Answers {
			if a.Answer == nil {
				return fmt.Errorf("got %+v, want an answer", a)
			}
		}
		return err
	})
}

// waits returns when so many inputs wait.
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

// until returns when f returns "", which must be soon.
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

// Clients that send large requests slowly hold so much memory and no more, and small requests are answered.
func TestLargeRequests(t *testing.T) {
	h, _ := start(t, named(t, "copy"), Options{})
	ask := func(body io.Reader, want int) {
		t.Helper()
		r := httptest.NewRequest("POST", "/predict", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("got %d, %s, want %d", w.Code, w.Body, want)
		}
	}
	const small = `{"inputs": ["abc"]}`
	large := func() io.Reader { return strings.NewReader(small + strings.Repeat(" ", largeBody)) }
	var slow []*io.PipeWriter
	var all sync.WaitGroup
	for range mostLarge {
		body, to := io.Pipe()
		all.Go(func() { ask(body, 200) })
		io.WriteString(to, small) // returns when it is read
		slow = append(slow, to)
	}
	ask(large(), 503)
	ask(strings.NewReader(small), 200)
	for _, to := range slow {
		to.Close()
	}
	all.Wait()
	ask(large(), 200)
}

// What the model panics at is an error to whoever asked, and to nobody who waited with it.
func TestPanic(t *testing.T) {
	c := &clients{T: t}
	defer c.Wait()
	g := newGate(t)
	var said strings.Builder
	h, s := start(t, g.Model, Options{ErrorLog: log.New(&said, "", 0)})
	c.ask(s.URL, 200, "wait")
	<-g.reached
	c.ask(s.URL, 200, "a")
	c.ask(s.URL, 500, "panic")
	c.ask(s.URL, 500, "exit")
	c.ask(s.URL, 200, "b")
	waits(t, h, 4)
	close(g.opened)
	c.Wait()
	if !strings.Contains(said.String(), "the gate is") || !strings.Contains(said.String(), "serve_test.go") || !strings.Contains(said.String(), "runtime.Goexit") {
		t.Errorf("the log has %q, want the panic with its stack, and the end of a goroutine", said.String())
	}
}

// What takes longer than a request may is given up.
func TestTime(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, s := start(t, g.Model, Options{Time: 500 * time.Millisecond})
	defer close(g.opened)
	if p, err := ask(t.Context(), s.URL, 504, inputs("wait")); err != nil || !strings.Contains(p.Error, "too long") {
		t.Errorf("got %+v, %v", p, err)
	}
}

// pipes is a listener of connections that hold nothing: what is written waits until it is read.
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

// A client that doesn't read its answer is cut off.
func TestSlowReader(t *testing.T) {
	h, err := New(named(t, "reverse"), Options{Time: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
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
		t.Error("a connection that nobody reads from stays open")
	}
}

// Shutdown answers what was taken, and nothing else.
func TestShutdown(t *testing.T) {
	c := &clients{T: t}
	defer c.Wait()
	g := newGate(t)
	h, s := start(t, g.Model, Options{})
	c.ask(s.URL, 200, "wait")
	<-g.reached
	c.ask(s.URL, 200, "a")
	waits(t, h, 1)
	ended := make(chan error, 1)
	go func() { ended <- h.Shutdown(t.Context()) }()
	until(t, func() string {
		if got, err := http.Get(s.URL + "/health"); err != nil || got.StatusCode != 503 {
			return fmt.Sprintf("the health is %v, %v", got, err)
		}
		return ""
	})
	if p, err := ask(t.Context(), s.URL, 503, inputs("b")); err != nil || !strings.Contains(p.Error, "about to end") {
		t.Errorf("got %+v, %v", p, err)
	}
	select {
	case err := <-ended:
		t.Errorf("Shutdown returned %v before all was answered", err)
	default:
	}
	close(g.opened)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("a second Shutdown returned %v", err)
	}
}

// Where there is no time left, what was taken ends with an error.
func TestShutdownAtOnce(t *testing.T) {
	c := &clients{T: t}
	defer c.Wait()
	g := newGate(t)
	h, s := start(t, g.Model, Options{})
	c.ask(s.URL, 503, "wait")
	<-g.reached
	c.ask(s.URL, 503, "a")
	waits(t, h, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Shutdown(ctx); err != context.Canceled {
		t.Errorf("got %v", err)
	}
	<-h.idle
	close(g.opened)
}

func TestNew(t *testing.T) {
	m := named(t, "reverse")
	for _, test := range []struct {
		name  string
		model *task.Model
		o     Options
		want  string
	}{
		{"a zero model", &task.Model{}, Options{}, "the model is empty"},
		{"negative", m, Options{Batch: -1}, "Batch must be at least 1, or 0 for 32, got -1"},
		{"time", m, Options{Time: -1}, "the Time must be above 0, or 0 for 1m0s"},
		{"queue", m, Options{MaxInputs: 10, Queue: 9}, "whose MaxInputs are 10, got 9"},
	} {
		if _, err := New(test.model, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	if h, err := New(m, Options{MaxInputs: 5000}); err != nil || h.options.Queue != 5000 {
		t.Errorf("a queue by default: got %v, %v", h, err)
	}
}

// The description has the endpoints that there are, and takes of each what the endpoint takes.
func TestDescription(t *testing.T) {
	for name, m := range map[string]*task.Model{"dates": named(t, "dates"), "reverse": named(t, "reverse"), "text": writer(t)} {
		h, err := New(m, Options{MaxInputs: 7})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
		var d struct {
			OpenAPI string
			Paths   map[string]map[string]struct {
				Summary     string
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Properties map[string]struct {
								Type     string
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
			t.Errorf("%s: %d paths are described, there are %d", name, len(d.Paths), len(h.endpoints))
		}
		for path, e := range h.endpoints {
			of := d.Paths[path][strings.ToLower(e.method)]
			if of.Summary == "" || len(of.Responses) < 2 {
				t.Errorf("%s: of %s %s it says %+v", name, e.method, path, of)
			}
			if e.method != http.MethodPost {
				continue
			}
			example := map[string]any{}
			for key, p := range of.RequestBody.Content["application/json"].Schema.Properties {
				if key == "layer" { // which not any text is part of
					continue
				}
				example[key] = map[string]any{"array": []string{"a"}, "integer": 1, "number": 0.5, "boolean": true, "string": map[string]string{"dates": "3 may 1999", "reverse": "a", "text": "The"}[name]}[p.Type]
			}
			body, _ := json.Marshal(example)
			r := httptest.NewRequest(e.method, path, strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != 200 {
				t.Errorf("%s: %s of %s: %d, %s", name, path, body, w.Code, w.Body)
			}
		}
		if name == "text" {
			continue
		}
		of := d.Paths["/predict"]["post"].RequestBody.Content["application/json"].Schema
		if _, beam := of.Properties["beam"]; of.Properties["inputs"].MaxItems != 7 || beam != (name == "dates") || fmt.Sprint(of.Required) != "[inputs]" {
			t.Errorf("%s: predict takes %+v", name, of)
		}
	}
}
