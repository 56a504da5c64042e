package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/model"
)

// A writing holds the flags of heed generate and heed chat.
type writing struct {
	prompt model.Prompt
	system string
	model.GenerateOptions
}

func newGenerate() *cobra.Command {
	w := writing{GenerateOptions: model.GenerateOptions{Echo: true}}
	var chat bool
	cmd := &cobra.Command{
		Use:   "generate DIR --prompt TEXT --tokens N",
		Short: "Continue a text with a trained text model",
		Long: `Print a prompt and the text that a text model writes after it, each character as soon as it is written.

heed draws each character from the model's probabilities. If the model was trained with --units bpe, or is a
published model, it draws tokens. The same seed always gives the same text. When the text is longer than the
model's context, the model continues from the last half of the context. If the prompt is longer, the model
ignores its beginning, and standard error has a note. On a terminal, characters that the terminal would
act on are shown as escapes, such as \x1b.

DIR may be the folder of a published model, such as a Llama. Without flags, it draws tokens as its
generation_config.json says, and the prompt may be empty. The model ends the text itself, or at --tokens.
Its context can't be exceeded. With --chat, the prompt is a question in a conversation, and heed prints
only the answer.`,
		Example: `  heed generate runs/text --prompt 'To be' --tokens 300
  heed generate runs/text --prompt 'To be' --tokens 300 --temperature 0.7 --top-k 20 --seed 2
  heed generate models/smollm2 --chat --prompt 'What is attention?' --tokens 200`,
		Args: takes("one model folder, and a prompt of several words in quotes", cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc([]string{"system", "template"}, cmd.Flags().Changed); i >= 0 && !chat {
				return usagef("--%s needs --chat", []string{"system", "template"}[i])
			}
			if chat && w.prompt.Text == "" {
				return usagef("--prompt must be the question, got none")
			}
			if chat {
				w.prompt = model.Prompt{Messages: w.asked(w.prompt.Text), Template: w.prompt.Template}
				w.Echo = false
			}
			return w.generate(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.prompt.Text, "prompt", "", "text to continue; if the model was trained without --units bpe, only with characters that it knows")
	f.IntVar(&w.MaxTokens, "tokens", 0, "number of characters to write; if the model was trained with --units bpe, number of tokens; for a published model, at most this number of tokens (0: 1024, or less if the context is full)")
	f.BoolVar(&chat, "chat", false, "for a published model: the prompt is a question, in the form of the model's chat template")
	w.flags(f)
	return cmd
}

// flags declares the flags for choosing tokens and for conversations.
func (w *writing) flags(f *pflag.FlagSet) {
	f.StringVar(&w.system, "system", "", "in a conversation: the system message")
	f.StringVar(&w.prompt.Template, "template", "", "in a conversation: chat template, one of "+strings.Join(tokenizer.ChatTemplates(), ", ")+" (default: the model's own)")
	baseFlag(f)
	weightsFlag(f)
	s := &w.Sampler
	f.Float64Var(&s.Temperature, "temperature", 1, "randomness: more above 1, less below 1 (0: always the likeliest character); for a published model, the default is in its generation_config.json")
	f.IntVar(&s.TopK, "top-k", 0, "number of likeliest characters to draw from (0: all)")
	f.Float64Var(&s.TopP, "top-p", 1, "draw from the likeliest characters that together have this probability (0 or 1: all)")
	f.Float64Var(&s.MinP, "min-p", 0, "draw from characters with at least this share of the likeliest one's probability (0: all)")
	f.Float64Var(&s.RepetitionPenalty, "repetition-penalty", 0, "above 1: characters of the text so far, with the prompt, are less likely (0 or 1: off)")
	f.Float64Var(&s.PresencePenalty, "presence-penalty", 0, "subtracted from the logits of characters that were written (0: off)")
	f.Float64Var(&s.FrequencyPenalty, "frequency-penalty", 0, "subtracted from the logits of characters for each time that they were written (0: off)")
	f.Uint64Var(&w.Seed, "seed", 1, "seed of all draws")
	f.StringArrayVar(&w.Stop, "stop", nil, "end the text before this string; repeat it for more")
}

// asked returns a conversation with one question.
func (w *writing) asked(question string) (messages []tokenizer.Message) {
	if w.system != "" {
		messages = append(messages, tokenizer.Message{Role: "system", Content: w.system})
	}
	return append(messages, tokenizer.Message{Role: "user", Content: question})
}

// settle replaces the values of flags that were not given by the values of the model.
func (w *writing) settle(flags *pflag.FlagSet, own decode.Sampler) {
	s := w.Sampler
	w.Sampler = decode.SamplerSettings{
		Temperature: given(flags, "temperature", &s.Temperature), TopK: given(flags, "top-k", &s.TopK),
		TopP: given(flags, "top-p", &s.TopP), MinP: given(flags, "min-p", &s.MinP),
		RepetitionPenalty: given(flags, "repetition-penalty", &s.RepetitionPenalty),
		PresencePenalty:   given(flags, "presence-penalty", &s.PresencePenalty),
		FrequencyPenalty:  given(flags, "frequency-penalty", &s.FrequencyPenalty),
	}.Over(own)
}

// given returns value, or nil if the flag wasn't given.
func given[T any](flags *pflag.FlagSet, name string, value *T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return value
}

// open checks the kind of the model in dir and the flags, and opens the model.
func (w *writing) open(cmd *cobra.Command, dir string) (*model.Model, error) {
	// Check the kind of task before the flags: with another kind of model, no flags are right.
	c, err := readConfig(cmd.Flags(), dir)
	if wrong := c.Describe().Generate; err == nil && wrong != nil {
		return nil, usagef("%s: %w", dir, wrong)
	}
	if published := err == nil && c.Task.Published.Tokens > 0; err == nil && !published {
		if w.prompt.Text == "" {
			return nil, usagef("--prompt must be the text to continue, got none")
		}
		if err := atLeastOne(cmd.Flags(), "tokens"); err != nil {
			return nil, err
		}
	}
	if err := wrongFlag(w.Check(), nil); err != nil {
		return nil, err
	}
	m, err := openModel(cmd, dir)
	if err == nil {
		w.settle(cmd.Flags(), m.Sampler())
		err = wrongFlag(w.Check(), nil)
	}
	return m, err
}

// generate prints the prompt and the text after it, or the answer to a question.
func (w *writing) generate(cmd *cobra.Command, dir string) error {
	m, err := w.open(cmd, dir)
	if err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	if w.prompt.Text != "" && m.Cuts(w.prompt.Text) {
		noteCut(cmd.ErrOrStderr(), m, "the prompt is")
	}
	_, err = m.Generate(cmd.Context(), visible(stdout), w.prompt, w.GenerateOptions)
	var wrong *model.InputError
	if errors.As(err, &wrong) {
		return usagef("--prompt: %w", wrong.Err)
	}
	if _, failed := fmt.Fprintln(stdout); err == nil { // also after an interruption
		err = failed
	}
	return err
}
