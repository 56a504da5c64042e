package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
)

// chatML is a published chat template.
const chatML = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// published opens a model of package pretrained with a context of 32 tokens, a chat template, and a tokenizer for
// characters and roles.
func published(t testing.TB, name, template string) *model.Model {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(filepath.Join("../../../layers/pretrained/testdata", name))))
	vocab, added := map[string]int{}, []any{}
	for id, token := range []string{"<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant"} {
		vocab[token] = id
		added = append(added, map[string]any{"id": id, "content": token, "special": id < 5})
	}
	for _, c := range "abcdefghijklmnopqrstuvwxyz .?\n" {
		vocab[string(c)] = len(vocab)
	}
	for name, content := range map[string]any{
		"tokenizer.json": map[string]any{
			"version": "1.0", "decoder": map[string]any{"type": "Fuse"}, "added_tokens": added,
			"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}, "unk_token": "<unk>"},
		},
		"tokenizer_config.json": map[string]any{"chat_template": template},
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), must.Get(json.Marshal(content))(t), 0o666))
	}
	return must.Get(model.Open(dir))(t)
}

// startOpenAI starts a service of the model fox on the loopback interface.
func startOpenAI(t testing.TB, m *model.Model, o Options) (*Handler, *httptest.Server) {
	t.Helper()
	h := must.Get(New(m, o))(t)
	s := httptest.NewServer(h.OpenAI("fox"))
	t.Cleanup(s.Close)
	return h, s
}

