package tokenizer

import (
	"io/fs"
	"time"

	"github.com/heed-go/heed/data/tokenizer/internal/chat"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/published"
)

// A Message is a part of a conversation. Its Role is "system", "user" or "assistant".
type Message struct{ Role, Content string }

// A ChatTemplate writes a conversation in the form that a model was trained on. To make one, use OpenChatTemplate or
// ParseChatTemplate.
type ChatTemplate struct {
	Now func() time.Time // for templates that tell the model today's date; nil means time.Now

	// NoThinking begins the assistant's next message with empty thoughts, if the template lets the model think first,
	// as Qwen 3's does. It is the opposite of the variable enable_thinking.
	NoThinking bool

	template *chat.Template
}

// OpenChatTemplate reads the chat template from the folder of a published model: from chat_template.jinja if there is
// one, otherwise from tokenizer_config.json. It returns an error if the folder has no chat template, or if
// ParseChatTemplate doesn't know it.
func OpenChatTemplate(dir fs.FS) (*ChatTemplate, error) { return newChatTemplate(chat.Open(dir)) }

// ParseChatTemplate returns the ChatTemplate for the text of a published template, or for one of the names that
// ChatTemplates lists, such as chatml. The arguments bos and eos are the model's tokens for the beginning and the end
// of a text, such as "<s>" and "</s>".
//
// It knows templates by their whole text: ChatML (also as used by Yi, SmolLM2 and Qwen 1.5 to 3), Llama 2, Llama 3 to
// 3.2, Mistral 7B 0.1 and 0.2, Gemma, Gemma 3, and Zephyr (also as used by TinyLlama). For any other text, it returns
// an error. It doesn't run the template, so a template from someone you don't know can do no harm.
func ParseChatTemplate(template, bos, eos string) (*ChatTemplate, error) {
	return newChatTemplate(chat.Parse(template, bos, eos))
}

func newChatTemplate(t *chat.Template, err error) (*ChatTemplate, error) {
	if err != nil {
		return nil, err
	}
	return &ChatTemplate{template: t}, nil
}

// ChatTemplates returns the names that ParseChatTemplate knows.
func ChatTemplates() []string { return chat.Names() }

// Render returns the text of a conversation. If prompt is true, the text ends with the beginning of the assistant's
// next message. Llama 2 and Mistral need no such beginning, and Llama 3's first template always adds it.
//
// Render doesn't change special tokens in the contents. If users write the contents, use Encode. Tokenize with
// Options.Special would turn names in their text into special tokens, and a user could speak for the system.
//
// Render returns an error if there are no messages, if a role is unknown, or if the template doesn't accept the order
// of the roles. It also returns an error where Llama 2's template would drop a system message, and where Gemma's
// template would write a role that the model doesn't know.
func (c *ChatTemplate) Render(messages []Message, prompt bool) (string, error) {
	text, _, err := c.render(messages, prompt)
	return text, err
}

// End returns the mark with which the template ends the assistant's messages, such as <|im_end|>, without white space
// around it. A model that learned the template writes it after an answer. End returns "" if there is no mark, because
// the template needs an eos.
func (c *ChatTemplate) End() string { return c.template.End() }

// Encode returns the ids of a conversation, and reports for each id whether the assistant writes it: whether it belongs
// to the content of an assistant's message or to the mark at its end. A model learns to answer from these ids.
//
// Special tokens come from the template alone: their names in the contents are ordinary text. If the contents have no
// such names, Encode returns the same ids as Tokenize for the rendered text.
//
// Some markers, such as [INST] in Llama 2, aren't special tokens. They are ordinary text in the template, too, so a
// user can imitate them. The template has the token for the beginning of the text; don't add a second one.
//
// Encode returns the errors of Render and of Tokenize.
func (c *ChatTemplate) Encode(p *Pipeline, messages []Message, prompt bool) (ids []int, answers []bool, err error) {
	text, parts, err := c.render(messages, prompt)
	if err == nil {
		err = checkText(text)
	}
	if err != nil {
		return nil, nil, err
	}
	tokens, err := published.Encode[pipe.Token](p.pipeline, text, published.Options{Special: true, Plain: parts.Contents})
	ids, answers = make([]int, len(tokens)), make([]bool, len(tokens))
	for i, t := range tokens {
		for len(parts.Answers) > 0 && t.Start >= int(parts.Answers[0].End) {
			parts.Answers = parts.Answers[1:]
		}
		ids[i], answers[i] = t.ID, len(parts.Answers) > 0 && t.End > int(parts.Answers[0].Start)
	}
	return ids, answers, err
}

func (c *ChatTemplate) render(messages []Message, prompt bool) (text string, parts chat.Parts, err error) {
	list := make([]chat.Message, len(messages))
	for i, m := range messages {
		list[i] = chat.Message(m)
	}
	return c.template.Render(list, prompt, c.NoThinking, c.Now)
}
