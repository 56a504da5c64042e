package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/model"
)

// A document is, in JSON, a text or an object with the key text.
type document struct {
	text  string
	whole any // what the answer has if it has the documents
}

func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		err := json.Unmarshal(b, &d.text)
		d.whole = object{"text": d.text}
		return err
	}
	var o struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(b, &o); err != nil || o.Text == nil {
		return &json.UnmarshalTypeError{Value: "an element that is neither"}
	}
	d.text, d.whole = *o.Text, json.RawMessage(bytes.Clone(b))
	return nil
}

// rerank answers with the documents that answer a query best, and their scores.
func (a *openAI) rerank(w http.ResponseWriter, r *http.Request, q *openAIRequest) error {
	limit := a.options.MaxInputs
	switch n := len(q.Documents); {
	case a.does.Rank != nil:
		return setting.Errorf("%w", a.does.Rank)
	case q.Query == nil:
		return setting.Errorf("%s must be %s, got none", setting.Path("query"), fieldWants["query"])
	case n == 0 || n > limit:
		return setting.Errorf("%s must be %s, with 1 to %d elements, got %d", setting.Path("documents"), fieldWants["documents"], limit, n)
	case q.TopN != nil && *q.TopN < 1:
		return setting.Errorf("%s must be at least 1, got %d", setting.Path("top_n"), *q.TopN)
	}
	texts, top := make([]string, len(q.Documents)), 0
	for i, d := range q.Documents {
		texts[i] = d.text
	}
	if q.TopN != nil {
		top = *q.TopN
	}
	var ranked []model.Ranked
	var tokens int
	if err := a.queue(r.Context(), len(texts), func() (err error) {
		ranked, tokens, err = a.model.Rank(r.Context(), *q.Query, texts, top)
		return err
	}); err != nil {
		return err
	}
	results := make([]object, len(ranked))
	for i, found := range ranked {
		if found.Err != nil {
			return setting.Errorf("%s: %w", setting.Path("documents"), errors.Unwrap(found.Err))
		}
		results[i] = object{"index": found.Index, "relevance_score": found.Score}
		if q.ReturnDocuments {
			results[i]["document"] = q.Documents[found.Index].whole
		}
	}
	return a.reply(w, object{"model": a.name, "results": results, "usage": object{"prompt_tokens": tokens, "total_tokens": tokens}})
}
