package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/table"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/report"
	"github.com/heed-go/heed/train/task"
	"github.com/heed-go/heed/train/task/judge"
)

// An evaluation is one call of heed eval.
type evaluation struct {
	files   []string
	as      data.Settings // how to read the files
	answers string
	page    string
	asJSON  bool
	options model.PredictOptions
	windows model.WindowOptions
	line    *waiting
}

const evalHelp = `Score a run's saved weights on its validation set: the sequences that were held out of training, the
rows of --validation-data, or the last tenth of the text. The loss is the mean cross-entropy in nats. For
a text with --units bpe, heed also prints the loss per character, to compare it with models of characters.
If the model learned rows of a file, heed also scores its answers to the sources. With --data, heed scores
the model on all rows of another file, or on the last tenth of another text.

For seq2seq, every answer that the rows have for a source is right. Each answer of the model is compared
with the nearest right answer, the one that needs the fewest edits: symbols replaced, inserted or left
out. The error rate is the number of all edits divided by the number of symbols in all nearest right
answers. If the model has byte pairs, words count instead of symbols. A source that the model can't answer
counts as an empty answer.

For tagging with tags such as B-PER, I-PER and O, heed also scores whole entities like the script
conlleval: precision, recall and F1 for each type and for all types together.

For embed, heed searches for the positive of each query among the positives and negatives of all rows, and
prints the mean reciprocal rank and the shares that come first or among the first ten. If rows have scores,
it prints their correlations with the cosines. With --threshold, the line of the loss still counts the likelier
labels.

With --out, heed writes a page about all answers: the scores of each class, mistakes of every class and, for
classification, what each word did to an answer. It is one file and contains texts of the data.

DIR may be the folder of a published model, with --data. A text model, also one that began as such a model,
is scored on a whole text, each token given the tokens before it: the loss, the perplexity, and the bits
per byte, which can be compared between models. Windows of a long text overlap: see --window and --stride. Of
conversations, only the assistant's messages count.

With --json, heed prints the scores as one JSON object: task, kind, the name of the score with its value
and what it counts, the scores of each class and more. docs/serving.md lists the keys.`

func newEval() *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "eval DIR",
		Short: "Score a trained model on its validation set or on a file",
		Long:  evalHelp,
		Example: `  heed eval runs/reverse
  heed eval runs/words --data test.tsv --beam 5 --answers answers.tsv
  heed eval runs/mails --data test.csv --out test.html
  heed eval runs/mails --data test.csv --json | jq .macro.f1
  heed eval models/gpt2 --data book.txt --window 1024 --stride 512`,
		Args:    takes("one folder", cobra.ExactArgs(1)),
		PreRunE: func(cmd *cobra.Command, args []string) error { return e.check(cmd.Flags(), args[0]) },
		RunE: func(cmd *cobra.Command, args []string) error {
			line, end := wait(cmd, "Scoring")
			defer end()
			e.line = line
			c, err := readConfig(cmd.Flags(), args[0])
			switch {
			case err != nil:
				return err
			case c.Published() && (e.files == nil && c.Opened() || e.files != nil && c.Describe().Generate == nil):
				return e.published(cmd, args[0])
			}
			return e.run(cmd, args[0], c)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&e.files, "data", nil, "TSV, CSV, JSONL or CoNLL file to score; given twice: a file with one source per line, and one with one answer per line; for text: files or folders of another text; only a run with --units bpe accepts new characters")
	readFlags(f, &e.as, "columns of the source and the answer, by name or number; for pairs of texts: three columns; for embed: the texts of a row, or two and a score; for text: key of the text in .jsonl files")
	f.BoolVar(&e.as.SkipBad, "skip-bad", false, "with --data: leave out bad rows whatever their share is (default: as in training)")
	f.IntVar(&e.options.Beam, "beam", 0, beamHelp)
	languageFlags(f)
	f.StringVar(&e.page, "out", "", "page to write about all answers, a .html file")
	f.BoolVar(&e.asJSON, "json", false, "print the scores as a JSON object")
	thresholdFlag(f, &e.options.Threshold)
	noAnswerFlag(f, &e.options.NoAnswer)
	f.IntVar(&e.windows.Window, "window", 0, "for a published text model: number of tokens that it sees at once (0: its context, but at most 8192)")
	f.IntVar(&e.windows.Stride, "stride", 0, "for a published text model: number of tokens between the starts of windows (0: half of --window)")
	f.StringVar(&e.answers, "answers", "", "file to write, with each source, its answer, whether it is right, and the right answers: CSV if its name ends in .csv, otherwise TSV; compressed if its name ends in .gz")
	return cmd
}

