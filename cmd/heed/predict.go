package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

func newPredict() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "predict DIR INPUT...",
		Short: "Answer inputs with a trained model",
		Long: `Answer each input, a line each: the sequence that the model makes of it or, for a text model, the
character that it finds most likely to follow. An answer that couldn't be seen is in quotes: " " is a
space, "\n" a new line.

Of an input to a text model that is longer than its context, the max_len of config.json, only the last
max_len characters are read. Put -- before inputs that begin with a dash.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("heed predict takes a run folder and one or more inputs: heed predict DIR INPUT...")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			// All inputs are answered before the first is printed: a wrong one leaves no half of the output.
			var answers []string
			for _, input := range args[1:] {
				if cmd.Context().Err() != nil {
					return errInterrupted
				}
				answer, err := m.Predict(input)
				if err != nil {
					return wrongInput(err)
				}
				answers = append(answers, answer)
			}
			for _, answer := range answers {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), quoted(answer)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; put -- before inputs that begin with a dash", flagError(cmd, err))
	})
	return cmd
}

// quoted returns a text in quotes, where it couldn't be told without.
func quoted(s string) string {
	if strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
