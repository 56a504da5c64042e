package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
)

// pipes is a network without buffers. In the bubble of a synctest, time stands still while it is in use.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// served serves a run until the end of the test.
func served(t *testing.T, r *Live) *pipes {
	t.Helper()
	h := must.Get(r.Handler("Training reverse", "a run"))(t)
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s := &http.Server{Handler: h}
	go s.Serve(p)
	t.Cleanup(func() { s.Close() })
	return p
}

// get requests a path and returns the connection.
func (p *pipes) get(t *testing.T, path string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	p.conns <- server
	must.Get(fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// A reader reads the events of a run.
type reader struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (p *pipes) events(t *testing.T) (reader, net.Conn) {
	t.Helper()
	c := p.get(t, "/events")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the response for the events is %v, %v, want status 200 and an event stream", response, err)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return reader{t, lines}, c
}

// A seen is the data of an event.
type seen struct {
	Epoch, Step int
	Ended       string
	Losses      struct{ X, Values []*float64 }
	Values      map[string][]*float64 // of checks; nil is null
	Best        int
}

// next returns the next event. A comment is an event without a name. At the end of the stream, the name is "the end".
func (r reader) next() (name string, event seen) {
	r.t.Helper()
	for r.lines.Scan() {
		line := r.lines.Text()
		if rest, ok := strings.CutPrefix(line, "event: "); ok {
			name = rest
		}
		if rest, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(rest), &event); err != nil {
				r.t.Fatalf("%s: %v", rest, err)
			}
		}
		if line == "" {
			return name, event
		}
	}
	return "the end", event
}

// A late client gets the whole state. All clients get the changes. After the end, clients get the reason and the stream
// ends.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewLive(2, train.Config{MaxEpochs: 2}, train.RunOptions{})
		p := served(t, r)
		early, _ := p.events(t)
		if name, event := early.next(); name != "now" || event.Losses.X == nil || event.Losses.Values == nil || len(event.Losses.X) != 0 || event.Ended != "" {
			t.Errorf("before training: got event %s: %+v, want an empty state", name, event)
		}
		r.Step(0, 0, 3)
		r.Step(0, 1, 2)
		r.Check([]train.Check{{Step: 2, TrainLoss: 2.5, Metrics: map[string]float64{"train_accuracy": math.NaN()}}}, true)
		late, _ := p.events(t)
		for client, reader := range map[string]reader{"the early client": early, "the late client": late} {
			name, event := reader.next()
			if name != "checks" || len(event.Values) != 4 || *event.Values["train_loss"][0] != 2.5 || event.Values["train_accuracy"][0] != nil || event.Best != 0 {
				t.Errorf("%s gets event %s: %+v, want the check", client, name, event)
			}
			name, event = reader.next()
			if name != "now" || event.Epoch != 0 || event.Step != 2 || len(event.Losses.X) != 2 {
				t.Errorf("%s gets event %s: %+v, want the two steps", client, name, event)
			}
		}
		r.Step(1, 0, 1)
		r.Step(1, 1, 1)
		for _, reader := range []reader{early, late} {
			if name, event := reader.next(); name != "now" || event.Epoch != 1 || event.Step != 2 || len(event.Losses.X) != 4 {
				t.Errorf("got event %s: %+v, want the next steps, and no check", name, event)
			}
		}
		r.End("of a limit")
		after, _ := p.events(t)
		for _, reader := range []reader{early, late} {
			if name, event := reader.next(); name != "now" || event.Ended != "of a limit" {
				t.Errorf("got event %s: %+v, want the end", name, event)
			}
		}
		after.next()
		if name, event := after.next(); name != "now" || event.Ended != "of a limit" || len(event.Losses.X) != 4 {
			t.Errorf("a client that comes after the end gets event %s: %+v, want all steps and the reason", name, event)
		}
		for _, reader := range []reader{early, late, after} {
			if name, _ := reader.next(); name != "the end" {
				t.Errorf("after the end: got event %s, want the end of the stream", name)
			}
		}
	})
}

// While the state doesn't change, clients get comments, so that they know the connection is alive.
func TestEventsWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := served(t, NewLive(2, train.Config{}, train.RunOptions{}))
		reader, _ := p.events(t)
		reader.next()
		start := time.Now()
		if name, _ := reader.next(); name != "" || time.Since(start) > 20*time.Second {
			t.Errorf("after %v: got event %q, want a comment within 20 s", time.Since(start), name)
		}
	})
}

// Training doesn't wait for clients. A client that doesn't read doesn't delay the other clients, and is disconnected
// after a while.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewLive(10, train.Config{}, train.RunOptions{})
		p := served(t, r)
		for range maxWatchers - 2 {
			p.get(t, "/events") // never reads
		}
		_, vanishing := p.events(t)
		reader, _ := p.events(t)
		reader.next()
		vanishing.Close()
		start := time.Now()
		r.Step(0, 0, 1)
		if name, event := reader.next(); name != "now" || event.Step != 1 || time.Since(start) > every {
			t.Errorf("the fast client gets event %s: %+v after %v, want step 1 without delay", name, event, time.Since(start))
		}
		time.Sleep(patience)
		synctest.Wait()
		if n := len(r.watchers); n != 1 {
			t.Errorf("%v later there are %d clients, want 1: the one that reads", patience, n)
		}
	})
}

