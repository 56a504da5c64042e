package chats

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
)

func TestTargets(t *testing.T) {
	c := Chat{IDs: []int{5, 6, 7, 8}, Answers: []bool{false, false, true, true}}
	if got, want := c.Targets(), []int{data.Ignore, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A file that has changed is refused.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.jsonl")
	must.Do(t, os.WriteFile(path, []byte(`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`+"\n"), 0o666))
	encode := Encoder(func(messages []tokenizer.Message) (Chat, error) { return Chat{IDs: make([]int, len(messages))}, nil })
	sum, files := "", data.TextFiles{Paths: []string{path}}
	if list := must.Get(encode.Read(files, 1, &sum))(t); len(list) != 1 || len(list[0].IDs) != 2 || list[0].Place == 0 || sum == "" {
		t.Fatalf("got %+v and the checksum %q", list, sum)
	}
	must.Get(encode.Read(files, 1, &sum))(t)
	sum = "other"
	must.Refuse(encode.Read(files, 1, &sum))(t, "has changed since the run began")
}
