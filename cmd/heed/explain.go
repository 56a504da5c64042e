package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
)

// An explanation is one call of heed explain.
type explanation struct {
	label, against string
	top            int
	asJSON         bool

	printed bool // whether an empty line comes before the next text
	failed  failures
}

func newExplain() *cobra.Command {
	var e explanation
	cmd := &cobra.Command{
		Use:   "explain DIR [TEXT...]",
		Short: "Show the words that decided a label",
		Long: `Print the likeliest label of each text or, with --label, that label; its probability; and the words that
spoke for it (+) or against it (-), the strongest first. Without texts, heed explains each line of standard
input.

DIR is a model that classifies whole texts: a run folder or the folder of a published model. If it learned
pairs, a text is two with a tab between them. The values of all words add up, nearly, to what the words
changed in the label's logit minus the mean of all logits or, with --against, minus that label's. If a text
may have several labels, it is the label's own logit. The values are integrated gradients, mixed with what
leaving out a word changes in the linear model, if there is one. Pages show the same values.

With --json, a line is an object with input, answer, label, the label's probability, and words, in the order
of the text: each has word, start, end and value. Without --json, an empty line stands between texts.`,
		Example: `  heed explain runs/mails 'The parcel is late'
  heed explain runs/mails --label praise --against complaint --top 5 < mails.txt`,
		Args: takes("a model folder, then texts or none to read standard input", cobra.MinimumNArgs(1)),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if c, err := readConfig(cmd.Flags(), args[0]); err == nil && c.Describe().Explain != nil {
				return usagef("%s: %w", args[0], c.Describe().Explain)
			}
			return atLeastOne(cmd.Flags(), "top")
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	baseFlag(f)
	f.StringVar(&e.label, "label", "", "label to explain (default: the likeliest)")
	f.StringVar(&e.against, "against", "", "label to compare it with (default: the mean of all)")
	f.IntVar(&e.top, "top", 10, "number of words to print")
	f.BoolVar(&e.asJSON, "json", false, "print a JSON object per text")
	return cmd
}

// run explains the texts, or the lines of standard input.
func (e *explanation) run(cmd *cobra.Command, dir string, texts []string) error {
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	explain := func(texts []string) error {
		answers, err := m.PredictAll(cmd.Context(), texts, model.PredictOptions{Top: len(m.Config.Task.Classes)})
		if err != nil {
			return err
		}
		out := bufio.NewWriter(cmd.OutOrStdout())
		for _, a := range answers {
			var wrong *model.InputError
			err := e.print(out, m, a)
			if errors.As(err, &wrong) {
				e.failed.add(cmd.ErrOrStderr(), err)
				err = nil
				if e.asJSON {
					err = printJSON(out, map[string]any{"input": a.Input, "error": text.OneLine(wrong.Err)})
				}
			}
			if err != nil {
				return wrongFlag(cmp.Or(out.Flush(), err), nil)
			}
			if a.Cut {
				noteCut(cmd.ErrOrStderr(), m, "a text is")
			}
		}
		return out.Flush()
	}
	if len(texts) > 0 {
		err = explain(texts)
	} else {
		err = inputLines(cmd, typeLines, func(_ int, lines []string) error { return explain(lines) })
	}
	if n := int(e.failed); err == nil && n > 0 {
		if err = fmt.Errorf("%s can't be explained", text.Count(n, "text")); len(texts) > 0 {
			err = &usageError{err} // a wrong argument is a wrong call
		}
	}
	return err
}

// print prints the explanation of an answer.
func (e *explanation) print(w io.Writer, m *model.Model, a model.Answer) error {
	if a.Err != nil {
		return a.Err
	}
	label := cmp.Or(e.label, a.Top[0].Text)
	words, err := m.Explain(a.Input, label, e.against)
	if err != nil {
		return err
	}
	p := math.Exp(a.Top[slices.IndexFunc(a.Top, func(t model.Alternative) bool { return t.Text == label })].LogProb)
	if e.asJSON {
		answer := any(a.Text)
		if a.Labels != nil {
			answer = a.Labels
		}
		return printJSON(w, map[string]any{"input": a.Input, "answer": answer, "probability": p, "label": label, "words": words})
	}
	if e.printed {
		fmt.Fprintln(w)
	}
	e.printed = true
	fmt.Fprintf(w, "%s\t%.4f\n", quoted(label), p)
	slices.SortStableFunc(words, func(a, b model.Contribution) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	for _, word := range words[:min(e.top, len(words))] {
		fmt.Fprintf(w, "%+.2f\t%s\n", word.Value, text.EscapeExcept(word.Word, ""))
	}
	return nil
}
