package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/train/task"
)

func newGenerate() *cobra.Command {
	var prompt string
	o := task.GenerateOptions{Echo: true}
	cmd := &cobra.Command{
		Use:   "generate DIR --prompt TEXT --tokens N",
		Short: "Continue a text with a trained text model",
		Long: `Print a prompt and the text that a text model writes after it, each character as soon as it is written.

heed draws each character from the model's probabilities. If the model was trained with --units bpe, it
draws tokens. The flag --temperature changes the probabilities, --top-k limits the draw to the likeliest
characters, and --top-p limits it further. The same seed always gives the same text. When the text is
longer than the model's context, the model continues from the last half of the context. If the prompt
is longer than the context, the model ignores its beginning, and standard error has a note. On a
terminal, characters that the terminal would act on are shown as escapes, such as \x1b.`,
		Example: `  heed generate runs/text --prompt 'To be' --tokens 300
  heed generate runs/text --prompt 'To be' --tokens 300 --temperature 0.7 --top-k 20 --seed 2`,
		Args: takes("one run folder, and a prompt of several words in quotes", cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return generate(cmd, args[0], prompt, o) },
	}
	f := cmd.Flags()
	f.StringVar(&prompt, "prompt", "", "text to continue; if the model was trained without --units bpe, only with characters that it knows")
	f.IntVar(&o.MaxTokens, "tokens", 0, "number of characters to write; if the model was trained with --units bpe, number of tokens")
	f.Float64Var(&o.Sampler.Temperature, "temperature", 1, "randomness: more above 1, less below 1 (0: always the likeliest character)")
	f.IntVar(&o.Sampler.TopK, "top-k", 0, "number of likeliest characters to draw from (0: all)")
	f.Float64Var(&o.Sampler.TopP, "top-p", 1, "draw from the likeliest characters that together have this probability (0 or 1: all)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of all draws")
	f.StringArrayVar(&o.Stop, "stop", nil, "end the text before this string; repeat it for more")
	return cmd
}

// generate prints the prompt and the text after it.
func generate(cmd *cobra.Command, dir, prompt string, o task.GenerateOptions) error {
	// Check the kind of task before the flags: with another kind of model, no flags are right.
	if c, err := readConfig(dir); err == nil && !c.Kind().Generates {
		return usagef("%s learned the task %s, but heed generate needs a text model: use heed predict %s INPUT...", dir, c.Task.Name, shell(dir))
	}
	if prompt == "" {
		return usagef("--prompt must be the text to continue, got none")
	}
	if err := wrongFlag(o.Check(), nil); err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	m, err := openModel(stdout, dir)
	if err != nil {
		return err
	}
	if m.Cuts(prompt) {
		noteCut(cmd.ErrOrStderr(), m, "the prompt is")
	}
	_, err = m.Generate(cmd.Context(), visible(stdout), task.Prompt{Text: prompt}, o)
	var wrong *task.InputError
	if errors.As(err, &wrong) {
		return usagef("--prompt: %w", wrong.Err)
	}
	if _, failed := fmt.Fprintln(stdout); err == nil { // also after an interruption
		err = failed
	}
	return err
}
