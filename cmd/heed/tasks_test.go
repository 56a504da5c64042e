package main

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train/task"
)

// heed help tasks lists every task, every head of published models, and a call of every command for a folder.
func TestHelpTasks(t *testing.T) {
	out := succeed(t, "help", "tasks")
	for _, name := range task.Names() {
		must.Have(t, out, "\n  "+name+" ")
	}
	for _, classes := range pretrained.Heads() {
		must.Have(t, out, "\n  "+strings.Join(classes, ", ")+" ")
	}
	for _, name := range []string{"predict", "explain", "search", "rank", "generate", "chat", "serve"} {
		must.Have(t, out, "\n  heed "+name+" ")
	}
	for line, want := range map[string]string{"  classification ": " predict, explain", "  mlm ": "predict, embed, search", "  ForCausalLM, ": " predict, generate"} {
		_, rest, _ := strings.Cut(out, line)
		if got, _, _ := strings.Cut(rest, "\n"); !strings.HasSuffix(got, want) {
			t.Errorf("the line of%s ends in %q, want %q", line, got, want)
		}
	}
	must.Have(t, out, "a number for a text ", "the label of a text ")
	fail(t, heed("help", "tasks", "more"), 2, `there is no command "tasks more"`)
}
