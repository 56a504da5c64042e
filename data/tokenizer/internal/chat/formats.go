package chat

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A format writes a conversation. The conversation has at least one message, and all its roles are known.
type format func(w *writer, messages []Message, prompt bool) error

// Formats has the format of each template. The key is the SHA-256 of the template's text, without a newline at its end.
// In a template of one line, \n counts as a newline. The script chat.py in the tests' data has the texts.
var Formats = map[string]format{
	"153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3": chatML(""), // OpenHermes 2.5 and others
	"58c1a1f04baa7adaeaba1f90267c3d57d9396f0c1f0129bdde9e76d3c6784af7": chatML(""), // Yi 1.5 and others
	"af9c0233881b083b52ff773580215222b5440ac3d0beeeca99b76329b048f8db": chatML("You are a helpful assistant"),
	"793202280c0910ab26bc6eb57c8212c2417324c6d8c4efd0d10d59092ab3e3eb": chatML("You are a helpful assistant."),
	"872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788": chatML("You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
	"55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a": chatML("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
	"87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5": qwen3,
	"a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8": qwen3, // later version
	"9780fae5bfea3cfd7be37d328c6edfd296a8869be8131495bbe7eb37e780c88c": llama2,
	"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122": llama3(false),
	"b48c47f6443892716176eb200bf4ef108f64e06ca26ed0fa8ebc0a4b3992fcb2": llama3(true),               // first version
	"93c0e9aa3629bbd77e68dbc0f5621f6e6b23aa8d74b932595cdb8d64684526d7": llama3Dated("26 Jul 2024"), // 3.1
	"d82792f95932f1c9cef5c4bd992f171225e3bf8c7b609b4557c9e1ec96be819f": llama3Dated(""),            // 3.2
	"7e995b379ec01747807246483647cd99030abf331653f1119e16d7ac041a3495": mistral(" "),               // 0.1
	"26a59556925c987317ce5291811ba3b7f32ec4c647c400c6cc7e3a9993007ba7": mistral(""),                // 0.2
	"ecd6ae513fe103f0eb62e8ab5bfa8d0fe45c1074fa398b089c93a7e70c15cfd6": gemma(true),
	"3919b9309d8949ee8f4b710215987700f87dc5bb0e87bf24dd39189ec65e3eec": gemma(false),
	"8d9e3a3c114fb2053ec500184677af4f7e5f8ec2582443cd535834e68b3ade29": gemma3,
	"86327804b5430b642274fe55ba95199e91cf7eca7b1e1240ca5469f23839e223": gemma3,
	"4f39e3a4b9e3d369b42fd00d93a78f171914bb4e58ec84fc420433d7a153288a": zephyr,
}

// named has the formats that can be chosen by a name.
var named = map[string]format{
	"chatml": chatML(""), "gemma": gemma(true), "gemma3": gemma3, "llama2": llama2, "llama3": llama3(false), "llama3.2": llama3Dated(""),
	"mistral": mistral(""), "qwen2.5": chatML("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."), "qwen3": qwen3,
	"smollm2": chatML("You are a helpful AI assistant named SmolLM, trained by Hugging Face"), "zephyr": zephyr,
}

// A writer collects the text of a conversation, and remembers its parts.
type writer struct {
	bos, eos string
	now      func() time.Time // or nil
	text     strings.Builder

	noThinking bool // see Render

	Parts
}

// marks writes text that the template adds.
func (w *writer) marks(parts ...string) {
	for _, part := range parts {
		w.text.WriteString(part)
	}
}

// content writes text from a message.
func (w *writer) content(text string) {
	start := w.text.Len()
	w.text.WriteString(text)
	w.Contents = append(w.Contents, w.since(start))
}

// turn writes the content of a message and the mark at its end.
func (w *writer) turn(role, content, end string) {
	start := w.text.Len()
	w.content(content)
	w.marks(end)
	w.wrote(role, start)
}

// wrote notes that the text from start on is what a role writes.
func (w *writer) wrote(role string, start int) {
	if role == "assistant" {
		w.Answers = append(w.Answers, w.since(start))
	}
}

// since returns the part of the text from start on.
func (w *writer) since(start int) pipe.Span {
	return pipe.Span{Start: int32(start), End: int32(w.text.Len())}
}

// today returns today's date, such as 26 Jul 2024.
func (w *writer) today() string {
	if w.now == nil {
		return time.Now().Format("02 Jan 2006")
	}
	return w.now().Format("02 Jan 2006")
}

// chatML returns the format ChatML. If the first message isn't a system message, the format adds one with the text
// system, unless that is empty.
func chatML(system string) format {
	return func(w *writer, messages []Message, prompt bool) error {
		if system != "" && messages[0].Role != "system" {
			w.marks("<|im_start|>system\n", system, "<|im_end|>\n")
		}
		for _, m := range messages {
			w.marks("<|im_start|>", m.Role, "\n")
			w.turn(m.Role, m.Content, "<|im_end|>")
			w.marks("\n")
		}
		if prompt {
			w.marks("<|im_start|>assistant\n")
		}
		return nil
	}
}

// qwen3 is ChatML. It leaves out the assistant's thoughts, except in answers to the last question.
func qwen3(w *writer, messages []Message, prompt bool) error {
	last := len(messages) - 1 // index of the last question
	for i, m := range messages {
		if m.Role == "user" && !(strings.HasPrefix(m.Content, "<tool_response>") && strings.HasSuffix(m.Content, "</tool_response>")) {
			last = i
		}
	}
	for i, m := range messages {
		w.marks("<|im_start|>", m.Role, "\n")
		content, thoughts, start := m.Content, "", w.text.Len()
		if before, _, ok := strings.Cut(content, "</think>"); ok && m.Role == "assistant" {
			content = strings.TrimLeft(content[strings.LastIndex(content, "</think>")+len("</think>"):], "\n")
			thoughts = strings.TrimRight(before, "\n")
			if j := strings.LastIndex(thoughts, "<think>"); j >= 0 {
				thoughts = thoughts[j+len("<think>"):]
			}
			thoughts = strings.TrimLeft(thoughts, "\n")
		}
		if m.Role == "assistant" && i > last && (i == len(messages)-1 || thoughts != "") {
			w.marks("<think>\n")
			w.content(strings.Trim(thoughts, "\n"))
			w.marks("\n</think>\n\n")
			content = strings.TrimLeft(content, "\n")
		}
		w.content(content)
		w.marks("<|im_end|>")
		w.wrote(m.Role, start)
		w.marks("\n")
	}
	if prompt {
		w.marks("<|im_start|>assistant\n")
		if w.noThinking {
			w.marks("<think>\n\n</think>\n\n")
		}
	}
	return nil
}

// llama2 puts the system message into the first question.
func llama2(w *writer, messages []Message, _ bool) error {
	system := messages[0].Role == "system"
	turns := messages
	if system {
		turns = messages[1:]
	}
	if err := alternate(turns, len(messages)-len(turns)); err != nil {
		return err
	}
	for i, m := range turns {
		content := strings.TrimFunc(m.Content, isPythonSpace)
		switch {
		case m.Role == "assistant":
			w.marks(" ")
			w.turn(m.Role, content, " "+w.eos)
			continue
		case i == 0 && system:
			w.marks(w.bos, "[INST] <<SYS>>\n")
			w.content(messages[0].Content)
			w.marks("\n<</SYS>>")
			if content != "" { // white space at the start stays, because the system message comes before it
				w.marks("\n\n")
				content = strings.TrimRightFunc(m.Content, isPythonSpace)
			}
		default:
			w.marks(w.bos, "[INST] ")
		}
		w.content(content)
		w.marks(" [/INST]")
	}
	return nil
}

// llama3 returns the format of Llama 3. If always is true, it adds the beginning of the next message without a prompt,
// too.
func llama3(always bool) format {
	return func(w *writer, messages []Message, prompt bool) error {
		w.marks(w.bos)
		w.headed(messages, prompt || always)
		return nil
	}
}

// llama3Dated returns the format of Llama 3 with a date in the system message. If date is empty, it is today's date.
func llama3Dated(date string) format {
	return func(w *writer, messages []Message, prompt bool) error {
		w.marks(w.bos, "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: ", cmp.Or(date, w.today()), "\n\n")
		if messages[0].Role == "system" {
			w.content(strings.TrimFunc(messages[0].Content, isPythonSpace))
			messages = messages[1:]
		}
		w.marks("<|eot_id|>")
		w.headed(messages, prompt)
		return nil
	}
}

// headed writes messages with the headers of Llama 3.
func (w *writer) headed(messages []Message, prompt bool) {
	for _, m := range messages {
		w.marks("<|start_header_id|>", m.Role, "<|end_header_id|>\n\n")
		w.turn(m.Role, strings.TrimFunc(m.Content, isPythonSpace), "<|eot_id|>")
	}
	if prompt {
		w.marks("<|start_header_id|>assistant<|end_header_id|>\n\n")
	}
}

// mistral returns the format of Mistral 7B. The text after follows the end of each answer.
func mistral(after string) format {
	return func(w *writer, messages []Message, _ bool) error {
		if err := alternate(messages, 0); err != nil {
			return err
		}
		w.marks(w.bos)
		for _, m := range messages {
			if m.Role == "user" {
				w.marks("[INST] ")
				w.content(m.Content)
				w.marks(" [/INST]")
			} else {
				w.turn(m.Role, m.Content, w.eos)
				w.marks(after)
			}
		}
		return nil
	}
}

// gemma returns the format of Gemma, with or without the token for the beginning of a text.
func gemma(bos bool) format {
	return func(w *writer, messages []Message, prompt bool) error {
		if err := alternate(messages, 0); err != nil {
			return err
		}
		if bos {
			w.marks(w.bos)
		}
		w.turns(messages, "", prompt)
		return nil
	}
}

// gemma3 is Gemma's format with the system message before the first question.
func gemma3(w *writer, messages []Message, prompt bool) error {
	turns, system := messages, ""
	if messages[0].Role == "system" {
		turns, system = messages[1:], messages[0].Content+"\n\n"
	}
	if err := alternate(turns, len(messages)-len(turns)); err != nil {
		return err
	}
	w.marks(w.bos)
	w.turns(turns, system, prompt)
	return nil
}

// turns writes messages as turns of Gemma. The first one begins with the text before.
func (w *writer) turns(messages []Message, before string, prompt bool) {
	for i, m := range messages {
		role := m.Role
		if role == "assistant" {
			role = "model"
		}
		w.marks("<start_of_turn>", role, "\n")
		if i == 0 {
			w.content(before)
		}
		w.turn(m.Role, strings.TrimFunc(m.Content, isPythonSpace), "<end_of_turn>")
		w.marks("\n")
	}
	if prompt {
		w.marks("<start_of_turn>model\n")
	}
}

// zephyr is the format of Zephyr and TinyLlama.
func zephyr(w *writer, messages []Message, prompt bool) error {
	for _, m := range messages {
		w.marks("<|", m.Role, "|>\n")
		w.turn(m.Role, m.Content, w.eos)
		w.marks("\n")
	}
	if prompt {
		w.marks("<|assistant|>\n")
	}
	return nil
}

// alternate returns an error unless the roles are user, assistant, user and so on. The number of
// the first message is first.
func alternate(messages []Message, first int) error {
	if len(messages) == 0 {
		return errors.New("this chat template needs a message from the user, got only a system message")
	}
	for i, m := range messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			return fmt.Errorf("this chat template needs the role %s for message %d (from 0), got %s", want, first+i, m.Role)
		}
	}
	return nil
}

// isPythonSpace reports whether Python's strip removes a character.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }
