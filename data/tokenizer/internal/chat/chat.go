// Package chat writes conversations in the forms of published chat templates. It knows the templates by their text, and
// never runs one.
package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heed-go/heed/data/tokenizer/internal/folder"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/internal/text"
)

// A Message is a part of a conversation. Its Role is "system", "user" or "assistant".
type Message struct{ Role, Content string }

// A Template writes a conversation in the form that a model was trained on.
type Template struct {
	bos, eos string
	write    format
}

// Open reads the chat template of a published model's folder.
func Open(dir fs.FS) (*Template, error) {
	name := "tokenizer_config.json"
	content, err := folder.ReadFile(dir, name)
	if err != nil {
		return nil, fmt.Errorf("the chat template: %s: %w", name, text.Reason(err))
	}
	var config struct {
		Template json.RawMessage  `json:"chat_template"`
		BOS      folder.TokenName `json:"bos_token"`
		EOS      folder.TokenName `json:"eos_token"`
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	jinja, err := folder.ReadFile(dir, "chat_template.jinja")
	template := string(jinja)
	switch {
	case err == nil:
		name = "chat_template.jinja"
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the chat template: chat_template.jinja: %w", text.Reason(err))
	case len(config.Template) == 0:
		return nil, errors.New("the folder has no chat template")
	default:
		if template, err = defaultTemplate(config.Template); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	c, err := Parse(template, string(config.BOS), string(config.EOS))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Parse returns the template with this text or this name, if it is known.
func Parse(template, bos, eos string) (*Template, error) {
	if write, ok := named[template]; ok {
		return &Template{bos, eos, write}, nil
	}
	template = strings.TrimSuffix(strings.ReplaceAll(template, "\r\n", "\n"), "\n") // as Jinja does
	if !strings.Contains(template, "\n") {                                          // then all newlines are in strings, where \n means the same
		template = strings.ReplaceAll(template, `\n`, "\n")
	}
	sum := sha256.Sum256([]byte(template))
	write, ok := Formats[hex.EncodeToString(sum[:])]
	if !ok {
		return nil, fmt.Errorf("this chat template isn't supported: it begins with %.60q; choose one by name, %s, or write the conversation in your own program",
			template, strings.Join(Names(), ", "))
	}
	return &Template{bos, eos, write}, nil
}

// Names returns the names that Parse knows.
func Names() []string { return slices.Sorted(maps.Keys(named)) }

// Parts are parts of the text of a conversation, in order.
type Parts struct {
	Contents []pipe.Span // contents of messages
	Answers  []pipe.Span // what the assistant writes: contents of its messages, with the marks at their ends
}

// Render returns the text of a conversation and its parts. Templates with a date call now; nil means time.Now. With
// noThinking, a template that lets the model think first begins the next message with empty thoughts.
func (c *Template) Render(messages []Message, prompt, noThinking bool, now func() time.Time) (string, Parts, error) {
	if len(messages) == 0 {
		return "", Parts{}, errors.New("a conversation needs at least one message, got none")
	}
	for i, m := range messages {
		if m.Role != "system" && m.Role != "user" && m.Role != "assistant" {
			return "", Parts{}, fmt.Errorf("the role of message %d (from 0) must be system, user or assistant, got %.100q", i, m.Role)
		}
	}
	w := &writer{bos: c.bos, eos: c.eos, now: now, noThinking: noThinking}
	if err := c.write(w, messages, prompt); err != nil {
		return "", Parts{}, err
	}
	return w.text.String(), w.Parts, nil
}

// End returns the mark at the end of the assistant's messages, without white space around it, or "" if there is none.
func (c *Template) End() string {
	text, parts, err := c.Render([]Message{{"user", "a"}, {"assistant", "a"}}, false, false, nil)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text[parts.Contents[len(parts.Contents)-1].End:parts.Answers[0].End])
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
