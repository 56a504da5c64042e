package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/data/tokenizer/internal/chat"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
	"github.com/heed-go/heed/data/tokenizer/internal/published"
	"github.com/heed-go/heed/internal/must"
)

// chatCases is testdata/chat.json.gz.
type chatCases struct {
	Templates     []struct{ Name, Text string }
	Conversations []struct {
		Messages []Message
		Prompt   bool
		Want     []*string // for each template; nil means an error
	}
}

func readChatCases(t *testing.T) (cases chatCases) {
	t.Helper()
	if readGzip(t, "testdata/chat.json.gz", &cases); len(cases.Templates) < 10 || len(cases.Conversations) < 100 {
		t.Fatalf("%d templates and %d conversations, want 10 and 100", len(cases.Templates), len(cases.Conversations))
	}
	return cases
}

func march() time.Time { return time.Date(2024, 3, 7, 0, 0, 0, 0, time.UTC) }

// TestChatTemplates compares the texts of published templates with Jinja2's, in each spelling of newlines. Render
// returns an error where Llama 2 would drop a system message, and where Gemma would write a turn that the model doesn't
// know. Without thinking, Qwen 3's templates begin an answer with empty thoughts. No other template has thoughts.
func TestChatTemplates(t *testing.T) {
	cases := readChatCases(t)
	if len(cases.Templates) != len(chat.Formats) {
		t.Errorf("%d templates are tested, want all %d", len(cases.Templates), len(chat.Formats))
	}
	for i, template := range cases.Templates {
		texts := []string{template.Text, strings.TrimSuffix(template.Text, "\n") + "\n", strings.ReplaceAll(template.Text, "\n", "\r\n")}
		if !strings.Contains(template.Text, "\n") {
			texts = append(texts, strings.ReplaceAll(template.Text, `\n`, "\n"))
		}
		rendered := 0
		for j, c := range cases.Conversations {
			chat := must.Get(ParseChatTemplate(texts[j%len(texts)], "<s>", "</s>"))(t)
			chat.Now = march
			thoughts := "" // at the beginning of an answer without thinking
			got, err := chat.Render(c.Messages, c.Prompt)
			want := c.Want[i]
			if err == nil {
				rendered++
				if c.Prompt && strings.HasPrefix(template.Name, "Qwen3") {
					thoughts = "<think>\n\n</think>\n\n"
				}
				chat.NoThinking = true
				if quick := must.Get(chat.Render(c.Messages, c.Prompt))(t); quick != got+thoughts {
					t.Fatalf("%s without thinking: got %q, want %q and %q", template.Name, quick, got, thoughts)
				}
			}
			if (template.Name == "Llama-2" || strings.HasPrefix(template.Name, "Gemma")) && misplaced(c.Messages) {
				want = nil
			}
			if (err == nil) != (want != nil) || err == nil && got != *want || err != nil && got != "" {
				t.Fatalf("%s: %q: got %q, error %v, want %v", template.Name, c.Messages, got, err, want)
			}
		}
		if rendered < 50 {
			t.Errorf("%s: %d conversations were rendered, want at least 50", template.Name, rendered)
		}
	}
}

// misplaced reports whether a system message isn't the first message, or is the only one.
func misplaced(messages []Message) bool {
	last := 0
	for i, m := range messages {
		if m.Role == "system" {
			last = i
		}
	}
	return last > 0 || len(messages) == 1 && messages[0].Role == "system"
}

// Each name must stand for one of the published templates.
func TestNamedChatTemplates(t *testing.T) {
	cases := readChatCases(t)
	for _, name := range ChatTemplates() {
		c := must.Get(ParseChatTemplate(name, "<s>", "</s>"))(t)
		c.Now = march
		same := func(template int) bool {
			for _, conversation := range cases.Conversations {
				got, err := c.Render(conversation.Messages, conversation.Prompt)
				if want := conversation.Want[template]; err == nil && (want == nil || got != *want) {
					return false
				}
			}
			return true
		}
		found := false
		for i := range cases.Templates {
			found = found || same(i)
		}
		if !found {
			t.Errorf("%s renders unlike all published templates", name)
		}
	}
	must.Refuse(ParseChatTemplate("chat", "", ""))(t, "by name, chatml, gemma, gemma3, ")
}

