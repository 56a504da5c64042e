package serve

import (
	"encoding/base64"
	"encoding/binary"
	"net/http"

	"github.com/heed-go/heed/internal/setting"
)

// embed answers with the vectors of texts.
func (a *openAI) embed(w http.ResponseWriter, r *http.Request, q *openAIRequest) error {
	texts, err := a.texts(q.Input, "input")
	if err != nil {
		return err
	}
	if q.EncodingFormat != "float" && q.EncodingFormat != "base64" {
		return setting.Errorf("%s must be %s, got %.100q", setting.Path("encoding_format"), fieldWants["encoding_format"], q.EncodingFormat)
	}
	var vectors [][]float32
	var tokens int
	if err := a.queue(r.Context(), len(texts), func() (err error) {
		vectors, tokens, err = a.model.Embed(r.Context(), texts)
		return err
	}); err != nil {
		return err
	}
	list := make([]object, len(vectors))
	for i, v := range vectors {
		if q.Dimensions != nil && *q.Dimensions != len(v) {
			return setting.Errorf("%s must be %d, the model's own, or left out, got %d", setting.Path("dimensions"), len(v), *q.Dimensions)
		}
		list[i] = object{"object": "embedding", "index": i, "embedding": v}
		if q.EncodingFormat == "base64" {
			b, _ := binary.Append(nil, binary.LittleEndian, v) // fails only for other types
			list[i]["embedding"] = base64.StdEncoding.EncodeToString(b)
		}
	}
	return a.reply(w, object{"object": "list", "data": list, "model": a.name, "usage": object{"prompt_tokens": tokens, "total_tokens": tokens}})
}
