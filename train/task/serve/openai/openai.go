// Package openai answers requests in the form of OpenAI's HTTP API, so that programs and libraries that know this API
// can use a model of your own:
//
//	handler, err := serve.New(model, serve.Options{})
//	...
//	http.Handle("/v1/", openai.New(handler, "my-model"))
//	http.Handle("/", handler)
//
// The base URL for clients is then http://HOST/v1. These are the endpoints:
//
//	GET  /v1/models            the name of the model
//	GET  /v1/models/NAME       the same, if NAME is the model's name
//	POST /v1/chat/completions  the model's answer in a conversation; for text models that have a chat template
//	POST /v1/completions       the text that follows a prompt; for text models
//	POST /v1/embeddings        vectors of texts; for models with embeddings
//
// The requests share the queue and all limits of the serve.Handler. As there, a page of another site can't use them. An
// Authorization header is ignored: there are no passwords.
//
// Both endpoints for completions accept temperature, top_p, presence_penalty, frequency_penalty, max_tokens, stop (up
// to 4 texts), seed, stream and stream_options. They also accept top_k, min_p and repetition_penalty, which other
// services have added: see decode.Sampler. For those that a request leaves out, a published model's
// generation_config.json has the values, as transformers reads it: without "do_sample": true, the likeliest token is
// chosen. Other models draw at a temperature of 1: see decode.SamplerSettings. A temperature of 0 chooses the likeliest
// token, whatever top_k, top_p and min_p are. Without a seed, each answer is another draw. Without max_tokens, a
// completion has up to 16 tokens, and an answer in a conversation up to 1,024. In conversations, max_tokens is also
// called max_completion_tokens. A text ends earlier, with the finish_reason stop, at an end token, at one of stop or,
// in a conversation, at the mark that the chat template has after an answer.
//
// A conversation has messages of the roles system (or developer), user and assistant. Their content is a text, or a
// list of parts of the type text, which are joined as lines. The prompt of a completion, and the input of embeddings,
// is a text, a list of token ids, or a list of either. Ids stand for their text. Each prompt has one choice in the
// answer.
//
// Embeddings are lists of numbers or, with encoding_format base64, float32 in little-endian order. The number of
// dimensions is the model's: a request may say it, but not choose another.
//
// These fields are ignored: user, metadata, service_tier, store, safety_identifier, prompt_cache_key and
// parallel_tool_calls. The fields n, best_of, echo, suffix, logprobs, top_logprobs, logit_bias, tools, tool_choice and
// response_format may only have the value that changes nothing, such as an n of 1. For another value, and for any other
// field, the error names the field as param.
//
// The answer to a failed request is {"error": {"message": "…", "type": "…", "param": "…", "code": "…"}}, where param
// and code may be null. The type is invalid_request_error or, for statuses from 500, server_error. The status is one of
// package serve's, but an input that the model can't use has 400, and another model's name has 404 with the code
// model_not_found. If a streamed answer fails after it has begun, its last event is the error. Otherwise, it is [DONE].
package openai

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/serve"
)

// object is a JSON object.
type object = map[string]any

// An api answers the requests for one model.
type api struct {
	*serve.Handler
	name string // of the model
	made time.Time
}

// New returns an http.Handler for the model of h. Requests call the model by this name; if it is "", by the name of the
// task that it learned. Paths begin with /v1/. To end, call the Shutdown of h.
func New(h *serve.Handler, name string) http.Handler {
	if name == "" {
		name = h.Model().Config.Task.Name
	}
	a := &api{h, name, time.Now()}
	return h.API(map[string]serve.Endpoint{
		"/v1/models":           {Method: http.MethodGet, Serve: a.models},
		"/v1/models/":          {Method: http.MethodGet, Serve: a.models},
		"/v1/chat/completions": a.post(forChat, "messages", a.chat),
		"/v1/completions":      a.post(forCompletions, "prompt", a.complete),
		"/v1/embeddings":       a.post(forEmbeddings, "input", a.embed),
	}, func(header http.Header, e *serve.Error) any {
		if e.Status == http.StatusInternalServerError || e.Status == http.StatusGatewayTimeout {
			header.Set("X-Should-Retry", "false") // official clients would ask again at once
		}
		return failed(e)
	})
}

// post returns an Endpoint that reads requests, which may have some fields. The one for the model is called input.
func (a *api) post(fields, input string, answer func(w http.ResponseWriter, r *http.Request, q *request) error) serve.Endpoint {
	return serve.Endpoint{Method: http.MethodPost, Serve: func(w http.ResponseWriter, r *http.Request) error {
		body, err := a.Body(w, r)
		if err != nil {
			return err
		}
		q, err := read(body, fields)
		if err == nil && q.Model != "" { // official clients always send it
			err = a.named(q.Model)
		}
		if err == nil {
			err = answer(w, r, q)
		}
		return refused(err, input)
	}}
}

// refused returns err, with the status 400 if it is about the input, which is the field of this name, or about a
// setting.
func refused(err error, input string) error {
	if wrong := (*model.InputError)(nil); errors.As(err, &wrong) {
		err = setting.Errorf("%s: %w", setting.Path(input), wrong.Err)
	}
	if errors.As(err, new(*model.ConfigError)) && !errors.As(err, new(*serve.Error)) {
		return &serve.Error{Status: http.StatusBadRequest, Err: err}
	}
	return err
}

// models lists the model or, if the path has its name, describes it.
func (a *api) models(w http.ResponseWriter, r *http.Request) error {
	model := object{"id": a.name, "object": "model", "created": a.made.Unix(), "owned_by": "heed"}
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok {
		if err := a.named(name); err != nil {
			return err
		}
		return a.Write(w, model)
	}
	return a.Write(w, object{"object": "list", "data": []object{model}})
}

// named returns an error if the model has another name.
func (a *api) named(name string) error {
	if name == a.name {
		return nil
	}
	return &serve.Error{Status: http.StatusNotFound, Err: setting.Errorf("there is no %s %q: the name is %q", setting.Path("model"), text.Shorten(name, 50, 50), a.name)}
}

// failed returns the answer to a failed request.
func failed(e *serve.Error) any {
	answer := object{"message": text.OneLine(e.Err), "type": "invalid_request_error", "param": nil, "code": nil}
	if e.Status >= 500 {
		answer["type"] = "server_error"
	}
	var wrong *setting.Error
	if errors.As(e.Err, &wrong) && len(wrong.Paths()) > 0 {
		answer["param"] = wrong.Paths()[0]
		if e.Status == http.StatusNotFound {
			answer["code"] = "model_not_found"
		}
	}
	return object{"error": answer}
}
