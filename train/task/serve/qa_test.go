package serve

import (
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train/model"
)

// A model for questions answers with a part of the context, and says that there is no answer only if it may.
func TestQuestions(t *testing.T) {
	m := must.Get(model.Open("../../model/testdata/qa/bert-64"))(t)
	h, s := start(t, m, Options{})
	replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café. the River house is naïve", "top": 2}`, 200, `"answer":"Berlin","start":0,"end":6,"probability":0.0631`, `{"answer":"Berlin café. the River","start":0,"end":23,`)
	replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café", "top": 20, "no_answer": true}`, 200, `{"answer":"","start":0,"end":0,"probability":`)
	without := replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin café", "top": 20}`, 200, `"answer":"Berlin café"`)
	must.Lack(t, without.body, `"answer":""`)
	replied(t, s.URL+"/predict", `{"input": "Where?\tBerlin", "no_answer": 1}`, 400, "no_answer must be true or false")
	must.Have(t, recorded(h, "GET", "/", nil).Body.String(), ">Question <", ">Context <")
	must.Have(t, recorded(h, "GET", "/openapi.json", nil).Body.String(), `"no_answer":{`, `"start":{`, "with a tab between them: question, context")
}
