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
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// A prediction is one call of heed predict.
type prediction struct {
	path, out string        // values of --data and --out
	as        data.Settings // how to read the file
	options   model.PredictOptions
	labels    model.Labels // values of --labels, --template and --several
	asJSON    bool

	ctx    context.Context
	model  *model.Model
	stderr io.Writer

	answered, unknown, cut int // numbers of inputs
	failed                 failures
}

// predictHelp is the help of heed predict.
const predictHelp = `Print one line per input, with the model's answer: a sequence, a label, a number or, for a text model, the
likeliest next character. For masked text (mlm), the answer is the input with the likeliest symbols in place
of its masks, which are written [MASK]. If the model learned pairs, an input is two texts with a tab between
them; a model for questions reads a question and a context, and answers with a part of the context, or ""
for no answer. An answer that would be invisible is quoted: " " is a space, "\n" a new line. If an input
can't be answered, its line is empty and the exit status isn't 0; standard error has the first few reasons.

With --top N, a line has up to N likeliest answers, each followed by its probability, with tabs between:
labels, next characters, sequences of tags or, for seq2seq, the best answers of a beam at least N wide.

With --json, a line is an object with input, answer and probability, with cut and unknown if they are true,
and with alternatives if --top is given. Without an answer, it has input and error. If tags mark entities, as
B-PER and I-PER do, it has spans, a list of objects with label, start, end and text, and with a score if the
model is a published one. Start and end count bytes of the input. An answer to a question has start and end,
which count bytes of the context.

A model of several labels (multilabel) answers with the labels that reach their thresholds, with the
separator of its training file between them, or | if there was none. With --top N, a line has the N labels
with the highest scores. With --json, answer is a list, and scores has the score of each label.

With --labels, a model of natural language inference says how likely a text entails a sentence about each
label, such as "This example is LABEL.". With --several, a line has all labels, each with a probability of
its own. A published model that translates or summarises follows its generation_config.json.

Without inputs, heed answers each line of standard input as soon as it arrives. With --data, the inputs
are a column of a TSV, CSV, JSONL or CoNLL file, which may be compressed with gzip. The file is written
back with an additional column of answers, in the same encoding, and compressed only if the name of
--out ends in .gz. In TSV, an answer with a tab or a line break is quoted. In JSONL, each object gets the
key "answer", which is null without an answer, and a list for several labels. In CoNLL, the line of each
token gets its tag, or "_" without an answer. Answers to questions also get start and end. With --top, further
columns are probability, answer_2, probability_2 and so on. With --json, heed writes only the objects.

Inputs with symbols that training never saw are answered too. The context of a model is max_len in
config.json. If an input is longer, a model that answers with one label or number ignores the end of the
input (or of the longer text of a pair), and a text model ignores the beginning; so does a published model
whose tokenizer cuts texts on the left. Models for questions and for the tags of a text read all of it, in
windows that overlap. Other models don't answer it. Standard error has the number of such inputs.`

