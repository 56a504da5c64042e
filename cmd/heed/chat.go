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
	"golang.org/x/term"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/train/task"
)

func newChat() *cobra.Command {
	var w writing
	cmd := &cobra.Command{
		Use:   "chat DIR",
		Short: "Talk with a published model",
		Long: `Answer each line of standard input with a published model that was made for conversations, such as SmolLM2
Instruct. The model knows all questions and answers before. Ctrl-C stops an answer; Ctrl-D, or Ctrl-C
while heed waits for a line, ends the conversation.

The model's chat template says how the conversation is written; --template chooses another one by name.
Without flags, tokens are drawn as generation_config.json says. A conversation that exceeds the model's
context is an error.`,
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
	messages := w.asked("")
	messages = messages[:len(messages)-1]
	asks := func() {
		if f, ok := cmd.InOrStdin().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprint(cmd.ErrOrStderr(), "> ")
		}
	}
	asks()
	return inputLines(cmd, func(_ int, lines []string) error {
		for _, line := range lines {
			if strings.TrimSpace(line) == "" {
				continue
			}
			messages = append(messages, tokenizer.Message{Role: "user", Content: line})
			answer, err := w.answer(cmd, m, messages)
			if err != nil {
				return err
			}
			messages = append(messages, tokenizer.Message{Role: "assistant", Content: answer})
		}
		asks()
		return nil
	})
}

// answer prints and returns the answer to a conversation. An interruption ends the answer, not the program.
func (w *writing) answer(cmd *cobra.Command, m *task.Model, messages []tokenizer.Message) (string, error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
	defer stop()
	stdout, answer := cmd.OutOrStdout(), &strings.Builder{}
	_, err := m.Generate(ctx, io.MultiWriter(visible(stdout), answer), task.Prompt{Messages: messages, Template: w.prompt.Template}, w.GenerateOptions)
	if errors.Is(err, context.Canceled) && cmd.Context().Err() == nil {
		err = nil
	}
	var wrong *task.InputError
	if errors.As(err, &wrong) {
		return "", wrong.Err
	}
	if _, failed := fmt.Fprintln(stdout); err == nil {
		err = failed
	}
	return answer.String(), err
}
