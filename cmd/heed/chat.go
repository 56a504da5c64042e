package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

func newChat() *cobra.Command {
	var w writing
	cmd := &cobra.Command{
		Use:   "chat DIR",
		Short: "Talk with a published model",
		Long: `Answer each line of standard input with a published model that was made for conversations, such as SmolLM2
Instruct. The model knows all questions and answers before. Ctrl-C stops an answer; Ctrl-D, or Ctrl-C
while heed waits for a line, ends the conversation. These lines aren't questions:

` + chatCommands + `
The model's chat template says how the conversation is written; --template chooses another one by name.
Without flags, tokens are drawn as generation_config.json says. A conversation that exceeds the model's
context is an error; on a terminal, /reset then goes on.`,
		Example: `  heed chat models/smollm2 --system 'You answer in one sentence.'
  printf 'What is attention?\nShorter, please.\n' | heed chat models/smollm2`,
		Args: takes("one model folder", cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return w.chat(cmd, args[0]) },
	}
	cmd.Flags().IntVar(&w.MaxTokens, "tokens", 0, "maximum number of tokens of an answer (0: 1024, or less if the context is full)")
	w.flags(cmd.Flags())
	return cmd
}

// chat answers the lines of standard input.
func (w *writing) chat(cmd *cobra.Command, dir string) error {
	if c, err := readConfig(cmd.Flags(), dir); err == nil && c.Task.Published.Tokens == 0 {
		return usagef("%s learned the task %s, but heed chat needs a published model: use heed generate or heed predict", dir, c.Task.Name)
	}
	m, err := w.open(cmd, dir)
	if err != nil {
		return err
	}
	c := &conversation{writing: w, cmd: cmd, model: m}
	c.begin()
	err = inputLines(cmd, "Type a question, or /help; Ctrl-D ends the conversation.\n"+chatPrompt, func(_ int, lines []string) error {
		for _, line := range lines {
			if err := c.line(line); err != nil {
				return err
			}
		}
		c.note(chatPrompt)
		return nil
	})
	if err == nil {
		c.note("\n") // after the prompt
	}
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

const (
	chatPrompt   = "> "
	chatCommands = `  /help         list these lines
  /reset        begin anew, with the same system message
  /system TEXT  begin anew, with TEXT as the system message; without TEXT, with none
  /quit         end the conversation
  //TEXT        ask a question that begins with a slash: /TEXT
`
)

var errQuit = errors.New("the conversation has ended")

// A conversation is what was said so far.
type conversation struct {
	*writing
	cmd      *cobra.Command
	model    *model.Model
	messages []tokenizer.Message
}

// begin begins the conversation anew.
func (c *conversation) begin() {
	asked := c.asked("")
	c.messages = asked[:len(asked)-1]
}

// note prints text to a terminal from which lines are read.
func (c *conversation) note(text string) {
	if typed(c.cmd) {
		fmt.Fprint(c.cmd.ErrOrStderr(), text)
	}
}

// line answers a question, or does what a line that begins with a slash says. At /quit, it returns errQuit.
func (c *conversation) line(line string) error {
	command := strings.TrimSpace(line)
	switch {
	case command == "":
	case !strings.HasPrefix(line, "/"):
		return c.ask(line)
	case strings.HasPrefix(line, "//"):
		return c.ask(line[1:])
	case command == "/help":
		fmt.Fprint(c.cmd.ErrOrStderr(), chatCommands)
	case command == "/quit":
		return errQuit
	case command == "/reset", command == "/system", strings.HasPrefix(line, "/system "):
		if system, ok := strings.CutPrefix(command, "/system"); ok {
			c.system = strings.TrimSpace(system)
		}
		c.begin()
		c.note("The conversation begins anew.\n")
	default:
		fmt.Fprintf(c.cmd.ErrOrStderr(), "heed: there is no %q; these lines aren't questions:\n%s", text.Shorten(command, 50, 0), chatCommands)
	}
	return nil
}

// ask answers a question. On a terminal, a question that the model can't answer is forgotten.
func (c *conversation) ask(question string) error {
	messages := append(c.messages, tokenizer.Message{Role: "user", Content: question})
	answer, err := c.answer(c.cmd, c.model, messages)
	var wrong *model.InputError
	switch {
	case err == nil:
		c.messages = append(messages, tokenizer.Message{Role: "assistant", Content: answer})
	case errors.As(err, &wrong) && typed(c.cmd):
		fmt.Fprintf(c.cmd.ErrOrStderr(), "heed: %s; /reset begins anew\n", oneLine(wrong.Err))
		return nil
	case wrong != nil:
		return wrong.Err
	}
	return err
}

// answer prints and returns the answer to a conversation. An interruption ends the answer, not the program.
func (w *writing) answer(cmd *cobra.Command, m *model.Model, messages []tokenizer.Message) (string, error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	stdout, answer := cmd.OutOrStdout(), &strings.Builder{}
	_, err := m.Generate(ctx, io.MultiWriter(visible(stdout), answer), model.Prompt{Messages: messages, Template: w.prompt.Template}, w.GenerateOptions)
	if errors.Is(err, context.Canceled) && cmd.Context().Err() == nil {
		err = nil
	}
	if errors.As(err, new(*model.InputError)) { // nothing was written
		return "", err
	}
	if _, failed := fmt.Fprintln(stdout); err == nil {
		err = failed
	}
	return answer.String(), err
}