func newPredict() *cobra.Command {
	var p prediction
	cmd := &cobra.Command{
		Use:   "predict DIR [INPUT...]",
		Short: "Answer inputs with a trained model",
		Long:  predictHelp,
		Example: `  heed predict runs/reverse gorgonia attention
  heed predict runs/words --beam 5 --top 3 < words.txt
  heed predict runs/mails --data new.csv --top 2 --out answered.csv
  heed predict models/opus-mt-en-ROMANCE --target-language fra 'The king is here.'
  heed predict models/t5-small --prompt-name summarization < article.txt
  heed predict runs/payments --threshold fraud=0.2 < payments.txt
  heed predict models/nli --labels sport,politics --template 'This text is about {}.' 'They won the cup'
  heed predict runs/mails --json 'The parcel is late' | jq .probability
  heed predict models/ner --json --entities simple 'Ann Lee lives in Oslo' | jq .spans
  printf 'Who sings?\tAnn sings.\n' | heed predict runs/answers --json`,
		Args:    takes("a run folder, then inputs or none to read standard input", cobra.MinimumNArgs(1)),
		PreRunE: func(cmd *cobra.Command, args []string) error { return p.check(cmd.Flags(), args[0], args[1:]) },
		RunE:    func(cmd *cobra.Command, args []string) error { return p.run(cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	f.IntVar(&p.options.Beam, "beam", 0, beamHelp)
	languageFlags(f)
	f.IntVar(&p.options.Top, "top", 0, "number of likeliest answers to print, each with its probability")
	choose(f, "entities", &p.options.Entities, "how a published model's tags become entities: %s; all but words are as in transformers' pipeline (default words)")
	thresholdFlag(f, &p.options.Threshold)
	noAnswerFlag(f, &p.options.NoAnswer)
	p.labelFlags(f)
	f.BoolVar(&p.asJSON, "json", false, "print a JSON object per input")
	f.StringVar(&p.path, "data", "", "TSV, CSV, JSONL or CoNLL file with the inputs")
	f.StringVar(&p.out, "out", "", "with --data: file to write, in the form of --data or, with --json, as JSONL (default: standard output)")
	readFlags(f, &p.as, "column of the inputs, by name, by number from 1, or by key for JSONL; two columns if the model learned pairs")
	return cmd
}

func (p *prediction) check(flags *pflag.FlagSet, dir string, inputs []string) error {
	c, err := readConfig(flags, dir)
	switch wrong := c.Describe().Predict; {
	case err == nil && wrong != nil:
		return usagef("%s: %w", dir, wrong)
	case err == nil:
		err = cmp.Or(rowsOnly(flags, dir, c, "data", "columns", "header", "quotes"), p.checkLabels(flags, dir, c))
	default:
		err = nil // opening the folder gives the same error
	}
	return cmp.Or(err, needData(flags, "out", "columns", "header", "quotes", "encoding"), knownEncoding(p.as.Encoding),
		argsOrData(flags, "inputs", inputs), fileFlag(flags, "out"))
}

// labelFlags declares --labels and the flags that belong to it.
func (p *prediction) labelFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&p.labels.Names, "labels", nil, "labels to choose among in place of the model's own, such as sport,politics, with a model of inference")
	f.StringVar(&p.labels.Template, "template", "", "with --labels: sentence about a label, with {} in the label's place (default \"This example is {}.\")")
	f.BoolVar(&p.labels.Several, "several", false, "with --labels: several labels, or none, may be right")
}

// checkLabels completes the options with --labels, and returns an error if the model has no use for these flags.
func (p *prediction) checkLabels(flags *pflag.FlagSet, dir string, c task.Config) error {
	l := &p.labels
	for i := range l.Names {
		l.Names[i] = strings.TrimSpace(l.Names[i])
	}
	l.Names = slices.DeleteFunc(l.Names, func(name string) bool { return name == "" })
	switch {
	case !flags.Changed("labels") && (flags.Changed("template") || l.Several):
		return usagef("--template and --several are for --labels, which is missing")
	case !flags.Changed("labels"):
		return nil
	case c.Describe().Labels != nil:
		return usagef("--labels: %s: %w", dir, c.Describe().Labels)
	}
	if p.options.Labels = l; l.Several && p.options.Top == 0 {
		p.options.Top = len(l.Names)
	}
	return nil
}

// run answers the inputs, the file or standard input.
func (p *prediction) run(cmd *cobra.Command, dir string, inputs []string) error {
	stdout := cmd.OutOrStdout()
	out := &outFile{flag: "out", path: p.out, inputs: append(runFiles(dir, baseOf(cmd.Flags())), p.path)}
	err := out.open(stdout)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := p.fitsRows(); err != nil {
		return err
	}
	line, end := waitIf(p.path != "" || len(inputs) > 0, cmd, "Predicting") // not while somebody types the inputs
	defer end()
	if p.model, err = openModel(cmd, dir); err != nil {
		return err
	}
	p.model.Progress = line.counts(p.path != "")
	if err := checkOptions(p.model, p.options); err != nil {
		return err
	}
	p.model.Note = noting(cmd)
	readAs(&p.model.Config.Data, p.as)
	p.ctx, p.stderr = cmd.Context(), cmd.ErrOrStderr()
	switch {
	case p.out != "":
		err = out.write(p.ctx, p.file)
	case p.path != "":
		err = p.file(visible(stdout))
	case len(inputs) > 0:
		err = p.answer("", 0, inputs, stdout)
	default:
		err = inputLines(cmd, typeLines, func(first int, lines []string) error { return p.answer("standard input", first, lines, stdout) })
	}
	unanswered := p.summary()
	if unanswered != nil && len(inputs) > 0 { // a wrong argument is a wrong call
		unanswered = &usageError{unanswered}
	}
	return errors.Join(wrongFlag(err, nil), unanswered)
}

// answer answers inputs from standard input, whose first one has a line number, or arguments, whose name is empty.
func (p *prediction) answer(name string, first int, inputs []string, w io.Writer) error {
	answers, err := p.model.PredictAll(p.ctx, inputs, p.options)
	if err != nil {
		return err
	}
	if name == "" && len(answers) == 1 && answers[0].Err != nil && !p.asJSON { // a count of failures would add nothing
		return wrongInput(answers[0].Err)
	}
	for i, a := range answers {
		p.note(name, first+i, a)
	}
	return p.print(answers, w)
}

// print prints one line per answer.
func (p *prediction) print(answers []model.Answer, w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, a := range answers {
		var err error
		switch {
		case p.asJSON:
			err = printJSON(out, a)
		case a.Err == nil:
			_, err = fmt.Fprintln(out, strings.Join(fields(a, quoted), "\t"))
		default:
			_, err = fmt.Fprintln(out)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// fields returns the columns that predict prints for an answer: its text or, if it has a Top, each alternative and its
// probability. It changes texts with show.
func fields(a model.Answer, show func(string) string) []string {
	if a.Top == nil {
		return []string{show(a.Text)}
	}
	var columns []string
	for _, t := range a.Top {
		columns = append(columns, show(t.Text), strconv.FormatFloat(math.Exp(t.LogProb), 'g', 4, 64))
	}
	return columns
}

// note counts an answer. It prints the error if there is one, but only the first few of a call, with the file's name
// and the line. An argument has no name.
func (p *prediction) note(name string, line int, a model.Answer) {
	p.answered++
	if a.Cut {
		p.cut++
	}
	switch {
	case a.Err != nil:
		if name != "" {
			a.Err = fmt.Errorf("%s, line %d: %w", name, line, a.Err)
		}
		p.failed.add(p.stderr, a.Err)
	case a.Unknown:
		p.unknown++
	}
}

// summary prints how many inputs were cut or have unknown symbols, and returns an error if some inputs have no answer.
func (p *prediction) summary() error {
	if p.cut > 0 {
		inputs := fmt.Sprintf("%d of %d inputs are", p.cut, p.answered)
		switch {
		case p.answered == 1:
			inputs = "the input is"
		case p.cut == 1:
			inputs = fmt.Sprintf("1 of %d inputs is", p.answered)
		}
		noteCut(p.stderr, p.model, inputs)
	}
	if p.unknown > 0 {
		fmt.Fprintf(p.stderr, "heed: letters, or mostly words, that training never saw are in %d of %s\n", p.unknown, text.Count(p.answered, "input"))
	}
	if p.failed > 0 {
		return fmt.Errorf("there is no answer to %d of %s", p.failed, text.Count(p.answered, "input"))
	}
	return nil
}

// file writes the rows of the file with additional columns. With --json, it writes only the answers.
func (p *prediction) file(w io.Writer) error {
	if p.asJSON {
		var failed error
		err := task.PredictFile(p.ctx, p.model, p.path, io.Discard, p.options, nil, func(line int, a model.Answer) []any {
			p.note(p.path, line, a)
			failed = cmp.Or(failed, p.print([]model.Answer{a}, w))
			return nil
		})
		return cmp.Or(err, failed)
	}
	limit := model.MaxBeam // so that a wrong --top doesn't fill the memory with names
	if classes := p.model.Config.Task.Classes; p.options.Labels != nil {
		limit = len(p.labels.Names)
	} else if classes != nil {
		limit = len(classes)
	}
	part := p.model.Config.Describe().Columns
	added := append([]string{"answer"}, part...)
	if p.options.Top > 0 {
		added = append(added, "probability")
	}
	for i := 2; i <= min(p.options.Top, limit); i++ {
		added = append(added, fmt.Sprintf("answer_%d", i), fmt.Sprintf("probability_%d", i))
	}
	return task.PredictFile(p.ctx, p.model, p.path, w, p.options, added, func(line int, a model.Answer) []any {
		p.note(p.path, line, a)
		if a.Number != nil {
			return []any{json.Number(a.Text)}
		}
		values := make([]any, len(added)-len(part)) // there may be fewer alternatives
		if a.Labels != nil && p.options.Top == 0 {
			return []any{labelList(a)}
		}
		for i, field := range fields(a, func(s string) string { return s }) {
			if values[i] = field; i%2 == 1 {
				values[i] = json.Number(field)
			}
		}
		if a.Part != nil {
			values = slices.Insert(values, 1, any(json.Number(strconv.Itoa(a.Part.Start))), any(json.Number(strconv.Itoa(a.Part.End))))
		}
		return values
	})
}

// A labelList has several labels: an array in JSONL, and otherwise a text.
type labelList model.Answer

func (l labelList) String() string { return l.Text }

// MarshalJSON encodes the labels as an array.
func (l labelList) MarshalJSON() ([]byte, error) { return json.Marshal(l.Labels) }

// fitsRows returns an error if the name of --out ends like another form than the one that heed writes. With --json,
// heed writes JSONL, and otherwise the form of --data.
func (p *prediction) fitsRows() error {
	promised, form, reason := table.FormNamed(p.out), "JSONL", "--json writes JSONL"
	if promised != "" && !p.asJSON {
		var err error
		if form, err = table.Form(p.path, table.Options{Encoding: p.as.Encoding, Tagged: true}); err != nil {
			return nil // reading the file gives the same error
		}
		reason = fmt.Sprintf("the rows of %s are written back as %s", p.path, form)
	}
	if promised != "" && promised != form {
		return usagef("--out %s promises %s, but %s: let its name end in .%s", p.out, promised, reason, strings.ToLower(form))
	}
	return nil
}

// quoted returns a text, in quotes if it is empty or has unprintable characters or spaces at either end.
func quoted(s string) string {
	if strings.TrimSpace(s) != s || s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
