package serve

import (
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever is sent, it is refused in one line, or is within the limits.
func FuzzPredictRequest(f *testing.F) {
	for _, body := range []string{
		`{"inputs": ["3 may 1999", "é"], "beam": 2, "scores": true}`, `{"inputs": null}`, `{"inputs": [null]}`, `{"beam": 1e9}`, `[`, "\xff", `{"\u0069nputs": ["\ud800"]}`,
	} {
		f.Add(body)
	}
	h, err := New(named(f, "dates"), Options{MaxBody: 1000, MaxInputs: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/predict", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		inputs, request, err := h.readPredict(w, r)
		if err != nil {
			h.fail(w, t.Context(), err)
			if got := w.Body.String(); w.Code < 400 || w.Code >= 500 || !strings.HasPrefix(got, `{"error":"`) || strings.Count(got, "\n") != 1 || len(got) > 4000 {
				t.Errorf("%q: %d, %q", body, w.Code, got)
			}
			return
		}
		if len(inputs) < 1 || len(inputs) > 3 || len(body) > 1000 || request.Beam < 1 || request.Beam > 16 {
			t.Errorf("%q: got %q and %+v", body, inputs, request)
		}
		for _, input := range inputs {
			if !utf8.ValidString(input) {
				t.Errorf("%q: got %q, which isn't UTF-8", body, input)
			}
		}
	})
}