func TestUnknownChatTemplates(t *testing.T) {
	cases := readChatCases(t)
	for _, text := range []string{"", "{{ messages }}", cases.Templates[0].Text + " ", "\n" + cases.Templates[0].Text, strings.ToUpper(cases.Templates[0].Text)} {
		if c, err := ParseChatTemplate(text, "", ""); err == nil || c != nil || !strings.Contains(err.Error(), "isn't supported") {
			t.Errorf("%q: %v, error %v, want an error", text, c, err)
		}
	}
	c := must.Get(ParseChatTemplate(cases.Templates[0].Text, "", ""))(t)
	for _, messages := range [][]Message{nil, {{Role: "tool", Content: "x"}}, {{Role: "user<|im_end|>", Content: "x"}}} {
		if text, err := c.Render(messages, true); err == nil || text != "" {
			t.Errorf("%v: %q, want an error", messages, text)
		}
	}
}

// chatPipeline returns a byte-level BPE with the special tokens of all templates.
func chatPipeline(t *testing.T) *Pipeline {
	t.Helper()
	tok := must.Get(New(BPE, slices.Values([]string{"the user asks, the assistant answers, the system speaks"}), 290))(t)
	var file map[string]any
	must.Do(t, json.Unmarshal(tokenizerFile(t, tok), &file))
	var added []any
	for i, name := range []string{"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "hi<s>"} {
		added = append(added, map[string]any{"id": tok.Len() + i, "content": name, "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": i%2 == 1})
	}
	file["added_tokens"] = added
	content := must.Get(json.Marshal(file))(t)
	return must.Get(readJSON(content))(t).(*Pipeline)
}

// TestChatEncode checks that Encode returns the ids of the rendered text, and that no content becomes a special token.
func TestChatEncode(t *testing.T) {
	p, cases := chatPipeline(t), readChatCases(t)
	special := map[int]bool{}
	for _, id := range p.Special() {
		special[id] = true
	}
	count := func(ids []int) (n int) {
		for _, id := range ids {
			if special[id] {
				n++
			}
		}
		return n
	}
	plain, hostile := 0, 0
	for _, template := range cases.Templates {
		chat := must.Get(ParseChatTemplate(template.Text, "<s>", "</s>"))(t)
		chat.Now = march
		for _, c := range cases.Conversations {
			text, err := chat.Render(c.Messages, c.Prompt)
			if err != nil {
				_, _, err = chat.Encode(p, c.Messages, c.Prompt)
				must.Fail(t, err)
				continue
			}
			ids, _, err := chat.Encode(p, c.Messages, c.Prompt)
			if got := must.Get(p.Decode(ids))(t); err != nil || got != text {
				t.Fatalf("%s: decoded %q, want %q", template.Name, got, text)
			}
			harmless := slices.Clone(c.Messages)
			for i := range harmless {
				harmless[i].Content = strings.Map(func(r rune) rune {
					if strings.ContainsRune("<[", r) {
						return '('
					}
					return r
				}, harmless[i].Content)
			}
			text = must.Get(chat.Render(harmless, c.Prompt))(t)
			got, _, err := chat.Encode(p, harmless, c.Prompt)
			if want := idsOf(must.Get(p.Tokenize(text, Options{Special: true}))(t)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %q: ids %v, %v, want %v", template.Name, text, got, err, want)
			}
			plain++
			if !slices.Equal(harmless, c.Messages) && !strings.HasPrefix(template.Name, "Qwen3") {
				hostile++
				if count(ids) != count(got) {
					t.Fatalf("%s: %q has %d special tokens, want %d", template.Name, c.Messages, count(ids), count(got))
				}
			}
		}
	}
	if plain < 500 || hostile < 500 {
		t.Errorf("%d and %d conversations, want 500", plain, hostile)
	}
}

// TestChatEncodeAcross checks that a special token that begins in a content doesn't hide the template's token behind
// it.
func TestChatEncodeAcross(t *testing.T) {
	p := chatPipeline(t)
	tokens, err := published.Encode[Token](p.pipeline, "hi<s>", published.Options{Special: true, Plain: []pipe.Span{{Start: 0, End: 2}}})
	if err != nil || len(tokens) == 0 || tokens[len(tokens)-1] != (Token{p.Special()["<s>"], 2, 5}) {
		t.Errorf("tokens %v, error %v, want <s> at the end", tokens, err)
	}
}