// An openAIAnswer has what answers and events have in common.
type openAIAnswer struct {
	ID, Object, Model string
	Choices           []struct {
		Index   int
		Text    string
		Message struct{ Role, Content string }
		Delta   struct {
			Role    string
			Content *string
		}
		FinishReason string `json:"finish_reason"`
	}
	Data []struct {
		ID        string
		Index     int
		Embedding any
	}
	Results []struct {
		Index    int
		Score    float64 `json:"relevance_score"`
		Document json.RawMessage
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	Error struct{ Message, Type, Param, Code string }
}

// postOpenAI sends a request. For a stream, it returns all events, without [DONE].
func postOpenAI(ctx context.Context, url, body string) (status int, list []openAIAnswer, err error) {
	got, err := post(ctx, url, body)
	if err != nil {
		return 0, nil, err
	}
	parts := []string{got.body}
	if got.header.Get("Content-Type") == "text/event-stream" {
		whole, done := strings.CutSuffix(got.body, "data: [DONE]\n\n")
		parts = strings.SplitAfter(strings.TrimSuffix(whole, "\n\n"), "\n\n")
		if last := parts[len(parts)-1]; done == strings.Contains(last, `{"error":`) {
			return 0, nil, fmt.Errorf("the stream ends with %q and [DONE]: %t", last, done)
		}
	}
	for _, part := range parts {
		var a openAIAnswer
		if err := json.Unmarshal([]byte(strings.TrimPrefix(part, "data: ")), &a); err != nil {
			return 0, nil, fmt.Errorf("%q: %w", part, err)
		}
		list = append(list, a)
	}
	return got.status, list, nil
}

// askOpenAI sends a request, checks the status of the answer, and returns its events or the answer itself.
func askOpenAI(t *testing.T, url, body string, status int) []openAIAnswer {
	t.Helper()
	got, list, err := postOpenAI(t.Context(), url, body)
	if err != nil || got != status {
		t.Fatalf("%s %s: got status %d, %+v, %v, want %d", url, body, got, list, err, status)
	}
	return list
}

// joined returns the text of an answer with one choice, or of its events, and the reason for its end.
func joined(list []openAIAnswer) (text, finish string) {
	for _, a := range list {
		for _, c := range a.Choices {
			text, finish = text+c.Text+c.Message.Content, c.FinishReason
			if c.Delta.Content != nil {
				text += *c.Delta.Content
			}
		}
	}
	return text, finish
}

// A wrong request gets the status, the param and the code that official clients expect.
func TestOpenAIRefused(t *testing.T) {
	h := must.Get(New(writer(t), Options{MaxInputs: 3, MaxTokens: 50, MaxBody: 2000}))(t)
	a := h.OpenAI("fox")
	const (
		completions, chat, embeddings = "POST /v1/completions", "POST /v1/chat/completions", "POST /v1/embeddings"
		said                          = `"messages": [{"role": "user", "content": "The"}]`
	)
	for _, test := range []struct {
		what, body  string
		status      int
		param, code string
		words       string
	}{
		{"GET /v1/nothing", "", 404, "", "", "has no endpoint"},
		{"GET /v1/models/The\x1b[31m", "", 404, "model", "model_not_found", `there is no model "The\\x1b[31m": the name is "fox"`},
		{"GET /v1/completions", "", 405, "", "", "must be POST"},
		{completions, `{"model": "gpt", "prompt": "The"}`, 404, "model", "model_not_found", `there is no model "gpt": the name is "fox"`},
		{completions, `{"prompt": "` + strings.Repeat("a", 2000) + `"}`, 413, "", "", "at most 2000 bytes"},
		{completions, `{`, 400, "", "", "the body must be JSON"},
		{completions, `[]`, 400, "", "", "must be an object"},
		{completions, `{"prompt": "a", "Seed": 1}`, 400, "Seed", "", "doesn't know Seed"},
		{completions, `{"prompt": "a", "messages": []}`, 400, "messages", "", "doesn't know messages"},
		{completions, `{}`, 400, "prompt", "", "prompt must be a text, a list of token ids, or a list of either, with 1 to 3 elements, got 0"},
		{completions, `{"prompt": null}`, 400, "prompt", "", "got 0"},
		{completions, `{"prompt": []}`, 400, "prompt", "", "got 0"},
		{completions, `{"prompt": ["a","a","a","a"]}`, 400, "prompt", "", "got 4"},
		{completions, `{"prompt": [null]}`, 400, "prompt", "", "got null"},
		{completions, `{"prompt": [1, null]}`, 400, "prompt", "", "got null"},
		{completions, `{"prompt": [1, "a"]}`, 400, "prompt", "", "got string"},
		{completions, `{"prompt": ["a", 1]}`, 400, "prompt", "", "got number"},
		{completions, `{"prompt": {}}`, 400, "prompt", "", "got object"},
		{completions, `{"prompt": [1.5]}`, 400, "prompt", "", "got number 1.5"},
		{completions, `{"prompt": [99]}`, 400, "prompt", "", "not from tiktoken"},
		{completions, `{"prompt": "文"}`, 400, "prompt", "", "文"},
		{completions, `{"prompt": "The", "n": 2}`, 400, "n", "", "n can't be 2 here: leave it out, or set it to 1"},
		{completions, `{"prompt": "The", "best_of": 2}`, 400, "best_of", "", "best_of can't be 2"},
		{completions, `{"prompt": "The", "echo": true}`, 400, "echo", "", "echo can't be true"},
		{completions, `{"prompt": "The", "suffix": "x"}`, 400, "suffix", "", "suffix can't be"},
		{completions, `{"prompt": "The", "logprobs": 0}`, 400, "logprobs", "", "logprobs can't be 0"},
		{completions, `{"prompt": "The", "logit_bias": {"5": 1}}`, 400, "logit_bias", "", "logit_bias can't be"},
		{completions, `{"prompt": "The", "temperature": -1}`, 400, "temperature", "", "temperature must be finite and at least 0, got -1"},
		{completions, `{"prompt": "The", "temperature": "hot"}`, 400, "temperature", "", "temperature must be a number, got string"},
		{completions, `{"prompt": "The", "temperature": 0, "top_p": 1.1}`, 400, "top_p", "", "top_p must be from 0 to 1, got 1.1"},
		{completions, `{"prompt": "The", "max_tokens": 51}`, 400, "max_tokens", "", "max_tokens must be from 1 to 50, got 51"},
		{completions, `{"prompt": "The", "max_tokens": 0}`, 400, "max_tokens", "", "max_tokens must be from 1 to 50, got 0"},
		{completions, `{"prompt": "The", "stop": ["a","b","c","d","e"]}`, 400, "stop", "", "up to 4 texts"},
		{completions, `{"prompt": "The", "stop": [1]}`, 400, "stop", "", "up to 4 texts"},
		{completions, `{"prompt": "The", "stop": ""}`, 400, "stop", "", "stop must be a text"},
		{completions, `{"prompt": "The", "seed": 1.5}`, 400, "seed", "", "seed must be a whole number"},
		{completions, `{"prompt": "The", "stream": "yes"}`, 400, "stream", "", "stream must be true or false"},
		{completions, `{"prompt": "The", "stream_options": {"include_usage": 1}}`, 400, "stream_options.include_usage", "", "include_usage"},
		{chat, `{}`, 400, "messages", "", "messages must be a list of messages"},
		{chat, `{"messages": "The"}`, 400, "messages", "", "messages must be a list of messages"},
		{chat, `{"messages": [{"role": 1}]}`, 400, "messages.role", "", "messages.role must be"},
		{chat, `{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}]}`, 400, "messages[1].role", "", `must be system, developer, user or assistant, got "tool"`},
		{chat, `{"messages": [{"role": "user", "content": null}]}`, 400, "messages[0].content", "", "must be a text"},
		{chat, `{"messages": [{"role": "user"}]}`, 400, "messages[0].content", "", "must be a text"},
		{chat, `{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]}`, 400, "messages[0].content[1]", "", `got the type "image_url": the model reads only text`},
		{chat, `{` + said + `, "tools": [{}]}`, 400, "tools", "", "tools can't be"},
		{chat, `{` + said + `, "functions": [{}]}`, 400, "functions", "", "functions can't be"},
		{chat, `{` + said + `, "chat_template_kwargs": {"thinking": true}}`, 400, "chat_template_kwargs", "", "chat_template_kwargs can't be"},
		{chat, `{` + said + `, "tool_choice": "required"}`, 400, "tool_choice", "", "tool_choice can't be"},
		{chat, `{` + said + `, "response_format": {"type": "json_object"}}`, 400, "response_format", "", "response_format can't be"},
		{chat, `{` + said + `, "logprobs": true}`, 400, "logprobs", "", "logprobs can't be true"},
		{chat, `{` + said + `, "max_completion_tokens": 51}`, 400, "max_completion_tokens", "", "max_completion_tokens must be from 1 to 50"},
		{chat, `{` + said + `}`, 400, "messages", "", "published model"},
		{embeddings, `{}`, 400, "input", "", "input must be"},
		{embeddings, `{"input": "a", "encoding_format": "int8"}`, 400, "encoding_format", "", `must be float or base64, got "int8"`},
		{embeddings, `{"input": "a", "temperature": 1}`, 400, "temperature", "", "doesn't know temperature"},
		{embeddings, `{"input": "a"}`, 400, "input", "", "only models of kind embed"},
	} {
		method, path, _ := strings.Cut(test.what, " ")
		w := recorded(a, method, path, strings.NewReader(test.body))
		body := w.Body.String()
		var got openAIAnswer
		if err := json.Unmarshal([]byte(body), &got); err != nil || strings.ContainsAny(body, "\x1b\x7f") || strings.Count(body, "\n") != 1 || len(body) > 1000 {
			t.Errorf("%s %s: got %q, %v, want one line of JSON", test.what, test.body, body, err)
		}
		if e := got.Error; w.Code != test.status || e.Param != test.param || e.Code != test.code || e.Type != "invalid_request_error" || !strings.Contains(e.Message, strings.ReplaceAll(test.words, `\\`, `\`)) {
			t.Errorf("%s %.200s: got status %d and %s; want %+v", test.what, test.body, w.Code, body, test)
		}
	}
}

// Values that change nothing, and fields that are ignored, are accepted.
func TestOpenAIAccepted(t *testing.T) {
	for _, test := range []struct {
		endpoint string
		body     string
	}{
		{forCompletions, `{"model": "fox", "prompt": "The", "n": 1, "best_of": 1, "echo": false, "suffix": null, "logprobs": null, "logit_bias": {}, "user": "me"}`},
		{forChat, `{"messages": [], "n": null, "tools": [ ], "tool_choice": "none", "response_format": {"type": "text"}, "logprobs": false, "top_logprobs": 0, "store": false, "metadata": {"a": "b"}, "service_tier": "auto", "parallel_tool_calls": true, "functions": [], "function_call": "auto", "modalities": ["text"], "verbosity": "medium", "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": false}}`},
		{forCompletions, `{"prompt": "The", "temperature": null, "top_p": null, "max_tokens": null, "stop": null, "seed": -1, "stream": null, "stream_options": null}`},
	} {
		q := must.Get(readOpenAI([]byte(test.body), test.endpoint))(t)
		own := decode.Sampler{Temperature: 0.5, TopK: 7}
		if o, err := q.options(own, 9, 50); err != nil || o.Sampler != own || o.MaxTokens != 9 {
			t.Errorf("%s: got %+v, %v, want the defaults", test.body, o, err)
		}
	}
	for body, want := range map[string]decode.Sampler{
		`{"temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.1}`: {},
		`{"temperature": 0.5, "top_p": 0}`:                           {Temperature: 0.5, TopP: 5e-324},
	} {
		q := must.Get(readOpenAI([]byte(body), forCompletions))(t)
		if o, err := q.options(decode.Sampler{}, 9, 50); err != nil || o.Sampler != want {
			t.Errorf("%s: got %+v, %v, want %+v", body, o.Sampler, err, want)
		}
	}
}

// With Qwen 3's template, enable_thinking decides whether the model reads empty thoughts. With ChatML, it does nothing.
func TestOpenAIThinking(t *testing.T) {
	f := must.Get(os.Open("../../../data/tokenizer/testdata/chat.json.gz"))(t)
	defer f.Close()
	var cases struct{ Templates []struct{ Name, Text string } }
	must.Do(t, json.NewDecoder(must.Get(gzip.NewReader(f))(t)).Decode(&cases))
	templates := map[string]string{"ChatML": chatML}
	for _, c := range cases.Templates {
		templates[c.Name] = c.Text
	}
	for _, name := range []string{"ChatML", "Qwen3"} {
		_, s := startOpenAI(t, published(t, "llama", templates[name]), Options{})
		var tokens []int
		for _, more := range []string{"", `, "chat_template_kwargs": {"enable_thinking": true}`, `, "chat_template_kwargs": {"enable_thinking": false}`} {
			list := askOpenAI(t, s.URL+"/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1`+more+`}`, 200)
			tokens = append(tokens, list[0].Usage.PromptTokens)
		}
		if tokens[1] != tokens[0] || (tokens[2] > tokens[0]) != (name == "Qwen3") {
			t.Errorf("%s: the prompts have %d tokens", name, tokens)
		}
	}
}

// Without a seed, answers differ.
func TestOpenAISeed(t *testing.T) {
	var seeds []uint64
	for range 2 {
		o := must.Get(new(openAIRequest).options(decode.Sampler{}, 1, 1))(t)
		seeds = append(seeds, o.Seed)
	}
	if seeds[0] == seeds[1] {
		t.Errorf("two requests have the seed %d", seeds[0])
	}
}

func TestOpenAIModels(t *testing.T) {
	_, s := startOpenAI(t, writer(t), Options{})
	for path, want := range map[string]string{
		"/v1/models":     `{"data":[{"created":1,"id":"fox","object":"model","owned_by":"heed"}],"object":"list"}`,
		"/v1/models/fox": `{"created":1,"id":"fox","object":"model","owned_by":"heed"}`,
	} {
		got := must.Get(http.Get(s.URL + path))(t)
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		i, j := bytes.Index(body, []byte(`:1`)), bytes.Index(body, []byte(`,"id"`))
		if got := string(body[:i+2]) + string(body[j:]); got != want+"\n" {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// Completions are the texts of Model.Generate, one per prompt, in one piece and in events.
func TestOpenAICompletions(t *testing.T) {
	m := writer(t)
	h, s := startOpenAI(t, m, Options{})
	coder := []int{}
	for _, c := range "fox" {
		for id := range 30 {
			if text, err := (&openAI{Handler: h}).decode([]int{id}); err == nil && text == string(c) {
				coder = append(coder, id)
			}
		}
	}
	ids, _ := json.Marshal(coder)
	generate := func(prompt string, o model.GenerateOptions) (string, model.Generated) {
		var b strings.Builder
		g := must.Get(m.Generate(t.Context(), &b, model.Prompt{Text: prompt}, o))(t)
		return b.String(), g
	}
	sampler := decode.Sampler{Temperature: 0.7, TopK: 9, TopP: 0.9}
	stop := func() string { text, _ := generate("The", model.GenerateOptions{MaxTokens: 16}); return text[5:7] }()
	for _, test := range []struct {
		body    string // without its end
		prompts []string
		o       model.GenerateOptions
	}{
		{`{"prompt": "The", "seed": 3, "temperature": 0.7, "top_k": 9, "top_p": 0.9, "max_tokens": 20`, []string{"The"}, model.GenerateOptions{Sampler: sampler, Seed: 3, MaxTokens: 20}},
		{`{"prompt": ["The", "quick"], "temperature": 0`, []string{"The", "quick"}, model.GenerateOptions{MaxTokens: 16}},
		{`{"prompt": [` + string(ids) + `, "quick"], "temperature": 0`, []string{"fox", "quick"}, model.GenerateOptions{MaxTokens: 16}},
		{`{"prompt": ` + string(ids) + `, "temperature": 0`, []string{"fox"}, model.GenerateOptions{MaxTokens: 16}},
		{fmt.Sprintf(`{"prompt": "The", "temperature": 0, "stop": [%q]`, stop), []string{"The"}, model.GenerateOptions{MaxTokens: 16, Stop: []string{stop}}},
	} {
		for _, streamed := range []bool{false, true} {
			body := test.body + `}`
			if streamed {
				body = test.body + `, "stream": true, "stream_options": {"include_usage": true}}`
			}
			list := askOpenAI(t, s.URL+"/v1/completions", body, 200)
			read, written := 0, 0
			for i, prompt := range test.prompts {
				want, g := generate(prompt, test.o)
				read, written = read+g.PromptTokens, written+g.Tokens
				text, finish := "", ""
				for _, a := range list {
					for _, c := range a.Choices {
						if c.Index == i {
							text, finish = text+c.Text, c.FinishReason
						}
					}
				}
				if text != want || finish != g.Finish {
					t.Errorf("%s: got %q, %s for prompt %d, want %q, %s", body, text, finish, i, want, g.Finish)
				}
			}
			last := list[len(list)-1]
			if u := last.Usage; u == nil || u.PromptTokens != read || u.CompletionTokens != written || u.TotalTokens != read+written || streamed && len(last.Choices) != 0 {
				t.Errorf("%s: got %+v at the end, want usage %d and %d", body, last, read, written)
			}
			if first := list[0]; first.Object != "text_completion" || first.Model != "fox" || !strings.HasPrefix(first.ID, "cmpl-") || first.ID != last.ID {
				t.Errorf("%s: got %+v", body, first)
			}
		}
	}
}

// An answer in a conversation is the text of Model.Generate, in one piece and in events, of which the first has the
// role and the last the reason for the end.
func TestOpenAIChat(t *testing.T) {
	m := published(t, "llama", chatML)
	_, s := startOpenAI(t, m, Options{})
	conversation := []tokenizer.Message{{Role: "system", Content: "a"}, {Role: "user", Content: "b\nc"}}
	const messages = `{"messages": [{"role": "developer", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}]`
	for seed := range 4 {
		for _, end := range []string{``, `, "max_completion_tokens": 1`} {
			o := model.GenerateOptions{Sampler: decode.Sampler{Temperature: 1, TopP: 1}, Seed: uint64(seed)}
			if end != "" {
				o.MaxTokens = 1
			}
			var b strings.Builder
			g := must.Get(m.Generate(t.Context(), &b, model.Prompt{Messages: conversation}, o))(t)
			for _, streamed := range []bool{false, true} {
				body := fmt.Sprintf(`%s, "temperature": 1, "seed": %d%s, "stream": %t}`, messages, seed, end, streamed)
				list := askOpenAI(t, s.URL+"/v1/chat/completions", body, 200)
				if text, finish := joined(list); text != b.String() || finish != g.Finish {
					t.Fatalf("%s: got %+v, want %q, %s", body, list, b.String(), g.Finish)
				}
				first, last := list[0], list[len(list)-1].Choices[0]
				switch {
				case !streamed && (first.Object != "chat.completion" || first.Choices[0].Message.Role != "assistant" || first.Usage.TotalTokens != g.PromptTokens+g.Tokens):
					t.Errorf("%s: got %+v", body, first)
				case streamed && (first.Object != "chat.completion.chunk" || first.Choices[0].Delta.Role != "assistant" || last.Delta.Content != nil || !strings.HasPrefix(first.ID, "chatcmpl-")):
					t.Errorf("%s: got %+v at the beginning and %+v at the end", body, first, last)
				}
			}
		}
	}
	long := fmt.Sprintf(`{"messages": [{"role": "user", "content": %q}]}`, strings.Repeat("a", 40))
	if list := askOpenAI(t, s.URL+"/v1/chat/completions", long, 400); list[0].Error.Param != "messages" || !strings.Contains(list[0].Error.Message, "at most 32") {
		t.Errorf("a conversation that is too long: got %+v", list)
	}
	if list := askOpenAI(t, s.URL+"/v1/completions", `{"prompt": "", "temperature": 0, "max_tokens": 3}`, 200); list[0].Usage.PromptTokens != 1 {
		t.Errorf("an empty prompt: got %+v, want an answer", list)
	}
}

// The mark that the chat template has after an answer ends it, though generation_config.json names another end token. A
// completion isn't a conversation, so the mark is one token among others there.
func TestOpenAIChatEnds(t *testing.T) {
	const mark = 4 // <|im_end|>
	m := published(t, "llama", chatML)
	_, s := startOpenAI(t, m, Options{})
	weights := m.Params.Get("head.weight").Value.Float32s()
	dim := len(weights) / 41
	ended := 0
	for _, sign := range []float32{1, -1} { // in one case, the mark is the likeliest token after the conversation
		clear(weights)
		for i := range dim {
			weights[mark*dim+i] = sign
		}
		list := askOpenAI(t, s.URL+"/v1/chat/completions", `{"messages": [{"role": "user", "content": "b"}], "temperature": 0, "max_tokens": 3}`, 200)
		if text, finish := joined(list); text == "" && finish == "stop" && list[0].Usage.CompletionTokens == 0 {
			ended++
		}
		list = askOpenAI(t, s.URL+"/v1/completions", `{"prompt": "b", "temperature": 0, "max_tokens": 3}`, 200)
		if _, finish := joined(list); finish != "length" {
			t.Errorf("a completion: got %+v, want 3 tokens", list)
		}
	}
	if ended != 1 {
		t.Errorf("the mark has ended %d of 2 answers, want 1", ended)
	}
}

// Embeddings are the vectors of Model.Embed, as numbers and in base64, for texts and ids.
func TestOpenAIEmbeddings(t *testing.T) {
	m := published(t, "llama-states", chatML)
	h, s := startOpenAI(t, m, Options{})
	want, tokens, err := m.Embed(t.Context(), []string{"abc", "b"})
	must.Do(t, err)
	for _, body := range []string{
		`{"input": ["abc", "b"]}`, `{"input": ["abc", "b"], "encoding_format": "base64"}`, `{"input": [[8, 9, 10], "b"], "model": "fox", "user": "me"}`, `{"input": [[1, 8, 9, 10], [9]], "dimensions": 16, "encoding_format": "float"}`,
	} {
		list := askOpenAI(t, s.URL+"/v1/embeddings", body, 200)
		if len(list[0].Data) != 2 || list[0].Usage.PromptTokens != tokens || list[0].Usage.TotalTokens != tokens || list[0].Model != "fox" {
			t.Fatalf("%s: got %+v", body, list)
		}
		for i, d := range list[0].Data {
			var got []float32
			if text, ok := d.Embedding.(string); ok {
				b := must.Get(base64.StdEncoding.DecodeString(text))(t)
				got = make([]float32, len(b)/4)
				binary.Decode(b, binary.LittleEndian, got)
			} else {
				for _, x := range d.Embedding.([]any) {
					got = append(got, float32(x.(float64)))
				}
			}
			if d.Index != i || !slices.EqualFunc(got, want[i], func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }) {
				t.Errorf("%s: got %d: %v, want %v", body, d.Index, got, want[i])
			}
		}
	}
	for _, body := range []string{`{"input": "abc", "dimensions": 8}`, `{"input": "abc", "dimensions": 0}`} {
		if list := askOpenAI(t, s.URL+"/v1/embeddings", body, 400); list[0].Error.Param != "dimensions" {
			t.Errorf("%s: got %+v, want the param dimensions", body, list)
		}
	}
	for what, want := range map[string]int{"GET /": 404, "POST /predict": 404, "POST /attention": 200, "GET /openapi.json": 200} { // of package serve
		method, path, _ := strings.Cut(what, " ")
		if w := recorded(h, method, path, strings.NewReader(`{"input": "abc"}`)); w.Code != want {
			t.Errorf("%s: got %d, %s, want %d", what, w.Code, w.Body, want)
		}
	}
	if list := askOpenAI(t, s.URL+"/v1/completions", `{"prompt": "abc"}`, 400); list[0].Error.Param != "prompt" {
		t.Errorf("a completion: got %+v, want the param prompt", list)
	}
}

// endlessStream is a request for a stream that is too long to finish.
const endlessStream = `{"prompt": "The", "max_tokens": 1000000000, "stream": true}`

// If a stream takes too long, or if the service ends, the last event is an error, and there is no [DONE].
func TestOpenAICutOff(t *testing.T) {
	m := writer(t)
	for _, reason := range []string{"took too long", "about to end"} {
		o := Options{MaxTokens: 1e9}
		if reason == "took too long" {
			o.Time = 100 * time.Millisecond
		}
		h, s := startOpenAI(t, m, o)
		if o.Time == 0 {
			time.AfterFunc(100*time.Millisecond, func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				h.Shutdown(ctx)
			})
		}
		status, list, err := postOpenAI(t.Context(), s.URL+"/v1/completions", endlessStream)
		last := list[len(list)-1].Error
		if begun := len(list) > 1; err != nil || last.Type != "server_error" || !strings.Contains(last.Message, reason) || begun != (status == 200) { // the time may be over before the first event
			t.Errorf("got %d, %d events, the last with %+v, %v; want an error that says %q", status, len(list), last, err, reason)
		}
	}
}

// If one of several prompts is wrong, a stream that has begun ends with an error about it.
func TestOpenAIWrongPrompt(t *testing.T) {
	_, s := startOpenAI(t, writer(t), Options{})
	for streamed, want := range map[bool]int{false: 400, true: 200} {
		list := askOpenAI(t, s.URL+"/v1/completions", fmt.Sprintf(`{"prompt": ["The", "文"], "stream": %t}`, streamed), want)
		if last := list[len(list)-1].Error; last.Param != "prompt" || last.Type != "invalid_request_error" {
			t.Errorf("got %+v, want an error about the prompt", last)
		}
	}
}

// Official clients are told when another try is no use, and pages of other sites get no answer.
func TestOpenAIHeaders(t *testing.T) {
	h := must.Get(New(writer(t), Options{MaxTokens: 1e9, Time: 50 * time.Millisecond}))(t)
	for _, test := range []struct{ sent, body, header, want string }{
		{"", strings.Replace(endlessStream, "true", "false", 1), "X-Should-Retry", "504 false"},
		{"Origin: https://other.example", `{"prompt": "The"}`, "Access-Control-Allow-Origin", "403 "},
	} {
		w := recorded(h.OpenAI(""), "POST", "/v1/completions", strings.NewReader(test.body), test.sent)
		if got := fmt.Sprint(w.Code, " ", w.Header().Get(test.header)); got != test.want || !strings.Contains(w.Body.String(), `{"error":{`) {
			t.Errorf("%s: got %s, %s, want %s", test.body, got, w.Body, test.want)
		}
	}
}

// The body of a request is refused, or its values are within the limits.
func FuzzOpenAIRequest(f *testing.F) {
	for _, body := range []string{
		`{"model": "fox", "prompt": ["The", [1, 2]], "max_tokens": 3, "temperature": 0, "top_p": 0.5, "stop": ["a"], "seed": -3, "stream": true}`,
		`{"messages": [{"role": "developer", "content": [{"type": "text", "text": "é"}]}], "n": 1, "tools": [], "response_format": {"type": "text"}}`,
		`{"input": [[1, 2], [3]], "encoding_format": "base64", "dimensions": 3}`, `{"prompt": [ -1]}`, `{"stop": [[]]}`, `[`, "\xff", ` {}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, endpoint := range []string{forChat, forCompletions, forEmbeddings} {
			q, err := readOpenAI([]byte(body), endpoint)
			if err == nil && endpoint == forChat {
				_, err = q.conversation()
			}
			if err == nil {
				var o model.GenerateOptions
				if o, err = q.options(decode.Sampler{}, 5, 50); err == nil && (o.MaxTokens < 1 || o.MaxTokens > 50 || len(o.Stop) > 4 || slices.Contains(o.Stop, "") || o.Sampler.Check() != nil) {
					t.Errorf("%q: got %+v, want it within the limits", body, o)
				}
			}
			if err != nil && !strings.Contains(fmt.Sprintf("%T", err), "setting.Error") {
				t.Errorf("%q: got %T, %v, want a *model.ConfigError", body, err, err)
			}
		}
	})
}
