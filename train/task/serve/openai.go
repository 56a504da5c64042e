package serve

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// openAI answers the requests of OpenAI's API.
type openAI struct {
	*Handler
	name string // of the model
	made time.Time
}

// OpenAI returns an http.Handler that answers requests in the form of OpenAI's HTTP API, so that programs and libraries
// that know this API can use a model of your own:
//
//	handler, err := serve.New(model, serve.Options{})
//	...
//	http.Handle("/v1/", handler.OpenAI("my-model"))
//	http.Handle("/", handler)
//
// Requests call the model by this name; if it is "", by the name of the task that it learned. To end, call the Shutdown
// of h.
//
// The base URL for clients is then http://HOST/v1. These are the endpoints:
//
//	GET  /v1/models            the name of the model
//	GET  /v1/models/NAME       the same, if NAME is the model's name
//	POST /v1/chat/completions  the model's answer in a conversation; for text models that have a chat template
//	POST /v1/completions       the text that follows a prompt; for text models
//	POST /v1/embeddings        vectors of texts; for models with embeddings
//	POST /v1/rerank            documents in the order in which they answer a query; for models that score two texts
//
// The requests share the queue and all limits of the Handler. As there, a page of another site can't use them. An
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
// OpenAI has no rerank; the clients of Jina, Cohere and vLLM know it. A request has a query and documents, which are
// texts or objects with the key text. With top_n, the answer has up to this number of documents. Its results have the
// index of a document, its relevance_score and, with return_documents, the document as an object, best first: see
// model.Model.Rank. If one of the documents can't be read, the request fails.
//
// These fields are ignored: user, metadata, service_tier, store, safety_identifier, prompt_cache_key and
// parallel_tool_calls. The fields n, best_of, echo, suffix, logprobs, top_logprobs, logit_bias, tools, tool_choice,
// response_format, rank_fields and truncation may only have the value that changes nothing, such as an n of 1. For
// another value, and for any other field, the error names the field as param.
//
// The answer to a failed request is {"error": {"message": "…", "type": "…", "param": "…", "code": "…"}}, where param
// and code may be null. The type is invalid_request_error or, for statuses from 500, server_error. The status is one of
// the other endpoints', but an input that the model can't use has 400, and another model's name has 404 with the code
// model_not_found. If a streamed answer fails after it has begun, its last event is the error. Otherwise, it is [DONE].
func (h *Handler) OpenAI(name string) http.Handler {
	a := &openAI{h, cmp.Or(name, h.model.Config.Task.Name), time.Now()}
	endpoints := map[string]endpoint{
		"/v1/models":           {http.MethodGet, a.models},
		"/v1/models/":          {http.MethodGet, a.models},
		"/v1/chat/completions": a.post(forChat, "messages", a.chat),
		"/v1/completions":      a.post(forCompletions, "prompt", a.complete),
		"/v1/embeddings":       a.post(forEmbeddings, "input", a.embed),
		"/v1/rerank":           a.post(forRerank, "documents", a.rerank),
	}
	failed := func(header http.Header, e *statusError) any {
		if e.status == http.StatusInternalServerError || e.status == http.StatusGatewayTimeout {
			header.Set("X-Should-Retry", "false") // official clients would ask again at once
		}
		return openAIError(e)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.answerRequest(w, r, endpoints, failed) })
}

// post returns an endpoint that reads requests, which may have some fields. The one for the model is called input.
func (a *openAI) post(fields, input string, answer func(w http.ResponseWriter, r *http.Request, q *openAIRequest) error) endpoint {
	return endpoint{http.MethodPost, func(w http.ResponseWriter, r *http.Request) error {
		body, err := a.readBody(w, r)
		if err != nil {
			return err
		}
		q, err := readOpenAI(body, fields)
		if err == nil && q.Model != "" { // official clients always send it
			err = a.named(q.Model)
		}
		if err == nil {
			err = answer(w, r, q)
		}
		return badInput(err, input)
	}}
}

// models lists the model or, if the path has its name, describes it.
func (a *openAI) models(w http.ResponseWriter, r *http.Request) error {
	model := object{"id": a.name, "object": "model", "created": a.made.Unix(), "owned_by": "heed"}
	if name, ok := strings.CutPrefix(r.URL.Path, "/v1/models/"); ok {
		if err := a.named(name); err != nil {
			return err
		}
		return a.reply(w, model)
	}
	return a.reply(w, object{"object": "list", "data": []object{model}})
}

// named returns an error if the model has another name.
func (a *openAI) named(name string) error {
	if name == a.name {
		return nil
	}
	return &statusError{status: http.StatusNotFound, err: setting.Errorf("there is no %s %q: the name is %q", setting.Path("model"), text.Shorten(name, 50, 50), a.name)}
}

// openAIError returns the answer to a failed request.
func openAIError(e *statusError) any {
	answer := object{"message": text.OneLine(e.err), "type": "invalid_request_error", "param": nil, "code": nil}
	if e.status >= 500 {
		answer["type"] = "server_error"
	}
	var wrong *setting.Error
	if errors.As(e.err, &wrong) && len(wrong.Paths()) > 0 {
		answer["param"] = wrong.Paths()[0]
		if e.status == http.StatusNotFound {
			answer["code"] = "model_not_found"
		}
	}
	return object{"error": answer}
}
