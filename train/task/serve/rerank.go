package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/train/model"
)

// A document is, in JSON, a text or an object with the key text.
type document string

func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(d))
	}
	var o struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(b, &o) != nil || o.Text == nil {
		return &json.UnmarshalTypeError{Value: "an element that is neither"}
	}
	*d = document(*o.Text)
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
	case q.TopN < 1:
		return setting.Errorf("%s must be at least 1, got %d", setting.Path("top_n"), q.TopN)
	}
	texts := make([]string, len(q.Documents))
	for i, d := range q.Documents {
		texts[i] = string(d)
	}
	var ranked []model.Ranked
	var tokens int
	if err := a.queue(r.Context(), len(texts), func() (err error) {
		ranked, tokens, err = a.model.Rank(r.Context(), *q.Query, texts, q.TopN)
		return err
	}); err != nil {
		return err
	}
	results := make([]object, len(ranked))
	for i, found := range ranked {
		if found.Err != nil {
			return setting.Errorf("%s: %w", setting.Path(fmt.Sprintf("documents[%d]", found.Index)), errors.Unwrap(found.Err))
		}
		results[i] = object{"index": found.Index, "relevance_score": found.Score}
		if q.ReturnDocuments {
			results[i]["document"] = object{"text": q.Documents[found.Index]}
		}
	}
	return a.reply(w, object{"model": a.name, "results": results, "usage": object{"prompt_tokens": tokens, "total_tokens": tokens}})
}
