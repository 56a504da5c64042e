package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"

	"github.com/heed-go/heed/internal/setting"
)

// embed answers with the vectors of texts.
func (a *api) embed(w http.ResponseWriter, r *http.Request, q *request) error {
	texts, err := a.texts(q.Input, "input")
	if err != nil {
		return err
	}
	if q.EncodingFormat != "float" && q.EncodingFormat != "base64" {
		return setting.Errorf("%s must be %s, got %.100q", setting.Path("encoding_format"), wants["encoding_format"], q.EncodingFormat)
	}
	var vectors [][]float32
	var tokens int
	if err := a.Queue(r.Context(), len(texts), func() (err error) {
		vectors, tokens, err = a.Model().Embed(r.Context(), texts)
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
			list[i]["embedding"] = inBase64(v)
		}
	}
	return a.Write(w, object{"object": "list", "data": list, "model": a.name, "usage": object{"prompt_tokens": tokens, "total_tokens": tokens}})
}

// inBase64 returns the bytes of v in base64, in little-endian order.
func inBase64(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}
