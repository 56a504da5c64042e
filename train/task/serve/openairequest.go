package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
)

// An openAIRequest has the fields of all endpoints.
type openAIRequest struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Prompt   inputs    `json:"prompt"`
	decode.SamplerSettings
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	Stop                inputs `json:"stop"`
	Seed                *int64 `json:"seed"`
	Stream              bool   `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	ChatTemplateKwargs struct {
		EnableThinking *bool `json:"enable_thinking"`
	} `json:"chat_template_kwargs"`

	Input          inputs `json:"input"`
	Dimensions     *int   `json:"dimensions"`
	EncodingFormat string `json:"encoding_format"`

	Query           *string    `json:"query"`
	Documents       []document `json:"documents"`
	TopN            int        `json:"top_n"`
	ReturnDocuments bool       `json:"return_documents"`
}

// The fields of each endpoint.
const (
	ignored        = "metadata service_tier store safety_identifier prompt_cache_key prompt_cache_retention parallel_tool_calls reasoning_effort " // no known chat template has it
	forAll         = "model user "
	forText        = forAll + "temperature top_p top_k min_p repetition_penalty presence_penalty frequency_penalty max_tokens stop seed stream stream_options n logprobs logit_bias "
	forChat        = forText + ignored + "messages max_completion_tokens top_logprobs tools tool_choice functions function_call response_format modalities verbosity chat_template_kwargs"
	forCompletions = forText + "prompt best_of echo suffix"
	forEmbeddings  = forAll + "input dimensions encoding_format"
	forRerank      = forAll + "query documents top_n return_documents rank_fields truncation"
)

// only has the JSON of the values that are supported, for fields that have few. Most of them change nothing.
var only = map[string][]string{
	"n":               {"1"},
	"best_of":         {"1"},
	"echo":            {"false"},
	"suffix":          {`""`},
	"logprobs":        {"false"},
	"top_logprobs":    {"0"},
	"logit_bias":      {"{}"},
	"tools":           {"[]"},
	"tool_choice":     {`"none"`, `"auto"`},
	"functions":       {"[]"},
	"function_call":   {`"none"`, `"auto"`},
	"response_format": {`{"type":"text"}`},
	"modalities":      {`["text"]`},
	"verbosity":       {`"medium"`},
	"rank_fields":     {`["text"]`},
	"truncation":      {"true"},

	"chat_template_kwargs": {"{}", `{"enable_thinking":false}`, `{"enable_thinking":true}`}, // see openAIRequest
}

const inputsWanted = "a text, a list of token ids, or a list of either"

// fieldWants describes the values of fields, by their names or the types of their numbers.
var fieldWants = map[string]string{
	"model":           "the model's name",
	"messages":        `a list of messages, such as {"role": "user", "content": "…"}`,
	"prompt":          inputsWanted,
	"input":           inputsWanted,
	"stop":            "a text, or a list of up to 4 texts",
	"stream_options":  `an object such as {"include_usage": true}`,
	"encoding_format": "float or base64",
	"query":           "a text",
	"documents":       `a list of texts or of objects such as {"text": "…"}`,
	"float64":         "a number",
	"int":             "a whole number",
	"int64":           "a whole number of at most 64 bits",
	"bool":            "true or false",
}

// readOpenAI decodes the body of a request that may have some fields. The errors are *model.ConfigErrors.
func readOpenAI(body []byte, fields string) (*openAIRequest, error) {
	if err := jsonkeys.Check(body, nil); err != nil {
		return nil, setting.Errorf("the body must be JSON: %w", err)
	}
	if body = bytes.TrimSpace(body); body[0] != '{' {
		return nil, setting.Errorf("the body must be an object, such as {…}")
	}
	if err := jsonkeys.Members(body, func(key string, value []byte) error {
		path := setting.Path(text.Shorten(key, 50, 50))
		if !slices.Contains(strings.Fields(fields), key) {
			return setting.Errorf("the endpoint doesn't know %s: leave it out", path)
		}
		var short bytes.Buffer
		json.Compact(&short, value)
		if values := only[key]; values != nil && short.String() != "null" && !slices.Contains(values, short.String()) {
			return setting.Errorf("%s can't be %.100s here: leave it out, or set it to %s", path, short.String(), strings.Join(values, " or "))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	q := &openAIRequest{EncodingFormat: "float", TopN: math.MaxInt}
	err := json.Unmarshal(body, q)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		path := strings.TrimPrefix(wrong.Field, "SamplerSettings.") // of the embedded struct
		name, _, _ := strings.Cut(path, ".")
		return nil, setting.Errorf("%s must be %s, got %.100s", setting.Path(path), cmp.Or(fieldWants[name], fieldWants[fmt.Sprint(wrong.Type)]), wrong.Value)
	}
	return q, err
}

// options returns the options of a generation of up to limit tokens, for a model with the Sampler own. If the request
// has no number of tokens, it is standard. The errors are *model.ConfigErrors.
func (q *openAIRequest) options(own decode.Sampler, standard, limit int) (model.GenerateOptions, error) {
	o := model.GenerateOptions{Sampler: q.Over(own), MaxTokens: standard, Seed: rand.Uint64()}
	if q.Seed != nil {
		o.Seed = uint64(*q.Seed)
	}
	for i, n := range []*int{q.MaxTokens, q.MaxCompletionTokens} {
		if n == nil {
			continue
		}
		if err := setting.Between([]setting.Path{"max_tokens", "max_completion_tokens"}[i], *n, 1, limit); err != nil {
			return o, err
		}
		o.MaxTokens = *n
	}
	for i, stop := range q.Stop {
		if stop.ids != nil || i == 4 {
			return o, setting.Errorf("%s must be %s", setting.Path("stop"), fieldWants["stop"])
		}
		o.Stop = append(o.Stop, stop.text)
	}
	greedy := o.Sampler.Temperature == 0
	if greedy { // the others don't count, but are checked
		o.Sampler.Temperature = 1
	}
	if err := o.Check(); err != nil {
		return o, err
	}
	switch {
	case greedy:
		o.Sampler.Temperature, o.Sampler.TopK, o.Sampler.TopP, o.Sampler.MinP = 0, 0, 0, 0
	case q.TopP != nil && *q.TopP == 0: // means all tokens in a Sampler
		o.Sampler.TopP = math.SmallestNonzeroFloat64
	}
	return o, nil
}

// A message is a part of a conversation.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// conversation returns the messages. Its errors are *model.ConfigErrors.
func (q *openAIRequest) conversation() (list []tokenizer.Message, err error) {
	if len(q.Messages) == 0 {
		return nil, setting.Errorf("%s must be %s, got none", setting.Path("messages"), fieldWants["messages"])
	}
	for i, m := range q.Messages {
		path := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case "developer":
			m.Role = "system"
		case "system", "user", "assistant":
		default:
			return nil, setting.Errorf("%s must be system, developer, user or assistant, got %q", setting.Path(path+".role"), text.Shorten(m.Role, 50, 50))
		}
		content, err := textOf(m.Content, path+".content")
		if err != nil {
			return nil, err
		}
		list = append(list, tokenizer.Message{Role: m.Role, Content: content})
	}
	return list, nil
}

// textOf returns the text of a message's content.
func textOf(content json.RawMessage, path string) (string, error) {
	var one *string
	if json.Unmarshal(content, &one) == nil && one != nil {
		return *one, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		return "", setting.Errorf("%s must be a text, or a list of parts such as {\"type\": \"text\", \"text\": \"…\"}", setting.Path(path))
	}
	var list []string
	for i, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return "", setting.Errorf("%s must be {\"type\": \"text\", \"text\": \"…\"}, got the type %q: the model reads only text", setting.Path(fmt.Sprintf("%s[%d]", path, i)), text.Shorten(p.Type, 50, 50))
		}
		list = append(list, *p.Text)
	}
	return strings.Join(list, "\n"), nil
}

// An input is, in JSON, a text or a list of token ids.
type input struct {
	text string
	ids  []int // nil for a text
}

func (i *input) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &i.text)
	}
	if bytes.Contains(b, []byte("null")) { // would be 0
		return &json.UnmarshalTypeError{Value: "null among others"}
	}
	i.ids = []int{}
	return json.Unmarshal(b, &i.ids)
}

// inputs are, in JSON, one input or a list of them.
type inputs []input

func (l *inputs) UnmarshalJSON(b []byte) error {
	if b[0] == '[' && !strings.ContainsRune("-0123456789", rune(bytes.TrimLeft(b[1:], " \t\r\n")[0])) || b[0] == 'n' {
		return json.Unmarshal(b, (*[]input)(l))
	}
	*l = make(inputs, 1)
	return json.Unmarshal(b, &(*l)[0])
}

// texts returns the texts of inputs, the field of this name. Its errors are *model.ConfigErrors.
func (a *openAI) texts(list inputs, name string) (texts []string, err error) {
	limit := a.options.MaxInputs
	if len(list) == 0 || len(list) > limit {
		return nil, setting.Errorf("%s must be %s, with 1 to %d elements, got %d", setting.Path(name), fieldWants[name], limit, len(list))
	}
	for _, l := range list {
		if l.ids != nil {
			if l.text, err = a.decode(l.ids); err != nil {
				return nil, setting.Errorf("%s: %w: ids must come from the model's own tokenizer, not from tiktoken", setting.Path(name), err)
			}
		}
		texts = append(texts, l.text)
	}
	return texts, nil
}

// decode returns the text of token ids, without special tokens.
func (a *openAI) decode(ids []int) (string, error) {
	coder, err := data.NewCoder(a.model.Config.Task)
	if err != nil {
		return "", err
	}
	source, _ := coder.Tokenizers()
	decoder := tokenizer.Decoder{Tokenizer: source, SkipSpecial: true}
	var whole strings.Builder
	for _, id := range ids {
		text, err := decoder.Next(id)
		if err != nil {
			return "", err
		}
		whole.WriteString(text)
	}
	return whole.String() + decoder.Flush(), nil
}
