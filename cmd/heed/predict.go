package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task"
)

// Up to predictBatch inputs are answered together, or fewer if they have more than predictBytes bytes. This limits
// memory.
const (
	predictBatch = 1 << 13
	predictBytes = 1 << 24
)

func newPredict() *cobra.Command {
	var o task.PredictOptions
	var asJSON bool
	var file, out string
	var as data.Settings // how to read the file
	cmd := &cobra.Command{
		Use:   "predict DIR [INPUT...]",
		Short: "Answer inputs with a trained model",
		Long: `Print one line per input, with the model's answer: a sequence, a label or, for a text model, the
likeliest next character. An answer that would be invisible is quoted: " " is a space, "\n" a new line.
If an input can't be answered, its line is empty and the exit status isn't 0; standard error has the
reasons for the first few.

With --top N, a line has the N likeliest answers, each followed by its probability, with tabs between:
labels, next characters, sequences of tags or, for seq2seq, the best answers of a beam that is at least N
wide. There may be fewer. With --json, a line is an object: input, answer, probability, cut and unknown if
they are true, alternatives with --top, or error if there is no answer.

Without inputs, heed answers each line of standard input as soon as it arrives. With --data, the inputs
are a column of a TSV, CSV, JSONL or CoNLL file, which may be compressed with gzip. The file is written
back with an additional column of answers, in the same encoding, and compressed only if the name of
--out ends in .gz. In TSV, an answer with a tab or a line break is quoted. In JSONL, each object gets the
key "answer", which is null without an answer. In CoNLL, the line of each token gets its tag, or "_"
without an answer. With --top, further columns are probability, answer_2, probability_2 and so on. With
--json, heed writes only the objects, one per row.

Inputs with symbols that training never saw are answered too. The context of a model is max_len in
config.json. Of a longer input, a model for classification reads only the first max_len symbols, and a
text model only the last; others don't answer it. Standard error has the number of such inputs.
Put -- before inputs that begin with a dash.`,
		Example: `  heed predict runs/reverse gorgonia attention
  heed predict runs/words --beam 5 --top 3 < words.txt
  heed predict runs/mails --data new.csv --top 2 --out answered.csv
  heed predict runs/mails --json 'The parcel is late' | jq .probability`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 {
				return usagef("heed predict takes a run folder, then inputs or none to read standard input: heed predict DIR [INPUT...]")
			}
			flags := cmd.Flags()
			if err := suits(flags, args[0], "data", "columns", "header"); err != nil {
				return err
			}
			for _, name := range []string{"out", "columns", "header", "encoding"} {
				if flags.Changed(name) && !flags.Changed("data") {
					return usagef("--%s needs --data", name)
				}
			}
			switch data := flags.Changed("data"); {
			case data && len(args) > 1:
				return usagef("the inputs are arguments or in the file of --data, not both: got %q", args[1])
			case data && file == "":
				return usagef("--data must be a file's name, got none")
			case flags.Changed("out") && out == "":
				return usagef("--out must be a file's name, got none")
			case o.Beam < 1:
				return usagef("--beam must be at least 1, got %d", o.Beam)
			case flags.Changed("top") && o.Top < 1:
				return usagef("--top must be at least 1, got %d", o.Top)
			}
			return knownEncoding(as.Encoding)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			answered := &outFile{flag: "out", path: out, inputs: append(runFiles(args[0]), file)}
			if err := answered.open(cmd.OutOrStdout()); err != nil {
				return err
			}
			defer answered.Close()
			if out != "" {
				if err := fitsRows(out, file, as.Encoding, asJSON); err != nil {
					return err
				}
			}
			m, err := openModel(args[0])
			if err != nil {
				return err
			}
			readAs(&m.Config.Data, as)
			p := &prediction{ctx: cmd.Context(), model: m, options: o, asJSON: asJSON, stderr: cmd.ErrOrStderr()}
			switch {
			case cmd.Flags().Changed("data") && out != "":
				err = answered.write(p.ctx, func(w io.Writer) error { return p.file(file, w) })
			case cmd.Flags().Changed("data"):
				err = p.file(file, visible(cmd.OutOrStdout()))
			case len(args) > 1:
				err = p.inputs(args[1:], cmd.OutOrStdout())
			default:
				err = inputLines(cmd, func(first int, inputs []string) error { return p.lines(first, inputs, cmd.OutOrStdout()) })
			}
			said := p.said()
			if said != nil && len(args) > 1 { // a wrong argument is a wrong call
				said = &usageError{said}
			}
			return errors.Join(wrongFlag(err, nil), said)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Beam, "beam", 1, "beam width for seq2seq: number of unfinished answers to keep at each symbol")
	f.IntVar(&o.Top, "top", 0, "number of likeliest answers to print, each with its probability")
	f.BoolVar(&asJSON, "json", false, "print a JSON object per input")
	f.StringVar(&file, "data", "", "TSV, CSV, JSONL or CoNLL file with the inputs")
	f.StringVar(&out, "out", "", "with --data: file to write, in the form of --data or, with --json, as JSONL (default: standard output)")
	f.StringSliceVar(&as.Columns, "columns", nil, "with --data: column of the inputs, by name, by number from 1, or by key for JSONL; two for a model of two texts per row (default: as in training)")
	f.StringVar(&as.Encoding, "encoding", "", "with --data: "+encodings+" (default: as in training)")
	f.StringVar(&as.Header, "header", "", "with --data: yes if the first row is a header, or no if it is a row like the others (default: as in training or, with --columns, a header if names are given)")
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
	asJSON  bool
	stderr  io.Writer

	answered, failed, unknown, cut int // numbers of inputs
}

