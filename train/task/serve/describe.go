package serve

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// object is a JSON object.
type object = map[string]any

// describe answers with an OpenAPI 3.1 description of the endpoints.
func (h *Handler) describe(w http.ResponseWriter, _ *http.Request) error {
	rule := h.model.Config.Task
	paths := object{}
	for path, e := range h.endpoints {
		operation := h.operation(path)
		operation["responses"].(object)["default"] = answered("an error, as one line of text", "application/json", fields("error", textSchema))
		paths[path] = object{strings.ToLower(e.method): operation}
	}
	return h.reply(w, object{
		"openapi": "3.1.0",
		"info":    object{"title": "heed: " + rule.Name, "summary": rule.About, "version": "1"},
		"servers": []object{{"url": "."}},
		"paths":   paths,
	})
}

// operation describes an endpoint without its error answers.
func (h *Handler) operation(path string) object {
	const inJSON = "application/json"
	o := h.options
	switch path {
	case "/":
		return operation("a page for trying the model", nil, answered("the page", "text/html", textSchema))
	case "/openapi.json":
		return operation("this description", nil, answered("OpenAPI 3.1", inJSON, object{"type": "object"}))
	case "/health":
		return operation("whether the service runs, and how busy it is", nil, answered("the service runs; waiting is the number of inputs that wait, sessions the number of generations and attention requests in progress", inJSON,
			fields("status", object{"const": "ok"}, "waiting", object{"type": "integer"}, "sessions", object{"type": "integer"})))
	case "/generate":
		own, prompt := h.model.Sampler(), object{"type": "string", "minLength": 1}
		if h.model.Config.Task.Published.Tokens > 0 { // it has a token to begin with
			prompt = textSchema
		}
		return operation("continues a text", h.body(fields(
			"prompt", prompt,
			"tokens", object{"type": "integer", "default": h.defaultTokens(), "minimum": 1, "maximum": o.MaxTokens},
			"temperature", object{"type": "number", "default": own.Temperature, "minimum": 0},
			"top_k", object{"type": "integer", "default": own.TopK, "minimum": 0},
			"top_p", object{"type": "number", "default": own.TopP, "minimum": 0, "maximum": 1},
			"min_p", object{"type": "number", "default": own.MinP, "minimum": 0, "maximum": 1},
			"repetition_penalty", object{"type": "number", "default": own.RepetitionPenalty, "minimum": 0, "maximum": 100},
			"presence_penalty", object{"type": "number", "default": own.PresencePenalty, "minimum": -2, "maximum": 2},
			"frequency_penalty", object{"type": "number", "default": own.FrequencyPenalty, "minimum": -2, "maximum": 2},
			"seed", object{"type": "integer", "default": 1, "minimum": 0},
			"stop", object{"type": []string{"string", "array"}, "items": textSchema, "description": "the text ends before the first of these texts"},
		), "prompt"), answered("text events, {\"text\": …}, and a last event: done, {\"reason\": \"tokens\", \"stop\", \"time\" or \"ending\", \"cut\": true if the prompt is longer than the model's context}, or error, {\"error\": …}", "text/event-stream", textSchema))
	case "/attention":
		list := object{"type": "array", "items": textSchema}
		weights := object{"type": "array", "items": object{"type": []string{"number", "null"}}, "description": "weights of one head, with shape (rows, columns), row by row"}
		layer := fields("name", textSchema, "meaning", textSchema, "rows", list, "columns", list, "heads", object{"type": "array", "items": weights})
		return operation("returns the model's attention weights for an input", h.body(fields(
			"input", textSchema,
			"layer", object{"type": "string", "default": "", "description": "only layers whose name contains this text; empty for all layers"},
		), "input"), answered("attention weights", inJSON, fields("input", textSchema, "answer", textSchema, "cut", cutSchema, "key", textSchema, "layers", object{"type": "array", "items": layer})))
	}
	input := object{"type": []string{"string", "array"}, "items": textSchema, "minItems": 1, "maxItems": o.MaxInputs}
	if h.model.Config.Task.Pairs {
		input["description"] = "an input is two texts with a tab between them: " + strings.ToLower(strings.Join(h.does.Parts, ", "))
	}
	requestFields := []any{"input", input}
	if h.maxTop() > 0 {
		requestFields = append(requestFields, "top", object{"type": "integer", "default": 0, "minimum": 0, "maximum": h.maxTop(), "description": fmt.Sprintf("number of alternatives per input; at most %d in all", o.MaxTop)})
	}
	if h.does.Beam > 1 {
		requestFields = append(requestFields, "beam", object{"type": "integer", "default": h.model.DefaultBeam(), "minimum": 1, "maximum": o.MaxBeam})
	}
	if names := h.does.Entities; names != nil {
		requestFields = append(requestFields, "entities", object{"enum": names, "default": names[0], "description": "how tags become entities"})
	}
	if h.does.Labels == nil {
		requestFields = append(requestFields,
			"labels", object{"type": []string{"string", "array"}, "items": textSchema, "minItems": 1, "maxItems": o.MaxInputs, "description": fmt.Sprintf("labels to choose among in place of the model's own; at most %d in all, times the number of inputs", o.MaxInputs)},
			"template", object{"type": "string", "default": "This example is {}.", "description": "the sentence about a label, with {} in the label's place"},
			"several", object{"type": "boolean", "default": false, "description": "whether several labels, or none, may be right for an input"})
	}
	if h.does.NoAnswer {
		requestFields = append(requestFields, "no_answer", object{"type": "boolean", "default": false, "description": "whether the answer may be empty: the context has none. A model that learned such questions always may say so"})
	}
	probability := object{"type": "number", "minimum": 0, "maximum": 1, "description": "the answer's probability in the model"}
	answer := fields(
		"input", textSchema,
		"probability", probability,
		"cut", cutSchema,
		"unknown", object{"type": "boolean", "description": "whether the input has letters, or mostly words, that training never saw"},
		"alternatives", object{"type": "array", "items": fields("answer", textSchema, "probability", probability), "description": "with top: the likeliest answers; the first is the answer"},
		"error", object{"type": "string", "description": "why the model has no answer to the input"},
	)
	maps.Copy(answer["properties"].(object), h.does.Schema)
	answer["required"] = []string{"input"}
	return operation("answers inputs", h.body(fields(requestFields...), "input"),
		answered("one entry per input, in the order of the inputs", inJSON, fields("answers", object{"type": "array", "items": answer})))
}

var (
	textSchema = object{"type": "string"}
	cutSchema  = object{"type": "boolean", "description": "whether the model ignored a part of the input, which is longer than its context"}
)

// fields returns the schema of an object. The arguments are names and their schemas in turn. All names are required.
func fields(pairs ...any) object {
	properties, required := object{}, []any{}
	for i := 0; i < len(pairs); i += 2 {
		properties[pairs[i].(string)] = pairs[i+1]
		required = append(required, pairs[i])
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// body describes the body of a request: JSON that has only the schema's keys.
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

// answered describes an answer.
func answered(what, media string, schema object) object {
	return object{"description": what, "content": object{media: object{"schema": schema}}}
}
