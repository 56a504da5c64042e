package data

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/textfile"
)

// ChatKey is the key of the messages in JSONL files with conversations.
const ChatKey = "messages"

var errNoChat = errors.New(`it isn't a conversation, such as {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}`)

// HaveChats reports whether the files have conversations: whether the first file is JSONL, and its first line has the
// key ChatKey. The Key must be empty or the ChatKey.
func (f TextFiles) HaveChats() bool {
	paths, err := f.list()
	if err != nil || !textfile.IsJSONL(paths[0]) || f.Key != "" && f.Key != ChatKey {
		return false
	}
	found, first := false, errors.New("only the first line is read")
	f.lines(paths[0], func(line []byte) error {
		var object map[string]json.RawMessage
		found = json.Unmarshal(line, &object) == nil && len(object[ChatKey]) > 0 && object[ChatKey][0] == '['
		return first
	})
	return found
}

// Chats reads conversations from JSONL files. Each line is an object with a list of messages, as in {"messages":
// [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}. Other keys are ignored. Chats calls
// each for every line, with the line and its messages, and returns the SHA-256 of all lines in hexadecimal.
//
// Chats returns an error if a file can't be read as JSONL, if a line has no such list, if a role or a content isn't
// text, or if no message has the role assistant. It also returns the first error of each. The errors name the line.
func (f TextFiles) Chats(each func(line string, messages []tokenizer.Message) error) (sum string, err error) {
	paths, err := f.list()
	hash := sha256.New()
	for i := 0; i < len(paths) && err == nil; i++ {
		if !textfile.IsJSONL(paths[i]) {
			return "", fileError(paths[i], errors.New("conversations must be in files that end in .jsonl"))
		}
		err = f.lines(paths[i], func(line []byte) error {
			fmt.Fprintf(hash, "%s\n", line)
			messages, err := chat(line)
			if err == nil {
				err = each(string(line), messages)
			}
			return err
		})
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

// lines calls each for the lines of a JSONL file that aren't empty.
func (f TextFiles) lines(path string, each func(line []byte) error) error {
	file, err := textfile.Open(path, f.Encoding)
	if err != nil {
		return fileError(path, err)
	}
	defer file.Close()
	if err := jsonLines(file, each); err != nil {
		return fileError(path, err)
	}
	return nil
}

// chat returns the messages of a line.
func chat(line []byte) (messages []tokenizer.Message, err error) {
	if err := jsonkeys.Check(line, nil); err != nil {
		return nil, fmt.Errorf("it isn't a JSON object: %w", err)
	}
	var object struct {
		Messages []map[string]any `json:"messages"`
	}
	if json.Unmarshal(line, &object) != nil || object.Messages == nil {
		return nil, errNoChat
	}
	answers := 0
	for i, m := range object.Messages {
		role, ok1 := m["role"].(string)
		content, ok2 := m["content"].(string)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("message %d (from 0) must have a role and a content, both texts, got %.80q", i, fmt.Sprint(m))
		}
		if messages = append(messages, tokenizer.Message{Role: role, Content: content}); role == "assistant" {
			answers++
		}
	}
	if answers == 0 {
		return nil, errors.New("it has no message with the role assistant, so there is nothing to learn")
	}
	return messages, nil
}
