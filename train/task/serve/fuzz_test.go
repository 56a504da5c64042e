package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

// The service refuses a body with one line, or the values in it are within the limits.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"input": ["3 may 1999", "é"], "beam": 2, "top": 3}`, `{"input": "3 may 1999"}`, `{"prompt": "The", "tokens": 3, "temperature": 0.5, "top_k": 2, "top_p": 0.9, "seed": 18446744073709551615}`, `{"input": null}`, `{"input": [null]}`, `{"beam": 1e9}`, `[`, "\xff", `{"\u0069nputs": ["\ud800"]}`,
	} {
		f.Add(body)
	}
	o := Options{MaxBody: 1000, MaxInputs: 3, MaxTokens: 50}
	seq2seq := must.Get(New(named(f, "dates"), o))(f)
	text := must.Get(New(writer(f), o))(f)
	f.Fuzz(func(t *testing.T, body string) {
		request := func() *http.Request {
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			return r
		}
		w := httptest.NewRecorder()
		p, err := seq2seq.readPredict(w, request())
		refused(t, seq2seq, w, body, err)
		if err == nil && (len(p.Input) < 1 || len(p.Input) > 3 || len(body) > 1000 || p.Beam < 1 || p.Beam > 16 || p.Top < 0 || p.Top > 16 || !utf8.ValidString(strings.Join(p.Input, ""))) {
			t.Errorf("%q: got %+v, want it within the limits", body, p)
		}
		w = httptest.NewRecorder()
		g, err := text.readGenerate(w, request())
		refused(t, text, w, body, err)
		if err == nil && (g.Prompt == "" || !utf8.ValidString(g.Prompt) || g.Tokens < 1 || g.Tokens > 50 || g.options(text.model.Sampler()).Check() != nil) {
			t.Errorf("%q: got %+v, want it within the limits", body, g)
		}
	})
}

// refused checks that an error, if there is one, is answered with a status from 400 to 499 and one line.
func refused(t *testing.T, h *Handler, w *httptest.ResponseRecorder, body string, err error) {
	if err == nil {
		return
	}
	h.fail(w, t.Context(), err, failed)
	if got := w.Body.String(); w.Code < 400 || w.Code >= 500 || !strings.HasPrefix(got, `{"error":"`) || strings.Count(got, "\n") != 1 || len(got) > 4000 {
		t.Errorf("%q: got status %d and %q, want a client error in one line", body, w.Code, got)
	}
}
