package task

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/layers/pretrained"
	"github.com/heed-go/heed/train"
)

// chatFolder returns a published text model whose tokenizer has the marks of ChatML, with the ids 38 and 39.
func chatFolder(t *testing.T, name string) string {
	t.Helper()
	dir := publishedFolder(t, name)
	path := filepath.Join(dir, "tokenizer.json")
	content := must.Get(os.ReadFile(path))(t)
	const marks = `"added_tokens":[{"content":"<|im_start|>","id":38,"special":true},{"content":"<|im_end|>","id":39,"special":true},`
	write(t, path, strings.Replace(string(content), `"added_tokens":[`, marks, 1))
	template := "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
	config := must.Get(json.Marshal(map[string]any{"chat_template": template, "eos_token": "</s>"}))(t)
	write(t, filepath.Join(dir, "tokenizer_config.json"), string(config))
	return dir
}

// chatFile returns a file of n conversations.
func chatFile(t *testing.T, n int) string {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		letter := string(rune('a' + i%26))
		fmt.Fprintf(&lines, `{"messages": [{"role": "user", "content": %q}, {"role": "assistant", "content": %q}]}`+"\n", strings.Repeat(letter, 1+i/26%3), strings.Repeat("yes", 1+i%2))
	}
	path := filepath.Join(t.TempDir(), "chats.jsonl")
	write(t, path, lines.String())
	return path
}

// onChats returns settings for a very short run on conversations.
func onChats(t *testing.T, from, file, tune string) Config {
	t.Helper()
	c := must.Get(Named("text", 0))(t)
	c.Data.File, c.From.Tune = file, tune
	must.Do(t, c.StartFrom(from))
	c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = 2, 0.01
	return c
}

// The targets of a conversation are the ids of what the assistant writes and of the mark after it.
func TestChatTargets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "chats.jsonl")
	write(t, file, strings.Repeat(`{"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "yes"}]}`+"\n", 3))
	c := onChats(t, chatFolder(t, "llama"), file, "")
	c.Data.Validation = 0
	task := made(t, c)
	b := must.Get(task.set.train(task.Config.Training).batch([]int{1}))(t)
	// <|im_start|> is 38, <|im_end|> is 39, a is 4 and a new line is 37.
	want := []int{38, 24, 22, 8, 21, 37, 4, 5, 39, 37, 38, 4, 22, 22, 12, 22, 23, 4, 17, 23, 37, 28, 8, 22, 39}
	if !slices.Equal(b.Inputs[:b.Len], want) {
		t.Errorf("the inputs are %d, want %d", b.Inputs[:b.Len], want)
	}
	targets := slices.Repeat([]int{data.Ignore}, len(want))
	copy(targets[20:], []int{28, 8, 22, 39}) // after the new line: yes, and the end of the message
	if !slices.Equal(b.Targets[:b.TargetLen], targets) {
		t.Errorf("the targets are %d, want %d", b.Targets[:b.TargetLen], targets)
	}
	if b.Size != 2 || slices.ContainsFunc(b.Targets[b.TargetLen:], func(id int) bool { return id != data.Ignore }) {
		t.Errorf("a micro-batch of 2 rows with one conversation has %d rows and the targets %d", b.Size, b.Targets)
	}
}

// Training must lower the loss of the answers, resume to the same bytes, and make a model that Open, ScoreText and
// Generate know.
func TestChats(t *testing.T) {
	t.Parallel()
	for from, tune := range map[string]string{"llama": "", "llama-tied": "lora"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			published, file := chatFolder(t, from), chatFile(t, 120)
			base := must.Get(Open(published))(t)
			files := data.TextFiles{Paths: []string{file}}
			before := must.Get(base.ScoreText(t.Context(), files, WindowOptions{}))(t)
			c := onChats(t, published, file, tune)
			task := made(t, c)
			if steps := task.Config.Training.StepsPerEpoch; task.Config.Describe().Use != "chat" || steps < 14 || steps > 15 { // 110 conversations in batches of 8, in two buckets
				t.Errorf("the run has %d steps per epoch: %s", steps, task.DescribeData())
			}
			dir := filepath.Join(t.TempDir(), "run")
			run(t, task, dir, train.RunOptions{})
			wantResumed(t, c, task.Config.Training.StepsPerEpoch+2, dir)

			m := must.Get(Open(dir))(t)
			after, err := m.ScoreText(t.Context(), files, WindowOptions{})
			if err != nil || after.Tokens != before.Tokens || after.Loss > 0.5*before.Loss {
				t.Errorf("the loss is %v, and was %v before training, %v", after, before, err)
			}
			var answer strings.Builder
			if _, err := m.Generate(t.Context(), &answer, Prompt{Messages: []tokenizer.Message{{Role: "user", Content: "a"}}}, GenerateOptions{MaxTokens: 6}); err != nil || !strings.HasPrefix(answer.String(), "yes") {
				t.Errorf("the answer is %q, %v, want yes", answer.String(), err)
			}
			exported := filepath.Join(t.TempDir(), "exported")
			must.Do(t, m.Export(exported))
			if c, err := pretrained.ReadConfig(os.DirFS(exported)); err != nil || !slices.Contains(c.End, 39) {
				t.Errorf("the exported model ends at the tokens %d, %v, want also <|im_end|>, 39", c.End, err)
			}
			changed := c
			changed.Data.SHA256 = strings.Repeat("0", 64)
			must.Refuse(New(changed))(t, "has changed since the run began")
		})
	}
}

