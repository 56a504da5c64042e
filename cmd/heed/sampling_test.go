package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/serve"
)

// Every door to a text model chooses tokens by the same rule: flags or a request come before generation_config.json,
// which is read as in transformers, and a model of our own draws at temperature 1. With the same seed, all doors then
// write the text that Generate writes with the wanted Sampler.
func TestSamplingAtEveryDoor(t *testing.T) {
	testseed.Slow(t)
	const drawing, greedy = `{"do_sample": true, "temperature": 0.5, "top_k": 30, "top_p": 0.9, "repetition_penalty": 1.1}`, `{"temperature": 0.5}`
	own := decode.Sampler{Temperature: 0.5, TopK: 30, TopP: 0.9, RepetitionPenalty: 1.1}
	with := func(change func(s *decode.Sampler)) decode.Sampler {
		s := own
		change(&s)
		return s
	}
	run := foxRun(t)
	for _, test := range []struct {
		config, settings string
		want             decode.Sampler
	}{
		{drawing, ``, own},
		{drawing, `"temperature": 3`, with(func(s *decode.Sampler) { s.Temperature = 3 })},
		{drawing, `"top_k": 2, "min_p": 0.01`, with(func(s *decode.Sampler) { s.TopK, s.MinP = 2, 0.01 })},
		{drawing, `"top_p": 1, "top_k": 0, "repetition_penalty": 1`, decode.Sampler{Temperature: 0.5}},
		{drawing, `"temperature": 0`, decode.Sampler{RepetitionPenalty: 1.1}},
		{greedy, ``, decode.Sampler{}},
		{greedy, `"top_p": 1, "presence_penalty": 2, "frequency_penalty": 1`, decode.Sampler{PresencePenalty: 2, FrequencyPenalty: 1}},
		{greedy, `"temperature": 3`, decode.Sampler{Temperature: 3}},
		{greedy, `"top_p": 0.9`, decode.Sampler{Temperature: 1, TopP: 0.9}},
		{greedy, `"top_k": 5`, decode.Sampler{Temperature: 1, TopK: 5}},
		{"", ``, decode.Sampler{Temperature: 1}}, // a run
		{"", `"top_k": 2`, decode.Sampler{Temperature: 1, TopK: 2}},
		{"", `"temperature": 0`, decode.Sampler{}},
	} {
		dir := run
		if test.config != "" {
			dir = chatFolder(t)
			write(t, filepath.Join(dir, "generation_config.json"), test.config)
		}
		atEveryDoor(t, dir, test.settings, test.want, test.config != "")
	}
}

// atEveryDoor compares what the commands and services write with what Generate writes with a Sampler. Without chats,
// the model has no chat template.
func atEveryDoor(t *testing.T, dir, settings string, want decode.Sampler, chats bool) {
	t.Helper()
	m := must.Get(model.Open(dir))(t)
	text := func(p model.Prompt) string {
		var s strings.Builder
		must.Get(m.Generate(t.Context(), &s, p, model.GenerateOptions{Sampler: want, Seed: 7, MaxTokens: 8}))(t)
		return s.String()
	}
	h := must.Get(serve.New(m, serve.Options{}))(t)
	post := func(path, body string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", path, strings.NewReader(strings.TrimSuffix(body+", "+settings, ", ")+"}"))
		r.Header.Set("Content-Type", "application/json")
		if strings.HasPrefix(path, "/v1") {
			h.OpenAI("m").ServeHTTP(w, r)
		} else {
			h.ServeHTTP(w, r)
		}
		return w.Body.String()
	}
	flags := []string{"--seed=7", "--tokens=8"}
	var given map[string]any
	must.Do(t, json.Unmarshal([]byte("{"+settings+"}"), &given))
	for name, value := range given {
		flags = append(flags, fmt.Sprintf("--%s=%v", strings.ReplaceAll(name, "_", "-"), value))
	}
	same := func(door, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s with %s writes %q, want %q", door, settings, got, want)
		}
	}
	written := text(model.Prompt{Text: "the"})
	same("heed generate", succeed(t, append([]string{"generate", dir, "--prompt=the"}, flags...)...), "the"+written+"\n")
	var streamed strings.Builder
	for line := range strings.Lines(post("/generate", `{"prompt": "the", "seed": 7, "tokens": 8`)) {
		var event struct{ Text string }
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			must.Do(t, json.Unmarshal([]byte(data), &event))
			streamed.WriteString(event.Text)
		}
	}
	same("/generate", streamed.String(), written)
	var answer struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
		}
	}
	must.Do(t, json.Unmarshal([]byte(post("/v1/completions", `{"prompt": "the", "seed": 7, "max_tokens": 8`)), &answer))
	same("/v1/completions", answer.Choices[0].Text, written)
	if settings == "" {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if field := fmt.Sprintf(`value="%v" required></label>`, want.Temperature); !strings.Contains(w.Body.String(), `id="temperature" type="number" min="0" step="any" `+field) {
			t.Errorf("the page has no field %s", field)
		}
		same("Model.Sampler", fmt.Sprintf("%g", m.Sampler().Temperature), fmt.Sprintf("%g", want.Temperature))
	}
	if !chats {
		return
	}
	written = text(model.Prompt{Messages: []tokenizer.Message{{Role: "user", Content: "a"}}})
	same("heed generate --chat", succeed(t, append([]string{"generate", dir, "--chat", "--prompt=a"}, flags...)...), written+"\n")
	withText(t, "a\n")
	same("heed chat", succeed(t, append([]string{"chat", dir}, flags...)...), written+"\n")
	must.Do(t, json.Unmarshal([]byte(post("/v1/chat/completions", `{"messages": [{"role": "user", "content": "a"}], "seed": 7, "max_tokens": 8`)), &answer))
	same("/v1/chat/completions", answer.Choices[0].Message.Content, written)
}

// chatFolder returns a published text model with the chat template ChatML, and its marks as special tokens.
func chatFolder(t *testing.T) string {
	t.Helper()
	dir := publishedFolder(t, "llama")
	path := filepath.Join(dir, "tokenizer.json")
	const marks = `"added_tokens":[{"content":"<|im_start|>","id":38,"special":true},{"content":"<|im_end|>","id":39,"special":true},`
	write(t, path, strings.Replace(read(t, path), `"added_tokens":[`, marks, 1))
	const template = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`
	config := must.Get(json.Marshal(map[string]string{"chat_template": template}))(t)
	write(t, filepath.Join(dir, "tokenizer_config.json"), string(config))
	return dir
}