// inputs answers inputs that are arguments.
func (p *prediction) inputs(inputs []string, w io.Writer) error {
	answers, err := p.model.PredictAll(p.ctx, inputs, p.options)
	if err != nil {
		return err
	}
	if len(answers) == 1 && answers[0].Err != nil && !p.asJSON { // this error alone says it all
		return wrongInput(answers[0].Err)
	}
	for _, a := range answers {
		p.count(a)
	}
	return p.print(answers, w)
}

// print prints one line per answer.
func (p *prediction) print(answers []task.Answer, w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, a := range answers {
		var line []byte
		var err error
		switch {
		case p.asJSON:
			line, err = text.JSON(a)
		case a.Err == nil:
			line = []byte(strings.Join(fields(a, quoted), "\t"))
		}
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	return out.Flush()
}

// fields returns an answer as show shows it. If the answer has a Top, it returns each alternative and its probability.
func fields(a task.Answer, show func(string) string) []string {
	if a.Top == nil {
		return []string{show(a.Text)}
	}
	var all []string
	for _, t := range a.Top {
		all = append(all, show(t.Text), strconv.FormatFloat(math.Exp(t.LogProb), 'g', 4, 64))
	}
	return all
}

// note counts the answer to a line of the file name, which it adds to the error.
func (p *prediction) note(name string, line int, a task.Answer) {
	if a.Err != nil {
		a.Err = fmt.Errorf("%s, line %d: %w", name, line, a.Err)
	}
	p.count(a)
}

// count counts an answer. It prints the error if there is one, but only the first few of a call.
func (p *prediction) count(a task.Answer) {
	p.answered++
	if a.Cut {
		p.cut++
	}
	switch {
	case a.Err != nil:
		if p.failed++; p.failed <= 5 {
			fmt.Fprintln(p.stderr, "heed:", oneLine(a.Err))
		}
	case a.Unknown:
		p.unknown++
	}
}

// said prints how many inputs were cut or have unknown symbols, and returns an error if some inputs have no answer.
func (p *prediction) said() error {
	if p.cut > 0 {
		who := fmt.Sprintf("%d of %d inputs are", p.cut, p.answered)
		switch {
		case p.answered == 1:
			who = "the input is"
		case p.cut == 1:
			who = fmt.Sprintf("1 of %d inputs is", p.answered)
		}
		sayCut(p.stderr, p.model, who)
	}
	if p.unknown > 0 {
		fmt.Fprintf(p.stderr, "heed: symbols that training never saw are in %d of %s\n", p.unknown, text.Count(p.answered, "input"))
	}
	if p.failed > 0 {
		return fmt.Errorf("there is no answer to %d of %s", p.failed, text.Count(p.answered, "input"))
	}
	return nil
}

// maxLine is the maximum length of a line of standard input, in bytes.
const maxLine = 1 << 22

// lines answers lines of standard input. The argument first is the number of the first one.
func (p *prediction) lines(first int, inputs []string, w io.Writer) error {
	answers, err := p.model.PredictAll(p.ctx, inputs, p.options)
	for i, a := range answers {
		p.note("standard input", first+i, a)
	}
	if err != nil {
		return err
	}
	return p.print(answers, w)
}

// inputLines calls do with all lines of standard input that have arrived together, and doesn't wait for more. The
// argument first is the number of the first of them, from 1.
func inputLines(cmd *cobra.Command, do func(first int, lines []string) error) error {
	r, err := stdin(cmd)
	if err != nil {
		return err
	}
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Type one input per line; Ctrl-D ends the input.")
	}
	read, arrived, ended := make(chan string), make(chan []string), make(chan error, 1)
	go func() { // after an interruption, it waits for a line until the process ends
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			read <- s.Text()
		}
		ended <- s.Err()
		close(read)
	}()
	go gather(read, arrived)
	number := 0
	for {
		select {
		case lines, ok := <-arrived:
			if !ok {
				if err := <-ended; errors.Is(err, bufio.ErrTooLong) {
					return fmt.Errorf("standard input, line %d: the line has more than %d MiB", number+1, maxLine>>20)
				} else if err != nil {
					return fmt.Errorf("standard input, line %d: %w", number+1, err)
				}
				return nil
			}
			if number == 0 {
				lines[0] = strings.TrimPrefix(lines[0], "\uFEFF")
			}
			if err := do(number+1, lines); err != nil {
				return err
			}
			number += len(lines)
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		}
	}
}

