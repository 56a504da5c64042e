package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// A ranking is one call of heed rank.
type ranking struct {
	textFile
	top    int
	asJSON bool
}

func newRank() *cobra.Command {
	var r ranking
	cmd := &cobra.Command{
		Use:   "rank DIR QUERY [TEXT...]",
		Short: "Sort texts by how well they answer a query",
		Long: `Print the texts that answer a query best, best first: the score and the text, with a tab between. Without
texts, heed reads one text per line from standard input. With --data, the texts are a column of a TSV, CSV
or JSONL file.

DIR is the folder of a published model that scores two texts, such as a CrossEncoder of
sentence-transformers, or of a run that learned pairs: heed train --task regression --columns
query,document,label. A score is what the model's folder says: any number, or a number from 0 to 1.

With --json, a line is an object with index, score and document; the first document has the index 0. The
object has cut if the model read only a part of the query or the document, and error if it can't read them.`,
		Example: `  heed rank models/reranker 'late parcel' 'Where is my order?' 'Thank you!'
  heed rank models/reranker 'late parcel' --data mails.csv --column body --top 10`,
		Args:    takes("a model folder and a query, then texts or none to read standard input", cobra.MinimumNArgs(2)),
		PreRunE: func(cmd *cobra.Command, args []string) error { return r.check(cmd.Flags(), args[0], args[2:]) },
		RunE:    func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0], args[1], args[2:]) },
	}
	f := cmd.Flags()
	baseFlag(f)
	weightsFlag(f)
	r.flags(f)
	f.IntVar(&r.top, "top", 0, "number of texts to print (0: all)")
	f.BoolVar(&r.asJSON, "json", false, "print a JSON object per text")
	return cmd
}

func (r *ranking) check(flags *pflag.FlagSet, dir string, texts []string) error {
	if c, err := readConfig(flags, dir); err == nil && c.Describe().Rank != nil {
		return usagef("%s: %w", dir, c.Describe().Rank)
	}
	return cmp.Or(needData(flags, "column", "header", "quotes", "encoding"), knownEncoding(r.as.Encoding), argsOrData(flags, "texts", texts))
}

// run ranks the texts of the call, the texts of the file or the lines of standard input.
func (r *ranking) run(cmd *cobra.Command, dir, query string, texts []string) error {
	if err := checkStdout(cmd.OutOrStdout(), []string{r.path}); err != nil {
		return err
	}
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	m.Config.Data, m.Note = r.settings(), noting(cmd)
	switch {
	case r.path != "":
		texts, err = task.ReadTexts(m, r.path)
	case len(texts) == 0:
		err = inputLines(cmd, typeLines, func(_ int, lines []string) error {
			texts = append(texts, lines...)
			return nil
		})
	}
	if err != nil {
		return wrongFlag(err, cmd.Flags())
	}
	line, end := wait(cmd, "Ranking")
	m.Progress = line.counts(false)
	ranked, _, err := m.Rank(cmd.Context(), query, texts, r.top)
	end()
	if err != nil {
		return wrongFlag(err, nil)
	}
	return r.print(cmd, m, texts, ranked)
}

// print prints a line per text, and returns an error if some have no score.
func (r *ranking) print(cmd *cobra.Command, m *model.Model, texts []string, ranked []model.Ranked) error {
	out, cut, failed := bufio.NewWriter(cmd.OutOrStdout()), 0, failures(0)
	for _, found := range ranked {
		line := map[string]any{"index": found.Index, "score": found.Score, "document": texts[found.Index]}
		if found.Cut {
			cut++
			line["cut"] = true
		}
		if found.Err != nil {
			failed.add(cmd.ErrOrStderr(), found.Err)
			delete(line, "score")
			line["error"] = text.OneLine(errors.Unwrap(found.Err))
		}
		if r.asJSON {
			if err := printJSON(out, line); err != nil {
				return err
			}
		} else if found.Err == nil {
			fmt.Fprintf(out, "%.6g\t%s\n", found.Score, text.EscapeExcept(texts[found.Index], ""))
		}
	}
	if cut > 0 {
		noteCut(cmd.ErrOrStderr(), m, fmt.Sprintf("the query and %d of %s are together", cut, text.Count(len(ranked), "text")))
	}
	err := out.Flush()
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("there is no score of %d of %s", failed, text.Count(len(texts), "text")))
	}
	return err
}
