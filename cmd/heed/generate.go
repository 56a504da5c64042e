package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/layers/decode"
	"github.com/heed-go/heed/train/task"
)

// generation is what the flags of heed generate say.
type generation struct {
	prompt      string
	tokens      int
	temperature float64
	topK        int
	topP        float64
	seed        uint64
}

func newGenerate() *cobra.Command {
	var o generation
	cmd := &cobra.Command{
		Use:   "generate DIR --prompt TEXT --tokens N",
		Short: "Write on from a text with a trained text model",
		Long: `Print a prompt and what a text model writes after it, each character as soon as it is written.

Each character, or token of a model of --units bpe, is drawn from the model's probabilities, changed by the temperature, of the top-k likeliest
ones, and of these the likeliest up to top-p. One seed always writes the same. Where the text has outgrown
the model's context, it goes on from the last half of the context. What a terminal would obey is shown as
an escape, such as \x1b.`,
		Example: `  heed generate runs/text --prompt 'To be' --tokens 300
  heed generate runs/text --prompt 'To be' --tokens 300 --temperature 0.7 --top-k 20 --seed 2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("heed generate takes one run folder, got %d arguments: put a prompt of several words in quotes", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			if t := m.Config.Task; !m.Config.Kind().Generates {
				return usagef("%s learned the task %s, and only text models write on: heed predict %s INPUT... is for it", args[0], t.Name, shell(args[0]))
			}
			stdout := cmd.OutOrStdout()
			err = m.Generate(cmd.Context(), visible(stdout), o.prompt, decode.Options{
				Sampler:   decode.Sampler{Temperature: o.temperature, TopK: o.topK, TopP: o.topP},
				Seed:      o.seed,
				MaxTokens: o.tokens,
			})
			var wrong *task.InputError
			if errors.As(err, &wrong) {
				return usagef("--prompt: %w", wrong.Err)
			}
			if _, failed := fmt.Fprintln(stdout); err == nil { // also where it was interrupted
				err = failed
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.prompt, "prompt", "", "the text to write on from, of the characters that the model knows; --units bpe knows all")
	f.IntVar(&o.tokens, "tokens", 0, "how many characters to write, or tokens of --units bpe")
	f.Float64Var(&o.temperature, "temperature", 1, "above 1 for more surprise, below for less; 0 for always the likeliest character")
	f.IntVar(&o.topK, "top-k", 0, "draw from so many of the likeliest characters; 0 for all")
	f.Float64Var(&o.topP, "top-p", 1, "draw from the likeliest characters that have this probability together; 1 for all")
	f.Uint64Var(&o.seed, "seed", 1, "decides every draw")
	return cmd
}

// check checks the flags. A prompt's characters are up to the model.
func (o generation) check() error {
	switch {
	case o.prompt == "":
		return usagef("--prompt must be the text to write on from, got none")
	case o.tokens < 1:
		return usagef("--tokens must be how many characters to write, at least 1, got %d", o.tokens)
	case !(o.temperature >= 0 && o.temperature <= math.MaxFloat64):
		return usagef("--temperature must be finite and at least 0, got %v", o.temperature)
	case o.topK < 0:
		return usagef("--top-k must be at least 1, or 0 for all characters, got %d", o.topK)
	case !(o.topP > 0 && o.topP <= 1):
		return usagef("--top-p must be above 0 and at most 1, got %v", o.topP)
	case o.temperature == 0 && (o.topK > 0 || o.topP < 1):
		return usagef("--temperature 0 always takes the likeliest character, so that there is nothing to draw: leave out --top-k and --top-p, or give another temperature")
	}
	return nil
}
