package serve

import (
	"fmt"
	"net/http"

	"github.com/heed-go/heed/data"
)

// object is JSON's.
type object = map[string]any

// describe says what can be asked, and how, in OpenAPI 3.1.
func (h *Handler) describe(w http.ResponseWriter, _ *http.Request) error {
	rule := h.model.Config.Task
	paths := object{}
	for path, e := range h.endpoints {
		if operation := h.operation(path); operation != nil {
			operation["responses"].(object)["default"] = answered("an error, on one line", fields("error", text))
			paths[path] = object{map[string]string{http.MethodGet: "get", http.MethodPost: "post"}[e.method]: operation}
		}
	}
	return h.write(w, http.StatusOK, object{
		"openapi": "3.1.0",
		"info":    object{"title": "heed: " + rule.Name, "summary": rule.About, "version": "1"},
		"servers": []object{{"url": "."}},
		"paths":   paths,
	})
}

// operation describes an endpoint, but for its errors.
func (h *Handler) operation(path string) object {
	o := h.options
	switch path {
	case "/health":
		return operation("whether the service is there", nil, answered("it is, and so many inputs wait",
			fields("status", object{"const": "ok"}, "waiting", object{"type": "integer"})))
	case "/openapi.json":
		return operation("this description", nil, answered("OpenAPI 3.1", object{"type": "object"}))
	case "/predict":
		in := []any{
			"inputs", object{"type": "array", "items": text, "minItems": 1, "maxItems": o.MaxInputs},
			"scores", object{"type": "boolean", "default": false, "description": "whether answers have their log_prob"},
		}
		if h.model.Config.Task.Kind == data.KindPairs {
			in = append(in, "beam", object{"type": "integer", "default": 1, "minimum": 1, "maximum": o.MaxBeam})
		}
		answer := fields(
			"answer", text,
			"log_prob", object{"type": "number", "description": "the natural logarithm of the answer's probability"},
			"unknown", object{"type": "boolean", "description": "whether the input has symbols that training never saw"},
			"error", object{"type": "string", "description": "why the model can't take the input, which has no answer then"},
		)
		delete(answer, "required")
		return operation("answers inputs", h.body(fields(in...), "inputs"),
			answered("an answer to each input, in their order", fields("answers", object{"type": "array", "items": answer})))
	}
	return nil
}

var text = object{"type": "string"}

// fields is the schema of an object, of names and their schemas in turn, all of them required.
func fields(of ...any) object {
	properties, required := object{}, []any{}
	for i := 0; i < len(of); i += 2 {
		properties[of[i].(string)] = of[i+1]
		required = append(required, of[i])
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// body describes what is sent: JSON with no other keys than the schema's.
func (h *Handler) body(schema object, required ...string) object {
	schema["required"], schema["additionalProperties"] = required, false
	return object{
		"required":    true,
		"description": fmt.Sprintf("at most %d bytes", h.options.MaxBody),
		"content":     object{"application/json": object{"schema": schema}},
	}
}

func operation(summary string, body, answer object) object {
	o := object{"summary": summary, "responses": object{"200": answer}}
	if body != nil {
		o["requestBody"] = body
	}
	return o
}

// answered describes what is sent back.
func answered(what string, schema object) object {
	return object{"description": what, "content": object{"application/json": object{"schema": schema}}}
}
