package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// A model for questions answers with a part of the context, and says that there is no answer only if it may.
func TestQuestions(t *testing.T) {
	m := must.Get(model.Open("../../model/testdata/qa/bert-64"))(t)
	_, s := start(t, m, Options{})
	replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café. the River house is naïve", "top": 2}`, 200, `"answer":"Berlin","start":0,"end":6,"probability":0.0631`, `{"answer":"Berlin café. the River","start":0,"end":23,`)
	got := replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café", "top": 20, "no_answer": true}`, 200, `{"answer":"","start":0,"end":0,"probability":`)
	without := replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café", "top": 20}`, 200, `"answer":"Berlin café"`)
	if strings.Contains(without.body, `"answer":""`) {
		t.Errorf("got %s without no_answer, and with it %s", without.body, got.body)
	}
	replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin", "no_answer": 1}`, 400, "no_answer must be true or false")
	page := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/", nil))(t)
	must.Have(t, must.Get(do(page))(t).body, ">Question <", ">Context <")
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/openapi.json", nil))(t)
	must.Have(t, must.Get(do(request))(t).body, `"no_answer":{`, `"start":{`, "with a tab between them: question, context")
}
