package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

// watching makes a call of heed train with a page, and returns the page's address. The function end interrupts the call
// and returns its result.
func watching(t *testing.T, args ...string) (address string, end func() called) {
	t.Helper()
	return background(t, regexp.MustCompile(`^Watch it at (http://127\.0\.0\.1:\d+/)\n$`), args...)
}

// sent holds the fields of an event that the tests check.
type sent struct {
	Epoch  int
	Ended  string
	Losses struct{ X []int }
	Values map[string][]float64
}

type eventReader struct{ *bufio.Scanner }

// next returns the next event, or the name "the end".
func (e eventReader) next(t *testing.T) (name string, what sent) {
	t.Helper()
	for e.Scan() {
		if value, ok := strings.CutPrefix(e.Text(), "event: "); ok {
			name = value
		}
		if value, ok := strings.CutPrefix(e.Text(), "data: "); ok {
			must.Do(t, json.Unmarshal([]byte(value), &what))
			return name, what
		}
	}
	return "the end", what
}

func events(t *testing.T, address string) eventReader {
	t.Helper()
	response := must.Get(http.Get(address + "events"))(t)
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return eventReader{lines}
}

// The page of a run shows new checks during training, and why the run ends. Then the server stops. The page of a
// resumed run also shows the earlier checks.
func TestWatch(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir := copied(t, "--task=copy")
	address, end := watching(t, "train", "--resume="+dir, "--max-epochs=1000000", "--patience=1000000", "--watch")
	reader := events(t, address)
	name, what := reader.next(t)
	for name == "now" { // before the checkpoint is read
		name, what = reader.next(t)
	}
	if name != "checks" || len(what.Values["val_accuracy"]) < 3 || what.Values["step"][0] != 10 {
		t.Errorf("the first event is %s: %v, want the earlier checks", name, what)
	}
	for what.Epoch < 5 || len(what.Losses.X) < 20 {
		if name, what = reader.next(t); name == "the end" {
			t.Fatal("the events end before 5 epochs")
		}
	}
	page := must.Get(http.Get(address))(t)
	content, _ := io.ReadAll(page.Body)
	page.Body.Close()
	if !strings.Contains(string(content), "<h1>Training copy</h1>") || !strings.Contains(string(content), filepath.Base(dir)) {
		t.Errorf("the page is %.300q, want a title and the folder", content)
	}
	request, _ := http.NewRequest("GET", address, nil)
	request.Host = "heed.example:80"
	if answer, err := http.DefaultClient.Do(request); err != nil || answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the answer to another host's name is %v, %v, want status 421", answer, err)
	} else {
		answer.Body.Close()
	}
	c := end()
	fail(t, c, 1, "interrupted")
	for name != "the end" {
		last := what
		if name, what = reader.next(t); name == "the end" && last.Ended != "interrupted" {
			t.Errorf("the last event is %v, want that the run was interrupted", last)
		}
	}
	if _, err := http.Get(address); err == nil {
		t.Error("the page still answers")
	}
}

// --watch changes neither the run nor its output, except for the address.
func TestWatchChangesNothing(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	plain := succeed(t, small("--task=copy", "--out="+filepath.Join(dir, "plain"))...)
	shown := succeed(t, small("--task=copy", "--out="+filepath.Join(dir, "shown"), "--watch-addr=localhost:0")...)
	line := regexp.MustCompile(`(?m)^Watch it at http://.*\n`)
	if !line.MatchString(shown) {
		t.Errorf("heed train prints %q, want the page's address", shown)
	}
	same := func(s string) string {
		return regexp.MustCompile(`Memory: .*|plain|shown|Done in [0-9.]+ s`).ReplaceAllString(line.ReplaceAllString(s, ""), "")
	}
	if same(shown) != same(plain) {
		t.Errorf("heed train prints\n%s\nwant\n%s\nand the page's address", shown, plain)
	}
	sameRun(t, filepath.Join(dir, "shown"), filepath.Join(dir, "plain"))
	finished := succeed(t, small("--task=copy", "--out="+filepath.Join(dir, "plain"), "--auto-resume", "--watch")...)
	if line.MatchString(finished) || !strings.Contains(finished, "is finished") {
		t.Errorf("for a finished run, heed train prints %q, want no address", finished)
	}
}

