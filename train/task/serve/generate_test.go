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

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
)

// An event is a server-sent event.
type event struct{ name, data string }

// events starts a generation and returns a function that reads the next event. At the end of the stream, the function
// returns a zero event.
func events(ctx context.Context, url, body string) (next func() event, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
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
		return nil, fmt.Errorf("got status %s and type %s: %s", got.Status, got.Header.Get("Content-Type"), content)
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

// Streams at the same time send the texts that Model.Generate writes, and the reason for their end. Streams of OpenAI's
// API have the same texts.
func TestGenerate(t *testing.T) {
	t.Parallel()
	m := writer(t)
	h, s := start(t, m, Options{})
	v1 := httptest.NewServer(h.OpenAI("fox"))
	defer v1.Close()
	c := &clients{T: t}
	for seed := range 8 {
		c.do(func() error {
			next, err := events(t.Context(), s.URL+"/generate", fmt.Sprintf(`{"prompt": "The", "tokens": 30, "temperature": 0.7, "top_k": 9, "top_p": 0.9, "seed": %d}`, seed))
			if err != nil {
				return err
			}
			var got strings.Builder
			e := next()
			for ; e.name == "text"; e = next() {
				var data struct{ Text string }
				if err := json.Unmarshal([]byte(e.data), &data); err != nil {
					return err
				}
				got.WriteString(data.Text)
			}
			if e != (event{"done", `{"reason":"tokens"}`}) || next() != (event{}) {
				return fmt.Errorf("the last event is %+v, want done with the reason tokens", e)
			}
			var want strings.Builder
			o := model.GenerateOptions{Sampler: decode.Sampler{Temperature: 0.7, TopK: 9, TopP: 0.9}, Seed: uint64(seed), MaxTokens: 30}
			if _, err := m.Generate(t.Context(), &want, model.Prompt{Text: "The"}, o); err != nil {
				return err
			}
			if got.String() != want.String() {
				return fmt.Errorf("got %q, want %q after The", got.String(), want.String())
			}
			body := fmt.Sprintf(`{"prompt": "The", "max_tokens": 30, "temperature": 0.7, "top_k": 9, "top_p": 0.9, "seed": %d, "stream": true}`, seed)
			status, list, err := postOpenAI(t.Context(), v1.URL+"/v1/completions", body)
			if text, finish := joined(list); err != nil || status != 200 || text != want.String() || finish != "length" {
				return fmt.Errorf("seed %d: got %d, %q, %s, %v, want %q", seed, status, text, finish, err, want.String())
			}
			return nil
		})
	}
	c.Wait()
}

// endless is a request for a generation that is too long to finish.
const endless = `{"prompt": "The", "tokens": 1000000000}`

// A generation ends when its client disconnects, so that another session can begin.
func TestGenerateGone(t *testing.T) {
	h, s := start(t, writer(t), Options{MaxTokens: 1e9, Sessions: 1})
	v1 := httptest.NewServer(h.OpenAI("fox"))
	defer v1.Close()
	for url, body := range map[string]string{s.URL + "/generate": endless, v1.URL + "/v1/completions": endlessStream} {
		ctx, leave := context.WithCancel(t.Context())
		next := must.Get(events(ctx, url, body))(t)
		if e := next(); !strings.Contains(e.data, `"text"`) {
			t.Errorf("the first event is %+v, want a text", e)
		}
		for url, body := range map[string]string{s.URL + "/generate": endless, s.URL + "/attention": `{"input": "The"}`, v1.URL + "/v1/completions": `{"prompt": "The"}`} {
			if got := replied(t, url, body, 503); got.header.Get("Retry-After") == "" {
				t.Errorf("a second session: got %+v, want the header Retry-After", got)
			}
		}
		leave()
		until(t, func() string {
			if len(h.sessions) > 0 {
				return "a session goes on"
			}
			return ""
		})
		replied(t, s.URL+"/attention", `{"input": "The"}`, 200)
	}
}

// If a generation takes too long, or if the service ends, the last event gives the reason.
func TestGenerateCutOff(t *testing.T) {
	t.Parallel()
	m := writer(t)
	for _, reason := range []string{"time", "ending"} {
		o := Options{MaxTokens: 1e9}
		if reason == "time" {
			o.Time = 100 * time.Millisecond
		}
		h, s := start(t, m, o)
		next, err := events(t.Context(), s.URL+"/generate", endless)
		for err != nil && o.Time > 0 && o.Time < time.Minute { // the time was over before the first event
			o.Time *= 2
			h, s = start(t, m, o)
			next, err = events(t.Context(), s.URL+"/generate", endless)
		}
		must.Do(t, err)
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
			t.Errorf("the last event is %+v, want done with the reason %s", e, reason)
		}
	}
}