// The validation loss must be the loss that ScoreText computes conversation by conversation, whatever the padding.
func TestChatPadding(t *testing.T) {
	t.Parallel()
	file := chatFile(t, 30)
	c := onChats(t, chatFolder(t, "llama"), file, "")
	c.Data.ValidationFile = file
	task := made(t, c)
	set := task.set.(*chatSet)
	for _, widths := range [][]int{set.widths, {31}, {25, 28, 31}} {
		set.widths = widths
		got, err := task.Evaluate(t.Context())
		want, err2 := task.ScoreText(t.Context(), data.TextFiles{Paths: []string{file}}, WindowOptions{})
		if err != nil || err2 != nil || math.Abs(got.Loss-want.Loss) > 1e-5 || got.Total != want.Tokens {
			t.Errorf("rows of %d: the loss is %v, want %v; %v, %v", widths, got, want, err, err2)
		}
	}
}

// Conversations that are too long are cut, and left out if no answer is left. Mistakes are errors that name the line.
func TestChatRows(t *testing.T) {
	t.Parallel()
	published := chatFolder(t, "llama")
	file := chatFile(t, 20)
	content := must.Get(os.ReadFile(file))(t)
	long := `{"messages": [{"role": "user", "content": "aaaaaaaaaaaaaaaaaaaaa"}, {"role": "assistant", "content": "yes"}]}` + "\n"
	cut := `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "yesyesyesyesyesyes"}]}` + "\n"
	write(t, file, string(content)+long+cut)
	task := made(t, onChats(t, published, file, ""))
	if s := task.DescribeData(); !strings.Contains(s, "22 conversations") || !strings.Contains(s, "cut: 2 conversations; 1 left out") || task.Config.Task.MaxLen != 32 {
		t.Errorf("the description is\n%s", s)
	}
	for _, tt := range []struct {
		line, from string
		change     func(c *Config)
		words      []string
	}{
		{`{"messages": [{"role": "narrator", "content": "a"}, {"role": "assistant", "content": "b"}]}`, published, nil, []string{"line 23", "must be system, user or assistant", "narrator"}},
		{`{"messages": [{"role": "user", "content": "a"}]}`, published, nil, []string{"line 23", "nothing to learn"}},
		{"", publishedFolder(t, "llama"), nil, []string{"chat template", "tokenizer_config.json"}},
		{"", published, func(c *Config) { c.Training.StepsPerEpoch = 1 }, []string{"steps_per_epoch must be 3"}},
		{"", published, func(c *Config) { c.Task.MaxLen = 5 }, []string{"none is left", "task.max_len"}},
		{"", "", nil, []string{"only a published model with a chat template can learn", "set from"}},
	} {
		write(t, file, string(content)+long+cut+tt.line)
		c := small(t, "text")
		if c.Data.File = file; tt.from != "" {
			c = onChats(t, tt.from, file, "")
		}
		if tt.change != nil {
			tt.change(&c)
		}
		must.Refuse(New(c))(t, tt.words...)
	}
}

// A template's mark ends an answer also where the tokenizer has it as ordinary text.
func TestWrittenMark(t *testing.T) {
	t.Parallel()
	dir := chatFolder(t, "llama")
	path := filepath.Join(dir, "tokenizer.json")
	write(t, path, strings.Replace(read(t, path), `"<|im_end|>","id":39,"special":true`, `"<|im_end|>","id":39,"special":false`, 1))
	m := must.Get(Open(dir))(t)
	ended, weights := 0, m.Params.Get("head.weight").Value.Float32s()
	for _, sign := range []float32{1, -1} { // in one case, the mark is the likeliest token after the conversation
		clear(weights)
		for i := range 16 {
			weights[39*16+i] = sign
		}
		var answer strings.Builder
		g, err := m.Generate(t.Context(), &answer, Prompt{Messages: []tokenizer.Message{{Role: "user", Content: "a"}}}, GenerateOptions{MaxTokens: 3})
		if err != nil || strings.Contains(answer.String(), "<|im_end|>") {
			t.Errorf("the answer is %q, %v", answer.String(), err)
		}
		if g.Finish == "stop" && g.Tokens == 1 {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("the mark has ended %d of 2 answers, want 1", ended)
	}
}

// Conversations that are soon learned by heart end training early. Without validation, or with a Patience of the
// caller, they don't.
func TestChatsStopEarly(t *testing.T) {
	t.Parallel()
	c := onChats(t, chatFolder(t, "llama"), chatFile(t, 40), "")
	c.Training.MaxEpochs, c.Training.Optimizer.LearningRate = -1, 0.02
	task := made(t, c)
	if s := task.Config.Training.Stopping; s.Patience != 2 || s.MinDelta != 0.01 || task.Config.Training.MaxEpochs != 20 {
		t.Errorf("got %+v and %d epochs, want a patience of 2, a least change of 0.01 and 20 epochs", s, task.Config.Training.MaxEpochs)
	}
	s := run(t, task, filepath.Join(t.TempDir(), "run"), train.RunOptions{})
	if !s.StoppedEarly || s.Epochs >= 20 || !(*s.ValLoss < 0.2) {
		t.Errorf("training ends after %d epochs because %s, with the validation loss %.4f, want it to stop once answers are learned", s.Epochs, s.Because, *s.ValLoss)
	}
	c.Data.Validation = 0
	if s := made(t, c).Config.Training.Stopping; s.Patience != 0 || s.MinDelta != 0 {
		t.Errorf("without validation: got %+v, want no early stopping", s)
	}
	c.Data.Validation, c.Training.Stopping.Patience = 100, 7
	if s := made(t, c).Config.Training.Stopping; s.Patience != 7 {
		t.Errorf("the patience of the caller: got %+v, want 7", s)
	}
}
