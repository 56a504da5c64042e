package data

import (
	"errors"
	"testing"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

const chatLine = `{"id": 7, "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes.", "weight": 1}]}`

func chatFile(t *testing.T, content string) TextFiles {
	t.Helper()
	return oneFile(writeAll(t, map[string]string{"chats.jsonl": content}) + "/chats.jsonl")
}

func TestChats(t *testing.T) {
	t.Parallel()
	files := chatFile(t, chatLine+"\r\n\n"+chatLine) // also an empty line, and no newline at the end
	var lines []string
	sum, err := files.Chats(func(line string, messages []tokenizer.Message) error {
		lines = append(lines, line)
		if len(messages) != 2 || messages[0] != (tokenizer.Message{Role: "user", Content: "Hi"}) || messages[1] != (tokenizer.Message{Role: "assistant", Content: "Yes."}) {
			t.Errorf("got the messages %q", messages)
		}
		return nil
	})
	if err != nil || len(lines) != 2 || lines[0] != chatLine || lines[1] != chatLine || len(sum) != 64 {
		t.Errorf("got %q, checksum %q, %v", lines, sum, err)
	}
	other, err := chatFile(t, chatLine).Chats(func(string, []tokenizer.Message) error { return nil })
	if err != nil || other == sum {
		t.Errorf("another file has the checksum %q, %v", other, err)
	}
	mine := errors.New("mine")
	_, err = files.Chats(func(string, []tokenizer.Message) error { return mine })
	if must.Fail(t, err, "line 1: mine"); !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
}

func TestBadChats(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{`:                  "isn't a JSON object",
		`["a"]`:              "isn't a conversation",
		`{"text":1}`:         "isn't a conversation",
		`{"messages": "hi"}`: "isn't a conversation",
		`{"messages": null}`: "isn't a conversation",
		`{"messages": [1]}`:  "isn't a conversation",
		`{"messages": []}`:   "no message with the role assistant",
		`{"messages": [{"role": "user", "content": "a"}]}`:                                  "no message with the role assistant",
		`{"messages": [{"role": "assistant"}]}`:                                             "message 0 (from 0) must have a role and a content",
		`{"messages": [{"role": "assistant", "content": null, "tool_calls": []}]}`:          "message 0 (from 0) must have a role and a content",
		`{"messages": [{"role": "assistant", "content": "a", "content": "b"}]}`:             "isn't a JSON object",
		`{"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]}`: "message 0 (from 0) must have a role and a content",
	} {
		must.Refuse(chatFile(t, chatLine+"\n"+line+"\n").Chats(func(string, []tokenizer.Message) error { return nil }))(t, "chats.jsonl", "line 2: ", want)
	}
	must.Refuse(oneFile(write(t, chatLine)).Chats(nil))(t, "must be in files that end in .jsonl")
}

func TestHaveChats(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{chatLine: true, "\n" + chatLine + "\nx": true, `{"messages": "text"}`: false, `{"text": "a"}`: false, "": false, "x\n" + chatLine: false} {
		files := chatFile(t, content)
		if got := files.HaveChats(); got != want {
			t.Errorf("%q: got %v", content, got)
		}
		if files.Key = "text"; files.HaveChats() {
			t.Errorf("%q with the key text has conversations", content)
		}
	}
	if oneFile(write(t, chatLine)).HaveChats() || oneFile("none.jsonl").HaveChats() {
		t.Error("a file without the ending .jsonl, or a missing file, has conversations")
	}
}
