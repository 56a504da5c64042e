package serve

import (
	"net/http"
	"strconv"

	"github.com/heed-go/heed/internal/heatmap"
	"github.com/heed-go/heed/train/model"
)

// An attentionRequest asks for the model's attention weights for an input.
type attentionRequest struct {
	Input *string `json:"input"`
	Layer string  `json:"layer"`
}

// An attentionLayer has the attention weights of one layer. Its Heads replace the Layer's in JSON.
type attentionLayer struct {
	heatmap.Layer
	Heads []weights `json:"heads"`
}

// weights are encoded in JSON with four digits. A weight that isn't a finite number becomes null.
type weights []float32

func (w weights) MarshalJSON() ([]byte, error) {
	text := []byte{'['}
	for i, x := range w {
		if i > 0 {
			text = append(text, ',')
		}
		if x-x != 0 {
			text = append(text, "null"...)
		} else {
			text = strconv.AppendFloat(text, float64(x), 'g', 4, 32)
		}
	}
	return append(text, ']'), nil
}

// attention answers with the model's attention weights for an input.
func (h *Handler) attention(w http.ResponseWriter, r *http.Request) error {
	var request attentionRequest
	if err := h.read(w, r, &request, map[string]string{"input": "a text", "layer": "a part of a layer's name"}); err != nil {
		return err
	}
	if request.Input == nil {
		return failf(http.StatusBadRequest, "input must be a text, got none")
	}
	return h.inSession(func() error { // until the client has the whole answer, which may have megabytes
		var a *model.Attention
		var cut bool
		if err := h.queue(r.Context(), 1, func() (err error) {
			cut = h.model.Cuts(*request.Input)
			a, err = h.model.Attention(*request.Input, request.Layer)
			return err
		}); err != nil {
			return inputError(err)
		}
		layers := make([]attentionLayer, len(a.Layers))
		for i, l := range a.Layers {
			layers[i].Layer = heatmap.Layer(l)
			for _, head := range l.Heads {
				layers[i].Heads = append(layers[i].Heads, head)
			}
		}
		return h.reply(w, struct {
			Input  string           `json:"input"`
			Answer string           `json:"answer"`
			Cut    bool             `json:"cut"`
			Key    string           `json:"key"`
			Layers []attentionLayer `json:"layers"`
		}{a.Input, a.Answer, cut, a.Key, layers})
	})
}