// If others can see the page, heed train prints that.
func TestWatchFromElsewhere(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	out := succeed(t, small("--task=copy", "--watch-addr=0.0.0.0:0", "--out="+filepath.Join(t.TempDir(), "run"))...)
	if !regexp.MustCompile(`(?m)^Watch it at http://\S+/, which everyone who can reach this machine may open$`).MatchString(out) {
		t.Errorf("heed train prints %q, want a line that others may watch", out)
	}
}

// Connections that send nothing or half a request, or read no answer, don't keep others out. A stream of events that is
// being read isn't cut off.
func TestConnections(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	next := make(chan string)
	s := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin\n")
		if r.URL.Path == "/events" {
			http.NewResponseController(w).Flush()
			io.WriteString(w, <-next)
		}
	})}
	limitConnections(s, maxConnections)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	stream := must.Get(client.Get("http://" + l.Addr().String() + "/events"))(t)
	defer stream.Body.Close()
	for i := range 300 {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, []string{"", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"}[i%3])
	}
	got := must.Get(client.Get("http://" + l.Addr().String()))(t)
	if page, err := io.ReadAll(got.Body); err != nil || string(page) != "begin\n" {
		t.Errorf("a viewer gets %q, %v, want the page", page, err)
	}
	got.Body.Close()
	next <- "end\n"
	if events, err := io.ReadAll(stream.Body); err != nil || string(events) != "begin\nend\n" {
		t.Errorf("the stream is %q, %v, want its end", events, err)
	}
}

// withoutBody sends the header of a request whose body never arrives. It returns the status of the answer, and how long
// the server takes to answer and to close the connection.
func withoutBody(addr, header string) (status int, took time.Duration, err error) {
	began := time.Now()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	c.SetDeadline(began.Add(20 * time.Second))
	fmt.Fprintf(c, "%s\r\nContent-Length: 100\r\n\r\n", header)
	in := bufio.NewReader(c)
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("no answer: %w", err)
	}
	if _, err := io.Copy(io.Discard, io.MultiReader(answer.Body, in)); err != nil {
		return 0, 0, fmt.Errorf("the connection stays open: %w", err)
	}
	return answer.StatusCode, time.Since(began), nil
}

// If a request isn't read, its body needn't arrive: the answer comes at once, and the connection closes.
func TestUnreadBodies(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	dir := ran(t, "--task=copy", "--seed=1")
	url, endService := newService(t, dir, "--addr=127.0.0.1:0", "--timeout=10s")
	t.Cleanup(func() { endService() })
	served := strings.TrimPrefix(url, "http://")
	page, end := watching(t, small("--task=copy", "--watch", "--max-epochs=100000", "--patience=0", "--out="+filepath.Join(t.TempDir(), "run"))...)
	t.Cleanup(func() { end() })
	watched := strings.Trim(strings.TrimPrefix(page, "http://"), "/")
	if r, err := http.Post(url+"/predict", "application/json", strings.NewReader(`{"input": "abc"}`)); err != nil || r.StatusCode != 200 || r.Close {
		t.Errorf("a body that is read: got %+v, %v, want status 200 on a connection that stays open", r, err)
	} else {
		r.Body.Close()
	}
	var requests sync.WaitGroup // not parallel tests, because these may wait for other tests while the run trains
	for _, test := range []struct {
		addr, header string
		want         int
	}{
		{served, "POST /predict HTTP/1.1\r\nHost: example.com", 421},
		{served, "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain", 415},
		{served, "POST /none HTTP/1.1\r\nHost: localhost", 404},
		{served, "POST /v1/none HTTP/1.1\r\nHost: localhost", 404},
		{served, "DELETE /predict HTTP/1.1\r\nHost: localhost", 405},
		{served, "POST /predict HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site", 403},
		{served, "GET / HTTP/1.1\r\nHost: localhost", 200},
		{served, "GET /health HTTP/1.1\r\nHost: localhost", 200},
		{watched, "GET / HTTP/1.1\r\nHost: localhost", 200},
		{watched, "GET / HTTP/1.1\r\nHost: example.com", 421},
		{watched, "POST / HTTP/1.1\r\nHost: localhost", 405},
	} {
		requests.Go(func() {
			if status, took, err := withoutBody(test.addr, test.header); err != nil || status != test.want || took > 8*time.Second {
				t.Errorf("%q: got status %d after %v, %v, want %d within seconds", test.header, status, took, err, test.want)
			}
		})
	}
	requests.Wait()
}