// If there are too many clients, a new one gets the events and the oldest one is disconnected, whether it reads or not.
// So clients that never read can't keep out a viewer, whose browser connects again.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewLive(10, train.Config{}, train.RunOptions{})
		p := served(t, r)
		early, _ := p.events(t)
		early.next()
		start := time.Now()
		silent := p.get(t, "/events") // never reads
		synctest.Wait()
		for range maxWatchers - 1 {
			p.get(t, "/events")
			synctest.Wait()
		}
		if name, _ := early.next(); name != "the end" || time.Since(start) > every {
			t.Errorf("the oldest client gets event %q after %v, want the end of the stream", name, time.Since(start))
		}
		start = time.Now()
		late, _ := p.events(t)
		if name, _ := late.next(); name != "now" {
			t.Errorf("one more client gets event %q, want the state of the run", name)
		}
		if _, err := silent.Read(make([]byte, 1)); err == nil || time.Since(start) > every {
			t.Errorf("the oldest client that doesn't read gets error %v after %v, want it to be disconnected", err, time.Since(start))
		}
		synctest.Wait()
		if n := len(r.watchers); n != maxWatchers {
			t.Errorf("there are %d clients, want %d", n, maxWatchers)
		}
	})
}

// A page escapes its title and its text, and its server only answers GET and HEAD.
func TestPage(t *testing.T) {
	const title, about = "Training <script>alert(1)</script>", "folder \"'><img src=x onerror=alert(2)>\u202e\x1b[31m</title>"
	h := must.Get(NewLive(1, train.Config{}, train.RunOptions{}).Handler(title, about))(t)
	call := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w
	}
	got := call("GET", "/")
	text := got.Body.String()
	if got.Code != http.StatusOK || strings.Contains(text, "alert(1)</script>") || strings.Contains(text, "<img") || strings.ContainsAny(text, "\u202e\x1b") ||
		!strings.Contains(text, html.EscapeString(title)) {
		t.Errorf("status %d, want 200; the page must be escaped, got\n%.2000s", got.Code, text)
	}
	policy := got.Header().Get("Content-Security-Policy")
	must.Have(t, policy, "default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "frame-ancestors 'none'")
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"HEAD", "/", 200}, {"HEAD", "/events", 200}, {"POST", "/", 405}, {"PUT", "/events", 405}, {"DELETE", "/", 405},
		{"OPTIONS", "/events", 405}, {"GET", "/other", 404}, {"GET", "/events/", 404},
	} {
		if w := call(c.method, c.path); w.Code != c.status || c.status == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: status %d with headers %v, want status %d", c.method, c.path, w.Code, w.Header(), c.status)
		}
	}
}

// The live page has a logarithmic axis for losses exactly if the report has one.
func TestLogarithmicLosses(t *testing.T) {
	for name, change := range map[string]func(i int, c *train.Check){
		"wide":            nil,
		"narrow":          func(i int, c *train.Check) { c.TrainLoss, c.ValLoss = 1, 2 },
		"only validation": func(i int, c *train.Check) { c.TrainLoss, c.ValLoss = 1, float64(1+40*i) },
		"not validated":   func(i int, c *train.Check) { c.TrainLoss, c.ValLoss, c.Validated = 1, float64(1+40*i), false },
		"below 0":         func(i int, c *train.Check) { c.TrainLoss -= 0.5 },
	} {
		t.Run(name, func(t *testing.T) {
			history := made(100, change).History
			r := NewLive(1, train.Config{}, train.RunOptions{})
			r.Check(history, false)
			got := r.state().checks().(map[string]any)["log"]
			want := (&Run{Title: "own", Result: &train.Result{History: history}}).charts()[0].Log
			if got != want || want != (name == "wide" || name == "only validation") {
				t.Errorf("the live page's axis is logarithmic: %v; the report's: %v", got, want)
			}
		})
	}
}

// Clients get a limited number of checks, including the best and the last one.
func TestManyChecks(t *testing.T) {
	r := NewLive(1, train.Config{Stopping: train.StoppingConfig{Monitor: "val_accuracy", Mode: "max"}}, train.RunOptions{})
	history := make([]train.Check, 10_001)
	for i := range history {
		history[i].Step = i + 1
	}
	history[5003].Metrics = map[string]float64{"val_accuracy": 1} // the others have 0
	r.Check(history, false)
	b, err := json.Marshal(r.state().checks())
	var got seen
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	steps := got.Values["step"]
	if n := len(steps); err != nil || n > maxPoints+2 || n < maxPoints/2 || *steps[got.Best] != 5004 || *steps[n-1] != 10_001 {
		t.Errorf("got %d checks, the best at index %d, %v; want about %d, with the best and the last step", n, got.Best, err, maxPoints)
	}
}