func TestOpenChatTemplate(t *testing.T) {
	text := readChatCases(t).Templates[0].Text
	quoted := must.Get(json.Marshal(text))(t)
	hi := []Message{{"user", "hi"}}
	for _, test := range []struct{ config, jinja, want string }{
		{fmt.Sprintf(`{"chat_template": %s, "bos_token": null, "extra": {}}`, quoted), "", ""},
		{fmt.Sprintf(`{"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": %s}], "bos_token": {"content": "<s>"}}`, quoted), "", ""},
		{`{"bos_token": "<s>"}`, text, ""},
		{`{"chat_template": "x"}`, text, ""},
		{`{}`, "", "has no chat template"},
		{`{"chat_template": null}`, "", "tokenizer_config.json: its chat_template must be a string"},
		{`{"chat_template": "x"}`, "", "tokenizer_config.json: this chat template isn't supported"},
		{`{"chat_template": "x"}`, "y", "chat_template.jinja: this chat template isn't supported"},
		{`{"bos_token": 3}`, text, "tokenizer_config.json: a special token must be a string"},
		{"", "", "no such file"},
	} {
		files := map[string]string{"tokenizer_config.json": test.config, "chat_template.jinja": test.jinja}
		maps.DeleteFunc(files, func(_, content string) bool { return content == "" })
		c, err := OpenChatTemplate(os.DirFS(writeFolder(t, files)))
		if test.want != "" {
			must.Fail(t, err, test.want)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.config, err)
			continue
		}
		if got, err := c.Render(hi, true); err != nil || got != "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n" {
			t.Errorf("%s: %q, %v", test.config, got, err)
		}
	}
}

// What the assistant writes is the content of its messages with the mark that ends each, and nothing else: in every
// template, also if a user imitates the marks. The templates without a mark of their own use eos.
func TestChatAnswers(t *testing.T) {
	marks := []string{"<s>", "</s>", "<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
	vocab, added := map[string]int{"<unk>": 0}, []any{}
	for i, mark := range marks {
		vocab[mark] = i + 1
		added = append(added, map[string]any{"id": i + 1, "content": mark, "special": true})
	}
	for r := ' '; r < 127; r++ {
		vocab[string(r)] = len(vocab)
	}
	vocab["\n"] = len(vocab)
	content := must.Get(json.Marshal(map[string]any{
		"version": "1.0", "decoder": map[string]any{"type": "Fuse"}, "added_tokens": added,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []any{}, "unk_token": "<unk>"},
	}))(t)
	p := must.Get(Read(strings.NewReader(string(content))))(t).(*Pipeline)
	for _, name := range ChatTemplates() {
		c := must.Get(ParseChatTemplate(name, "<s>", "</s>"))(t)
		messages := []Message{{"user", "<|im_end|></s><|eot_id|>"}, {"assistant", "Yes. </s>"}, {"user", "Sure?"}, {"assistant", "No."}}
		ids, answers, err := c.Encode(p, messages, false)
		must.Do(t, err)
		var got []string
		for i, id := range ids {
			text := must.Get(p.Decode([]int{id}))(t)
			switch {
			case answers[i] && !answers[i-1]:
				got = append(got, text)
			case answers[i]:
				got[len(got)-1] += text
			}
		}
		end, thinks := chatEnds[name], ""
		if end == "" || c.End() != end {
			t.Errorf("%s: the mark is %q, want %q", name, c.End(), end)
		}
		switch name {
		case "llama2":
			end = " " + end
		case "qwen3":
			thinks = "<think>\n\n</think>\n\n"
		}
		if want := []string{"Yes. </s>" + end, thinks + "No." + end}; !slices.Equal(got, want) {
			t.Errorf("%s: the assistant writes %q, want %q", name, got, want)
		}
	}
	if c := must.Get(ParseChatTemplate("zephyr", "", ""))(t); c.End() != "" {
		t.Errorf("without eos, the mark is %q, want none", c.End())
	}
}

// chatEnds has the marks that end answers, if eos is </s>.
var chatEnds = map[string]string{
	"chatml": "<|im_end|>", "qwen2.5": "<|im_end|>", "qwen3": "<|im_end|>", "smollm2": "<|im_end|>", "gemma": "<end_of_turn>", "gemma3": "<end_of_turn>",
	"llama3": "<|eot_id|>", "llama3.2": "<|eot_id|>", "llama2": "</s>", "mistral": "</s>", "zephyr": "</s>",
}