// check checks the flags. If the folder dir has no valid configuration, run reports that.
func (e *evaluation) check(flags *pflag.FlagSet, dir string) error {
	c, err := readConfig(flags, dir)
	isText := err == nil && c.Describe().Rows != nil
	if err = nil; isText {
		err = rowsOnly(flags, dir, c, "header", "quotes", "skip-bad", "answers", "out")
	}
	if err = cmp.Or(err, needData(flags, "encoding", "columns", "header", "quotes", "skip-bad"), knownEncoding(e.as.Encoding),
		fileFlag(flags, "answers"), fileFlag(flags, "out", ".html")); err != nil {
		return err
	}
	columns := e.as.Columns
	switch {
	case isText && columns != nil && len(columns) != 1:
		return usagef("--columns must be one for a text, the key in the lines of JSONL files, got %q", columns)
	case isText && columns != nil && !slices.ContainsFunc(e.files, hasKeys):
		return withoutKeys(e.files)
	case isText:
	case columns != nil && len(e.files) != 1:
		return usagef("--columns needs exactly one --data, the file that has these columns")
	case e.as.Header != "" && len(e.files) != 1:
		return usagef("--header needs exactly one --data, the file that it describes")
	}
	return nil
}

// run scores the model in dir, which has the configuration c.
func (e *evaluation) run(cmd *cobra.Command, dir string, c task.Config) (err error) {
	inputs := append(runFiles(dir, baseOf(cmd.Flags())), e.files...)
	if e.files == nil {
		inputs = append(inputs, dataFiles(c.Data)...)
	}
	out, page := &outFile{flag: "answers", path: e.answers, inputs: inputs}, &outFile{flag: "out", path: e.page, inputs: inputs}
	for _, file := range []*outFile{out, page} {
		if err := file.open(cmd.OutOrStdout()); err != nil {
			return err
		}
		defer file.Close()
	}
	form := table.FormNamed(e.answers)
	if form == "JSONL" || form == "CoNLL" {
		return usagef("--answers %s promises %s, but answers are written as TSV or CSV: let its name end in .tsv or .csv", e.answers, form)
	}
	var m *model.Model
	var s *judge.Score
	var examples []data.Example
	if e.files != nil && c.Describe().Rows == nil {
		m, examples, err = e.open(cmd, dir)
	} else {
		m, s, examples, err = e.score(cmd, dir)
		if c.Drawn() && e.answers == "" && e.page == "" && e.options.Beam <= 1 && e.options.Threshold == (model.Threshold{}) {
			examples = nil // for a rule of Heed's own, the score already counts the right answers
		}
	}
	if err != nil {
		return err
	}
	var r *judge.Report
	if examples != nil {
		if r, err = judge.Answers(cmd.Context(), m, examples, e.options); err != nil {
			return err
		}
	}
	if err := e.print(cmd.OutOrStdout(), judge.ScoresOf(m, s, r), r); err != nil {
		return err
	}
	if e.answers != "" {
		separator := '\t'
		if form == "CSV" {
			separator = ','
		}
		if err := out.write(cmd.Context(), func(w io.Writer) error { return r.WriteAnswers(w, separator) }); err != nil {
			return err
		}
	}
	if e.page == "" {
		return nil
	}
	var content bytes.Buffer // before the file is made, because explanations may take long
	if err := report.WriteEvaluation(cmd.Context(), &content, e.name(), m, r); err != nil {
		return err
	}
	return page.write(cmd.Context(), func(w io.Writer) error { _, err := content.WriteTo(w); return err })
}