// gather reads lines until they are wanted, at most predictBatch of them and about predictBytes bytes, and sends them
// together. It closes arrived when read is closed.
func gather(read <-chan string, arrived chan<- []string) {
	defer close(arrived)
	var lines []string
	for bytes, more := 0, true; more || lines != nil; {
		next, give := read, arrived
		if !more || len(lines) == predictBatch || bytes >= predictBytes {
			next = nil // wait until the lines are wanted
		}
		if lines == nil {
			give = nil
		}
		select {
		case line, ok := <-next:
			if more = ok; ok {
				lines, bytes = append(lines, line), bytes+len(line)
			}
		case give <- lines:
			lines, bytes = nil, 0
		}
	}
}

// file writes a file back with additional columns. With --json, it writes only the answers.
func (p *prediction) file(path string, w io.Writer) error {
	if p.asJSON {
		var failed error
		err := p.model.PredictFile(p.ctx, path, io.Discard, p.options, nil, func(line int, a task.Answer) []any {
			p.note(path, line, a)
			failed = cmp.Or(failed, p.print([]task.Answer{a}, w))
			return nil
		})
		return cmp.Or(err, failed)
	}
	most := task.MaxBeam // so that a wrong --top doesn't fill the memory with names
	if classes := p.model.Config.Task.Classes; classes != nil {
		most = len(classes)
	}
	added := []string{"answer"}
	if p.options.Top > 0 {
		added = append(added, "probability")
	}
	for i := 2; i <= min(p.options.Top, most); i++ {
		added = append(added, fmt.Sprintf("answer_%d", i), fmt.Sprintf("probability_%d", i))
	}
	return p.model.PredictFile(p.ctx, path, w, p.options, added, func(line int, a task.Answer) []any {
		p.note(path, line, a)
		if a.Number != nil {
			return []any{a.Value()}
		}
		all := make([]any, len(added)) // there may be fewer alternatives
		for i, field := range fields(a, func(s string) string { return s }) {
			if all[i] = field; i%2 == 1 {
				all[i] = json.Number(field)
			}
		}
		return all
	})
}

// fitsRows returns an error if the name of --out promises another form than its rows have. They have the form of the
// file or, with --json, are JSONL.
func fitsRows(out, file, encoding string, asJSON bool) error {
	promised, have, why := table.FormNamed(out), "JSONL", "--json writes JSONL"
	if promised != "" && !asJSON {
		var err error
		if have, err = table.Form(file, table.Options{Encoding: encoding, Tagged: true}); err != nil {
			return nil // it occurs again when the file is read
		}
		why = fmt.Sprintf("the rows of %s are written back as %s", file, have)
	}
	if promised != "" && promised != have {
		return usagef("--out %s promises %s, but %s: let its name end in .%s", out, promised, why, strings.ToLower(have))
	}
	return nil
}

// sayCut prints a note about inputs that are longer than the model's context.
func sayCut(stderr io.Writer, m *task.Model, who string) {
	end := "the end"
	if m.Config.Kind().Generates {
		end = "the beginning"
	}
	fmt.Fprintf(stderr, "heed: %s longer than the model's %d symbols; %s was ignored\n", who, m.Config.Task.MaxLen, end)
}

// quoted returns a text, in quotes if it is empty or has unprintable characters or spaces at either end.
func quoted(s string) string {
	if strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
