package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/layers/decode"
)

// An event is what a stream sends.
type event struct{ name, data string }

// events begins a generation, and returns a function for the next event, which has none where the stream has ended.
func events(ctx context.Context, s *httptest.Server, body string) (next func() event, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/generate", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != 200 || got.Header.Get("Content-Type") != "text/event-stream" {
		content, _ := io.ReadAll(got.Body)
		got.Body.Close()
		return nil, fmt.Errorf("got %v of %s: %s", got.Status, got.Header.Get("Content-Type"), content)
	}
	lines := bufio.NewReader(got.Body)
	return func() (e event) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil || line == "\n" {
				return e
			}
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = strings.TrimSpace(name)
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = strings.TrimSpace(data)
			}
		}
	}, nil
}

// Streams side by side write what Model.Generate writes, and say why they end.
func TestGenerate(t *testing.T) {
	t.Parallel()
	m := writer(t)
	_, s := start(t, m, Options{})
	c := &clients{T: t}
	for seed := range 8 {
		c.do(func() error {
			next, err := events(t.Context(), s, fmt.Sprintf(`{"prompt": "The", "tokens": 30, "temperature": 0.7, "top_k": 9, "top_p": 0.9, "seed": %d}`, seed))
			if err != nil {
				return err
			}
			var got strings.Builder
			e := next()
			for ; e.name == "text"; e = next() {
				var of struct{ Text string }
				if err := json.Unmarshal([]byte(e.data), &of); err != nil {
					return err
				}
				got.WriteString(of.Text)
			}
			if e != (event{"done", `{"reason":"tokens"}`}) || next() != (event{}) {
				return fmt.Errorf("it ended with %+v", e)
			}
			var want strings.Builder
			o := decode.Options{Sampler: decode.Sampler{Temperature: 0.7, TopK: 9, TopP: 0.9}, Seed: uint64(seed), MaxTokens: 30}
			if err := m.Generate(t.Context(), &want, "The", o); err != nil {
				return err
			}
			if "The"+got.String() != want.String() {
				return fmt.Errorf("got %q, want %q after The", got.String(), want.String())
			}
			return nil
		})
	}
	c.Wait()
}

// endless is a generation that doesn't end by itself.
const endless = `{"prompt": "The", "tokens": 1000000000}`

// A generation ends when its client goes, and so makes room for another.
func TestGenerateGone(t *testing.T) {
	h, s := start(t, writer(t), Options{MaxTokens: 1e9, Sessions: 1})
	ctx, leave := context.WithCancel(t.Context())
	next, err := events(ctx, s, endless)
	if err != nil {
		t.Fatal(err)
	}
	if e := next(); e.name != "text" {
		t.Errorf("it begins with %+v", e)
	}
	for path, body := range map[string]string{"/generate": endless, "/attention": `{"input": "The"}`} {
		if got, err := post(t.Context(), s.URL+path, body); err != nil || got.status != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("another session: got %+v, %v, want status 503", got, err)
		}
	}
	leave()
	until(t, func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.sessions > 0 {
			return "it writes on"
		}
		return ""
	})
	if got, err := post(t.Context(), s.URL+"/attention", `{"input": "The"}`); err != nil || got.status != 200 {
		t.Errorf("a session after it: got %+v, %v", got, err)
	}
}

// A generation that has taken too long, or that the end of the service cuts off, says so.
func TestGenerateCutOff(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"time", "ending"} {
		o := Options{MaxTokens: 1e9}
		if reason == "time" {
			o.Time = 500 * time.Millisecond
		}
		h, s := start(t, writer(t), o)
		next, err := events(t.Context(), s, endless)
		if err != nil {
			t.Fatal(err)
		}
		e := next()
		if reason == "ending" {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			h.Shutdown(ctx)
		}
		for e.name == "text" {
			e = next()
		}
		if e != (event{"done", fmt.Sprintf(`{"reason":%q}`, reason)}) || next() != (event{}) {
			t.Errorf("it ended with %+v, want the reason %s", e, reason)
		}
	}
}
