package serve

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/model"
)

// 16 clients send requests at the same time, more than the queue allows. Others send wrong or incomplete requests, or
// disconnect. No answer may be lost or wrong, and memory must not grow with the number of requests.
func TestLoad(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	each := 32 // requests per client in each half
	if testing.Short() {
		each = 8
	}
	m := named(t, "dates")
	var sources []string
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		sources = append(sources, m.Config.Task.Sample(rng, m.Config.Task.MaxLen))
	}
	sources = append(sources, "", strings.Repeat("9", 100))
	want := map[int][]model.Answer{}
	for beam := 1; beam <= 2; beam++ {
		answers := must.Get(m.PredictAll(t.Context(), sources, model.PredictOptions{Beam: beam}))(t)
		want[beam] = answers
	}
	_, s := start(t, m, Options{Queue: 20, MaxInputs: 4, MaxBody: 1 << 16, Time: time.Hour})
	var answered, refused atomic.Int64
	right := func(rng *rand.Rand) error {
		beam, places := 1+rng.IntN(2), rng.Perm(len(sources))[:1+rng.IntN(4)]
		request := map[string]any{"beam": beam}
		var chosen []string
		for _, p := range places {
			chosen = append(chosen, sources[p])
		}
		request["input"] = chosen
		for {
			got, err := ask(t.Context(), s.URL, 200, request)
			if err != nil && strings.Contains(got.Error, "too many inputs are already waiting") {
				refused.Add(1)
				time.Sleep(5 * time.Millisecond)
				continue
			}
			if err != nil || len(got.Answers) != len(places) {
				return fmt.Errorf("%q: got %+v, %v", chosen, got, err)
			}
			for i, a := range got.Answers {
				w := want[beam][places[i]]
				if (w.Err != nil) != (a.Error != "") || w.Err == nil && (*a.Answer != w.Text || math.Abs(math.Log(*a.Probability)-w.LogProb) > -1e-4*w.LogProb) {
					return fmt.Errorf("%q: got %+v, want %+v", chosen[i], a, w)
				}
			}
			answered.Add(1)
			return nil
		}
	}
	ask16 := func(c *clients, half int) {
		for client := range 16 {
			c.do(func() error {
				rng := rand.New(rand.NewPCG(uint64(half), uint64(client)))
				for range each {
					if err := right(rng); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	c := &clients{T: t}
	slow, err := send(s, 100, "{") // a request whose body never comes
	must.Do(t, err)
	defer slow.Close()
	ask16(c, 1)
	c.do(func() error {
		for i := range 3 * each {
			if err := wrong(t, s, i); err != nil {
				return err
			}
		}
		return nil
	})
	c.Wait()
	before := resident(t)
	ask16(c, 2)
	c.Wait()
	after := resident(t)
	t.Logf("%d answered, %d refused; %d kB of memory after half of the requests, %d kB at the end", answered.Load(), refused.Load(), before, after)
	if answered.Load() != int64(2*16*each) || refused.Load() == 0 {
		t.Errorf("got %d answered and %[3]d refused, want %[2]d answered and at least 1 refused", answered.Load(), 2*16*each, refused.Load())
	}
	if !testing.Short() && after > before+before/4+16<<10 {
		t.Errorf("%d kB of memory after half of the requests and %d kB at the end, want at most a quarter and 16 MB more", before, after)
	}
}

// A request whose body doesn't come in time gets status 408.
func TestSlowRequest(t *testing.T) {
	t.Parallel()
	_, s := start(t, named(t, "copy"), Options{Time: 100 * time.Millisecond})
	slow, err := send(s, 100, "{")
	must.Do(t, err)
	defer slow.Close()
	if got, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || got.StatusCode != 408 {
		t.Errorf("got %+v, %v, want status 408", got, err)
	}
}

// send sends a request with a Content-Length and the beginning of the body.
func send(s *httptest.Server, length int, body string) (net.Conn, error) {
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(conn, "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
	return conn, err
}

// wrong sends one of three requests that get no answer. The argument i selects which.
func wrong(t *testing.T, s *httptest.Server, i int) error {
	body, status := `{"input": [`, 400
	switch i % 3 {
	case 0: // disconnect
		body := `{"input": ["3 may 1999"]}`
		conn, err := send(s, len(body), body)
		if err != nil {
			return err
		}
		return conn.Close()
	case 1:
		body, status = `{"input": ["`+strings.Repeat("a", 1<<16)+`"]}`, 413
	}
	got, err := post(t.Context(), s.URL+"/predict", body)
	if err == nil && got.status != status {
		err = fmt.Errorf("a wrong request: got %+v, want status %d", got, status)
	}
	return err
}

// resident returns the process's resident memory in kB, or 0 on systems without /proc.
func resident(t *testing.T) int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kB := must.Get(strconv.Atoi(strings.Fields(size)[0]))(t)
			return kB
		}
	}
	return 0
}
