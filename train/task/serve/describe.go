package serve

import (
	"fmt"
	"net/http"
	"strings"
)

// object is JSON's.
type object = map[string]any

// describe says what can be asked, and how, in OpenAPI 3.1.
func (h *Handler) describe(w http.ResponseWriter, _ *http.Request) error {
	rule := h.model.Config.Task
	paths := object{}
	for path, e := range h.endpoints {
		operation := h.operation(path)
		operation["responses"].(object)["default"] = answered("an error, on one line", "application/json", fields("error", textSchema))
		paths[path] = object{strings.ToLower(e.method): operation}
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
	const inJSON = "application/json"
	o := h.options
	switch path {
	case "/":
		return operation("a page to try it", nil, answered("the page", "text/html", textSchema))
	case "/openapi.json":
		return operation("this description", nil, answered("OpenAPI 3.1", inJSON, object{"type": "object"}))
	case "/health":
		return operation("whether the service is there", nil, answered("it is, and so many inputs wait, and sessions are open", inJSON,
			fields("status", object{"const": "ok"}, "waiting", object{"type": "integer"}, "sessions", object{"type": "integer"})))
	case "/generate":
		return operation("writes on from a text", h.body(fields(
			"prompt", object{"type": "string", "minLength": 1},
			"tokens", object{"type": "integer", "default": h.defaultTokens(), "minimum": 1, "maximum": o.MaxTokens},
			"temperature", object{"type": "number", "default": 1, "minimum": 0},
			"top_k", object{"type": "integer", "default": 0, "minimum": 0},
			"top_p", object{"type": "number", "default": 1, "exclusiveMinimum": 0, "maximum": 1},
			"seed", object{"type": "integer", "default": 1, "minimum": 0},
		), "prompt"), answered("events text, {\"text\": …}, and a last one: done, {\"reason\": \"tokens\", \"time\" or \"ending\"}, or error, {\"error\": …}", "text/event-stream", textSchema))
	case "/attention":
		list := object{"type": "array", "items": textSchema}
		weights := object{"type": "array", "items": object{"type": []string{"number", "null"}}, "description": "of a head: (rows, columns), row by row"}
		layer := fields("name", textSchema, "meaning", textSchema, "rows", list, "columns", list, "heads", object{"type": "array", "items": weights})
		return operation("what the model attends to while it answers an input", h.body(fields(
			"input", textSchema,
			"layer", object{"type": "string", "default": "", "description": "only layers whose name has this in it"},
		), "input"), answered("attention weights", inJSON, fields("input", textSchema, "answer", textSchema, "key", textSchema, "layers", object{"type": "array", "items": layer})))
	}
	in := []any{
		"inputs", object{"type": "array", "items": textSchema, "minItems": 1, "maxItems": o.MaxInputs},
		"scores", object{"type": "boolean", "default": false, "description": "whether answers have their log_prob"},
	}
	if h.model.Config.Kind().Beams {
		in = append(in, "beam", object{"type": "integer", "default": 1, "minimum": 1, "maximum": o.MaxBeam})
	}
	answer := fields(
		"answer", textSchema,
		"log_prob", object{"type": "number", "description": "the natural logarithm of the answer's probability"},
		"unknown", object{"type": "boolean", "description": "whether the input has symbols that training never saw"},
		"error", object{"type": "string", "description": "why the model can't take the input, which has no answer then"},
	)
	delete(answer, "required")
	return operation("answers inputs", h.body(fields(in...), "inputs"),
		answered("an answer to each input, in their order", inJSON, fields("answers", object{"type": "array", "items": answer})))
}

var textSchema = object{"type": "string"}

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
func answered(what, media string, schema object) object {
	return object{"description": what, "content": object{media: object{"schema": schema}}}
}
