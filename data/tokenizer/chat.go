package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// A Message is a part of a conversation. Its Role is "system", "user" or "assistant".
type Message struct{ Role, Content string }

// A ChatTemplate writes a conversation in the form that a model was trained on. To make one, use OpenChatTemplate or
// ParseChatTemplate.
type ChatTemplate struct {
	Now func() time.Time // for templates that tell the model today's date; nil means time.Now

	bos, eos string
	write    chatFormat
}

// OpenChatTemplate reads the chat template from the folder of a published model: from chat_template.jinja if there is
// one, otherwise from tokenizer_config.json. It returns an error if the folder has no chat template, or if
// ParseChatTemplate doesn't know it.
func OpenChatTemplate(dir string) (*ChatTemplate, error) {
	name := "tokenizer_config.json"
	content, err := readFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("the chat template of %s: %s: %w", dir, name, err)
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
		BOS      tokenName       `json:"bos_token"`
		EOS      tokenName       `json:"eos_token"`
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	text, err := readFile(filepath.Join(dir, "chat_template.jinja"))
	template := string(text)
	switch {
	case err == nil:
		name = "chat_template.jinja"
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the chat template of %s: chat_template.jinja: %w", dir, err)
	case len(config.Template) == 0:
		return nil, fmt.Errorf("%s has no chat template", dir)
	default:
		if template, err = defaultTemplate(config.Template); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
	}
	c, err := ParseChatTemplate(template, string(config.BOS), string(config.EOS))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return c, nil
}

// ParseChatTemplate returns the ChatTemplate for the text of a published template. The arguments bos and eos are the
// model's tokens for the beginning and the end of a text, such as "<s>" and "</s>".
//
// It knows templates by their whole text: ChatML (also the ones of Yi, SmolLM2 and Qwen 1.5 to 3), Llama 2, Llama 3
// to 3.2, Mistral 7B 0.1 and 0.2, and Gemma. For any other text, it returns an error. It doesn't run the template, so a
// template from someone you don't know can do no harm.
func ParseChatTemplate(template, bos, eos string) (*ChatTemplate, error) {
	template = strings.TrimSuffix(strings.ReplaceAll(template, "\r\n", "\n"), "\n") // as Jinja does
	if !strings.Contains(template, "\n") {                                          // then all newlines are in strings, where \n means the same
		template = strings.ReplaceAll(template, `\n`, "\n")
	}
	sum := sha256.Sum256([]byte(template))
	write, ok := chatFormats[hex.EncodeToString(sum[:])]
	if !ok {
		return nil, fmt.Errorf("this chat template isn't supported: it begins with %.60q; write the conversation in your own program", template)
	}
	return &ChatTemplate{bos: bos, eos: eos, write: write}, nil
}

// Render returns the text of a conversation. If prompt is true, the text ends with the beginning of the assistant's
// next message; Llama 2 and Mistral need no such beginning, and Llama 3's first template always adds it.
//
// Render doesn't change special tokens in the contents. If users write the contents, use Encode: Tokenize with
// Options.Special would turn their text into special tokens, and let a user speak for the system.
//
// Render returns an error if there are no messages, if a role is unknown, or if the template doesn't accept the order
// of the roles. Llama 2's template would drop a system message in a wrong place, and Gemma's would write a role that
// the model doesn't know; Render returns an error instead.
func (c *ChatTemplate) Render(messages []Message, prompt bool) (string, error) {
	w, err := c.render(messages, prompt)
	return w.text.String(), err
}

// Encode returns the ids of a conversation. Special tokens come from the template alone: their names in the contents
// are ordinary text. If the contents have no such names, Encode returns the same ids as Tokenize for the rendered text.
//
// Markers that aren't special tokens, such as [INST] in Llama 2, are ordinary text in the template too, so a user can
// imitate them. The template has the token for the beginning of the text; don't add a second one.
//
// Encode returns the errors of Render and of Tokenize.
func (c *ChatTemplate) Encode(p *Pipeline, messages []Message, prompt bool) ([]int, error) {
	w, err := c.render(messages, prompt)
	if err != nil {
		return nil, err
	}
	tokens, err := p.Tokenize(w.text.String(), Options{Special: true, plain: w.contents})
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	return ids, nil
}

func (c *ChatTemplate) render(messages []Message, prompt bool) (*chatWriter, error) {
	w := &chatWriter{bos: c.bos, eos: c.eos, now: c.Now}
	if len(messages) == 0 {
		return w, errors.New("a conversation needs at least one message, got none")
	}
	for i, m := range messages {
		if m.Role != "system" && m.Role != "user" && m.Role != "assistant" {
			return w, fmt.Errorf("the role of message %d (from 0) must be system, user or assistant, got %.100q", i, m.Role)
		}
	}
	err := c.write(w, messages, prompt)
	if err != nil {
		w.text.Reset()
	}
	return w, err
}

// defaultTemplate returns the template in a tokenizer_config.json: a string, or the one named default in a list.
func defaultTemplate(value json.RawMessage) (string, error) {
	var one string
	if json.Unmarshal(value, &one) == nil && one != "" {
		return one, nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(value, &list); err == nil {
		for _, t := range list {
			if t.Name == "default" {
				return t.Template, nil
			}
		}
	}
	return "", errors.New("its chat_template must be a string, or a list with a template named default")
}
