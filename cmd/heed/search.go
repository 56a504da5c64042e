package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// A searching is one call of heed search.
type searching struct {
	textFile
	rank    string // value of --rank
	top     int
	asJSON  bool
	several bool // more than one query may come
	failed  failures
}

func newSearch() *cobra.Command {
	var s searching
	cmd := &cobra.Command{
		Use:   "search DIR --data FILE [QUERY...]",
		Short: "Find the rows of a file by their meaning",
		Long: `Print the rows of a TSV, CSV or JSONL file whose texts are nearest to a query, nearest first: the score, and
the fields of the row, with tabs between. Without queries, heed answers each line of standard input.

DIR is a model that embeds texts: see heed embed. If its folder has prompts named query and document, they
stand before queries and texts. A score is the cosine of the two vectors or, if the folder says so, their dot
product. All vectors are compared, so the result is exact. With --rank, another model reads the query together
with each of the hundred nearest texts, which finds better rows and takes longer; the scores are its own. If
it can't read a row, standard error says why, and the exit status isn't 0.

The first call embeds all texts, which takes time, and keeps the vectors beside the file, as in
mails.csv.vectors.npy. Later calls use them, unless the texts or the model have changed.

With --json, a line is an object with the query and the rows, each with its score, its line in the file and
its fields. A row that the model of --rank can't read has error in place of score, and comes last.`,
		Example: `  heed search models/minilm --data mails.csv --column body 'the parcel is late'
  heed search models/minilm --data mails.csv --column body --rank models/reranker --top 3 < queries.txt`,
		Args:    takes("a model folder, then queries or none to read standard input", cobra.MinimumNArgs(1)),
		PreRunE: func(cmd *cobra.Command, args []string) error { return s.check(cmd.Flags(), args[0]) },
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	baseFlag(f)
	s.flags(f)
	f.StringVar(&s.rank, "rank", "", "folder of a model that scores two texts, to sort the hundred nearest rows: see heed rank (default: none)")
	f.IntVar(&s.top, "top", 10, "number of rows to print for each query")
	f.BoolVar(&s.asJSON, "json", false, "print a JSON object per query")
	return cmd
}

func (s *searching) check(flags *pflag.FlagSet, dir string) error {
	if c, err := readConfig(flags, dir); err == nil && c.Describe().Embed != nil {
		return usagef("%s: %w", dir, c.Describe().Embed)
	}
	if c, err := task.ReadConfig(s.rank); err == nil && s.rank != "" && c.Describe().Rank != nil {
		return usagef("--rank %s: %w", s.rank, c.Describe().Rank)
	}
	if !flags.Changed("data") {
		return usagef("--data must be the file to search")
	}
	return cmp.Or(fileFlag(flags, "data"), atLeastOne(flags, "top"), knownEncoding(s.as.Encoding))
}

// run answers the queries, or the lines of standard input.
func (s *searching) run(cmd *cobra.Command, dir string, queries []string) error {
	stdout := cmd.OutOrStdout()
	vectors := task.VectorsFile(s.path)
	if err := checkStdout(stdout, []string{s.path, vectors}); err != nil {
		return err
	}
	var ranker *model.Model
	if s.rank != "" { // before the texts are embedded, which takes time
		var err error
		if ranker, err = model.Open(s.rank); err != nil {
			return err
		}
	}
	line, end := wait(cmd, "Embedding")
	defer func() { end() }()
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	m.Config.Data, m.Progress, m.Note = s.settings(), line.counts(true), noting(cmd)
	found, err := task.OpenSearch(cmd.Context(), m, s.path)
	if err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	found.Ranker, m.Progress = ranker, nil
	end()
	end = func() {}
	answer := func(queries []string) error {
		nearest, err := found.Nearest(cmd.Context(), s.top, queries...)
		if err != nil {
			return wrongInput(err)
		}
		out := bufio.NewWriter(stdout)
		for i, matches := range nearest {
			if err := s.print(cmd, out, found.Names, queries[i], matches); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	if s.several = len(queries) != 1; len(queries) > 0 {
		err = answer(queries)
	} else {
		err = inputLines(cmd, typeLines, func(_ int, lines []string) error { return answer(lines) })
	}
	if n := int(s.failed); n > 0 {
		err = cmp.Or(err, fmt.Errorf("%s can't be read by the model of --rank", text.Count(n, "row")))
	}
	return err
}

// print prints the rows that a query has found.
func (s *searching) print(cmd *cobra.Command, w io.Writer, names []string, query string, matches []task.SearchMatch) error {
	type found struct {
		Score *float32 `json:"score,omitempty"`
		Line  int      `json:"line"`
		Text  string   `json:"text"`
		Row   any      `json:"row"`
		Error string   `json:"error,omitempty"`
	}
	rows := []found{}
	if s.several && !s.asJSON {
		fmt.Fprintf(w, "%s:\n", quoted(query))
	}
	for _, m := range matches {
		if m.Err != nil {
			s.failed.add(cmd.ErrOrStderr(), fmt.Errorf("%s, line %d: %w", s.path, m.Line, m.Err))
		}
		switch {
		case s.asJSON:
			row := found{Score: &m.Score, Line: m.Line, Text: m.Text, Row: rowOf(names, m.Fields)}
			if m.Err != nil {
				row.Score, row.Error = nil, text.OneLine(errors.Unwrap(m.Err))
			}
			rows = append(rows, row)
		case m.Err == nil:
			fields := make([]string, len(m.Fields))
			for i, field := range m.Fields {
				fields[i] = text.EscapeExcept(field, "")
			}
			fmt.Fprintf(w, "%.4f\t%s\n", m.Score, strings.Join(fields, "\t"))
		}
	}
	if !s.asJSON {
		return nil
	}
	return printJSON(w, map[string]any{"query": query, "rows": rows})
}

// rowOf returns the fields of a row for JSON: an object if they have names, or if the row is one, and otherwise a list.
func rowOf(names, fields []string) any {
	var object map[string]any
	if names == nil && len(fields) == 1 && json.Unmarshal([]byte(fields[0]), &object) == nil {
		return json.RawMessage(fields[0])
	}
	if len(names) < len(fields) {
		return fields
	}
	object = map[string]any{}
	for i, field := range fields {
		object[names[i]] = field
	}
	return object
}
