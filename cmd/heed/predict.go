package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task"
)

// predictBatch is how many inputs are answered together at most: what is held of them is bounded by it.
const predictBatch = 1 << 13

func newPredict() *cobra.Command {
	var o task.PredictOptions
	var scores bool
	var file, out string
	var columns []string
	cmd := &cobra.Command{
		Use:   "predict DIR [INPUT...]",
		Short: "Answer inputs with a trained model",
		Long: `Answer each input, a line each: the sequence that the model makes of it, the label that it chooses or,
for a text model, the character that it finds most likely to follow. An answer that couldn't be seen is
in quotes: " " is a space, "\n" a new line. What can't be answered gets an empty line, standard error
says why, of the first few, and the status isn't 0.

Without inputs, each line of standard input is one, and is answered as soon as it is there. With --data
they are a column of a TSV or CSV file, which is written back with the answers in a column more; one
with a tab or an end of line is in quotes where TSV can't hold it. Inputs with symbols that training
never saw are answered, and counted on standard error.

Of an input to a text model that is longer than its context, the max_len of config.json, only the last
max_len characters are read. Put -- before inputs that begin with a dash.`,
		Example: `  heed predict runs/reverse gorgonia attention
  heed predict runs/words --beam 5 --scores < words.txt
  heed predict runs/mails --data new.csv --out answered.csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 {
				return usagef("heed predict takes a run folder, and inputs or else standard input's lines: heed predict DIR [INPUT...]")
			}
			flags := cmd.Flags()
			switch data := flags.Changed("data"); {
			case data && len(args) > 1:
				return usagef("the inputs are those of --data, or arguments, not both: got %q", args[1])
			case !data && (flags.Changed("out") || flags.Changed("columns")):
				return usagef("--out and --columns go with --data")
			case data && file == "", flags.Changed("out") && out == "":
				return usagef("--data and --out must be a file's name, got none")
			case o.Beam < 1:
				return usagef("--beam must be at least 1, got %d", o.Beam)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			answered := &outFile{flag: "out", path: out, inputs: append(runFiles(args[0]), file)}
			if out != "" {
				if err := answered.open(); err != nil {
					return err
				}
				defer answered.Close()
			}
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			if o.Beam > 1 && !m.Config.Kind().Beams {
				return usagef("--beam is for answers written symbol by symbol; %s learned the task %s", args[0], m.Config.Task.Name)
			}
			column := append(columns, "")[0] // a second one, of the answers, may be named as in training
			p := &prediction{ctx: cmd.Context(), model: m, options: o, scores: scores, stderr: cmd.ErrOrStderr()}
			switch {
			case cmd.Flags().Changed("data") && out != "":
				err = answered.write(p.ctx, func(w io.Writer) error { return p.file(file, column, w) })
			case cmd.Flags().Changed("data"):
				err = p.file(file, column, visible(cmd.OutOrStdout()))
			case len(args) > 1:
				err = p.inputs(args[1:], cmd.OutOrStdout())
			default:
				err = p.lines(cmd.InOrStdin(), cmd.OutOrStdout())
			}
			said := p.said()
			if said != nil && len(args) > 1 { // the call has what is wrong
				said = &usageError{said}
			}
			return errors.Join(wrongFlag(err), said)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Beam, "beam", 1, "answers of pairs that are followed side by side, to return the likeliest")
	f.BoolVar(&scores, "scores", false, "after each answer, the natural logarithm of the probability that the model gives it")
	f.StringVar(&file, "data", "", "a TSV or CSV file to answer")
	f.StringVar(&out, "out", "", "with --data: the file to write (default: standard output)")
	f.StringSliceVar(&columns, "columns", nil, "with --data: the name of the column with the inputs, or its number from 1 (default: as in training)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; put -- before inputs that begin with a dash", flagError(cmd, err))
	})
	return cmd
}

// A prediction is one call of heed predict.
type prediction struct {
	ctx     context.Context
	model   *task.Model
	options task.PredictOptions
	scores  bool
	stderr  io.Writer

	answered, failed, unknown int
}

// inputs answers arguments.
func (p *prediction) inputs(inputs []string, w io.Writer) error {
	answers, err := p.model.PredictAll(p.ctx, inputs, p.options)
	if err != nil {
		return err
	}
	if len(answers) == 1 && answers[0].Err != nil { // of which there is no more to say
		return wrongInput(answers[0].Err)
	}
	for _, a := range answers {
		p.count(a)
	}
	return p.print(answers, w)
}

// print prints a line an answer.
func (p *prediction) print(answers []task.Answer, w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, a := range answers {
		line := quoted(a.Text)
		if a.Err != nil {
			line = ""
		}
		if p.scores {
			line += "\t" + score(a)
		}
		out.WriteString(line + "\n")
	}
	return out.Flush()
}

// score returns an answer's log probability, or nothing of an input without one.
func score(a task.Answer) string {
	if a.Err != nil {
		return ""
	}
	return fmt.Sprintf("%.4f", math.Round(1e4*a.LogProb)/1e4+0) // never -0.0000
}

// answer answers the inputs of some lines of what has that name, and says the first few that can't be.
func (p *prediction) answer(name string, inputs []string, lines []int) ([]task.Answer, error) {
	answers, err := p.model.PredictAll(p.ctx, inputs, p.options)
	for i, a := range answers {
		p.note(name, lines[i], a)
	}
	return answers, err
}

// note counts the answer to a line of what has that name, and says what is wrong with one of the first that have none.
func (p *prediction) note(name string, line int, a task.Answer) {
	if a.Err != nil {
		a.Err = fmt.Errorf("%s, line %d: %w", name, line, a.Err)
	}
	p.count(a)
}

// count counts an answer, and whether the model knows only a part of its input.
func (p *prediction) count(a task.Answer) {
	p.answered++
	switch {
	case a.Err != nil:
		p.fail(a.Err)
	case a.Unknown:
		p.unknown++
	}
}

// fail notes an input that can't be answered, and says what is wrong with the first few.
func (p *prediction) fail(err error) {
	if p.failed++; p.failed <= 5 {
		fmt.Fprintln(p.stderr, "heed:", oneLine(err))
	}
}

// said says how many inputs have symbols that the model doesn't know, and returns an error where some have no answer.
func (p *prediction) said() error {
	if p.unknown > 0 {
		fmt.Fprintf(p.stderr, "heed: training never saw all symbols of %d of %s\n", p.unknown, text.Count(p.answered, "input"))
	}
	if p.failed > 0 {
		return fmt.Errorf("there is no answer to %d of %s", p.failed, text.Count(p.answered, "input"))
	}
	return nil
}

// maxLine is the longest line of standard input.
const maxLine = 1 << 22

// lines answers the lines of standard input: those that are there already together, so that none waits for another.
func (p *prediction) lines(r io.Reader, w io.Writer) error {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(p.stderr, "An input a line; Ctrl-D ends them.")
	}
	read, ended := make(chan string, predictBatch), make(chan error, 1)
	go func() { // which ends with the process, if it waits for a line then
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			read <- s.Text()
		}
		ended <- s.Err()
		close(read)
	}()
	number := 0
	for {
		var inputs []string
		var numbers []int
		add := func(line string) {
			if number++; number == 1 {
				line = strings.TrimPrefix(line, "\uFEFF")
			}
			inputs, numbers = append(inputs, line), append(numbers, number)
		}
		select {
		case line, ok := <-read:
			if !ok {
				if err := <-ended; errors.Is(err, bufio.ErrTooLong) {
					return fmt.Errorf("standard input, line %d: it is too long, at most %d MiB are read", number+1, maxLine>>20)
				} else if err != nil {
					return fmt.Errorf("standard input, line %d: %w", number+1, err)
				}
				return nil
			}
			add(line)
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
		for there := true; there && len(inputs) < predictBatch; {
			select {
			case line, ok := <-read:
				if there = ok; ok {
					add(line)
				}
			default:
				there = false
			}
		}
		answers, err := p.answer("standard input", inputs, numbers)
		if err == nil {
			err = p.print(answers, w)
		}
		if err != nil {
			return err
		}
	}
}

// file writes a file back with the answers in a column more.
func (p *prediction) file(path, column string, w io.Writer) error {
	added := []string{"answer"}
	if p.scores {
		added = append(added, "log_prob")
	}
	return p.model.PredictFile(p.ctx, path, column, w, p.options, added, func(line int, a task.Answer) []string {
		p.note(path, line, a)
		return []string{a.Text, score(a)}[:len(added)]
	})
}

// quoted returns a text in quotes, where it couldn't be told without.
func quoted(s string) string {
	if strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
