package task

import (
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/setting"
)

// Generate must stop at strings that several tokens make, and say why it ended.
func TestGenerateStops(t *testing.T) {
	task := fitted(t, small(t, "text"))
	var whole, cut strings.Builder
	o := GenerateOptions{MaxTokens: 40}
	if g, err := task.Generate(t.Context(), &whole, Prompt{Text: "The quick"}, o); err != nil || g.Finish != "length" || whole.Len() != 40 {
		t.Fatalf("Generate writes %q, %+v, %v", whole.String(), g, err)
	}
	o.Stop = []string{"never", whole.String()[10:13]}
	before, _, _ := strings.Cut(whole.String(), o.Stop[1])
	g, err := task.Generate(t.Context(), &cut, Prompt{Text: "The quick"}, o)
	if want := (Generated{PromptTokens: 9, Tokens: len(before) + 3, Finish: "stop"}); err != nil || g != want || cut.String() != before {
		t.Errorf("with the stop %q, Generate writes %q, %+v, %v, want %q, %+v", o.Stop[1], cut.String(), g, err, before, want)
	}
	for _, wrong := range []GenerateOptions{{MaxTokens: -1}, {MaxTokens: 1, Stop: []string{""}}} {
		if _, err := task.Generate(t.Context(), &cut, Prompt{Text: "The"}, wrong); setting.As(err).Paths() == nil {
			t.Errorf("%+v: got error %v, want a *ConfigError", wrong, err)
		}
	}
}
