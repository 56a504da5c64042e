package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Lines that begin with a slash change the conversation, and don't go to the model.
func TestChatCommands(t *testing.T) {
	dir := chatFolder(t)
	config := filepath.Join(dir, "config.json")
	write(t, config, strings.Replace(read(t, config), `"max_position_embeddings": 32`, `"max_position_embeddings": 256`, 1))
	answered := func(question string, flags ...string) string {
		t.Helper()
		return succeed(t, append([]string{"generate", dir, "--chat", "--tokens=4", "--temperature=3", "--prompt=" + question}, flags...)...)
	}
	first := answered("a")
	for _, test := range []struct {
		lines, want, stderr string
	}{
		{"a\n/reset\na\n", first + first, ""},
		{"/system b\na\n/reset\na\n/system\na\n", answered("a", "--system=b") + answered("a", "--system=b") + first, ""},
		{"//a\n/reset\n /a\n", answered("/a") + answered(" /a"), ""},
		{"a\n/quit\na\n", first, ""},
		{"/help\na\n", first, chatCommands},
		{"/reset now\n/\x1b[31m" + strings.Repeat("x", 100) + "\na\n", first, `heed: there is no "/reset now"; these lines aren't questions:` + "\n" + chatCommands +
			`heed: there is no "/\x1b[31m` + strings.Repeat("x", 44) + ` … "; these lines aren't questions:` + "\n" + chatCommands},
	} {
		withText(t, test.lines)
		if got := heed("chat", dir, "--tokens=4", "--temperature=3"); got.code != 0 || got.stdout != test.want || got.stderr != test.stderr {
			t.Errorf("%q: got %+v, want %q and standard error %q", test.lines, got, test.want, test.stderr)
		}
	}
	withText(t, "a\na\n")
	if got := succeed(t, "chat", dir, "--tokens=4", "--temperature=3"); got == first+first || !strings.HasPrefix(got, first) {
		t.Errorf("two questions are answered by %q, want the second one in the conversation", got)
	}
}