// published scores a published text model on the files.
func (e *evaluation) published(cmd *cobra.Command, dir string) error {
	switch {
	case e.files == nil:
		return usagef("%s is a published model, without validation data: give --data, the file to score", dir)
	case slices.Contains(e.files, ""):
		return usagef("--data must be the name of a file or a folder, got none")
	}
	stdout := cmd.OutOrStdout()
	if err := checkStdout(stdout, append(runFiles(dir, baseOf(cmd.Flags())), e.files...)); err != nil {
		return err
	}
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	files := data.TextFiles{Paths: e.files, Encoding: e.as.Encoding, Key: append(e.as.Columns, "")[0]}
	s, err := m.ScoreText(cmd.Context(), files, e.windows)
	if err != nil {
		return wrongInput(wrongFlag(err, nil))
	}
	if !e.asJSON {
		_, err := fmt.Fprintln(stdout, s)
		return err
	}
	return e.print(stdout, judge.TextScoresOf(m, s), nil)
}

// name returns the name of the evaluated data.
func (e *evaluation) name() string {
	if e.files == nil {
		return "validation"
	}
	return filepath.Base(e.files[0])
}

// print prints the report, if there is one, or the scores as JSON.
func (e *evaluation) print(w io.Writer, s judge.Scores, r *judge.Report) error {
	if e.asJSON {
		return printJSON(w, s)
	}
	if r == nil {
		return nil
	}
	_, err := fmt.Fprint(w, r)
	return err
}

// score scores a run on its validation set, or on the files of a text. Without --json, it prints the score. It returns
// also the run's model and its validation examples, which are nil for text.
func (e *evaluation) score(cmd *cobra.Command, dir string) (*model.Model, *judge.Score, []data.Example, error) {
	t, err := openTask(cmd, dir, e.files, nil, true, func(c *task.Config) { readAs(&c.Data, e.as) })
	if err != nil {
		return nil, nil, nil, err
	}
	defer t.Close()
	if t.Config.Data.Validation == 0 {
		advice := ""
		if !t.Config.Drawn() && t.Config.Describe().Rows == nil {
			advice = ": use --data FILE to score a file"
		}
		return nil, nil, nil, fmt.Errorf("the run in %s has no validation set%s", dir, advice)
	}
	if err := t.Load(dir); err != nil {
		return nil, nil, nil, withoutWeights(err, dir)
	}
	t.Progress = e.line.counts(false)
	if err := e.checkOptions(t.Model); err != nil {
		return nil, nil, nil, err
	}
	s, err := t.Evaluate(cmd.Context())
	if err != nil {
		return nil, nil, nil, err
	}
	if !e.asJSON {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), s)
	}
	return t.Model, &s, t.Examples(), err
}

// checkOptions returns an error if a model can't use the options. A model that embeds texts has none.
func (e *evaluation) checkOptions(m *model.Model) error {
	if m.Config.Describe().Predict != nil && e.options == (model.PredictOptions{}) {
		return nil
	}
	return checkOptions(m, e.options)
}

// open opens a run's model and reads the examples of the files. It prints notes about the files, such as bad rows.
func (e *evaluation) open(cmd *cobra.Command, dir string) (*model.Model, []data.Example, error) {
	m, err := openModel(cmd, dir)
	if err == nil {
		err = e.checkOptions(m)
	}
	if err != nil {
		return nil, nil, err
	}
	m.Progress = e.line.counts(false)
	readAs(&m.Config.Data, e.as)
	c := task.Config{Config: *m.Config}
	if err := setFiles(&c, e.files, nil); err != nil { // only to check their number
		return nil, nil, err
	}
	examples, notes, err := task.ReadExamples(m, e.files...)
	for _, note := range notes {
		noting(cmd)(note)
	}
	return m, examples, wrongFlag(err, nil)
}
