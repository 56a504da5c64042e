package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/npy"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// An embedding is one call of heed embed.
type embedding struct {
	textFile
	out string // value of --out
}

func newEmbed() *cobra.Command {
	var e embedding
	cmd := &cobra.Command{
		Use:   "embed DIR [TEXT...]",
		Short: "Make vectors of texts",
		Long: `Print a vector of each text, as a JSON array in a line of its own. Texts with similar meanings have vectors
with a cosine near 1. Without texts, heed reads one text per line from standard input. With --data, the
texts are a column of a TSV, CSV or JSONL file.

DIR is a run folder of the task embed or mlm, or the folder of a published model that reads whole texts,
such as a BERT or a sentence-transformers model. In such a folder, modules.json and its companions say how
the vectors are made: the pooling, whether they are normalised, how many tokens of a text count, and the
default prompt. Without them, a vector is the mean of the states of all tokens.

With --out, heed writes all vectors to a file: .npy for NumPy (float32, one row per text), .csv with one
number per column, or .jsonl with the keys text and embedding.`,
		Example: `  heed embed models/minilm 'A first text' 'A second one'
  heed embed models/minilm --data mails.csv --column body --out mails.npy`,
		Args:    takes("a model folder, then texts or none to read standard input", cobra.MinimumNArgs(1)),
		PreRunE: func(cmd *cobra.Command, args []string) error { return e.check(cmd.Flags(), args[0], args[1:]) },
		RunE:    func(cmd *cobra.Command, args []string) error { return e.run(cmd, args[0], args[1:]) },
	}
	f := cmd.Flags()
	baseFlag(f)
	e.flags(f)
	f.StringVar(&e.out, "out", "", "file to write, .npy, .csv or .jsonl (default: print the vectors)")
	f.String("prompt-name", "", "prompt of the model to put before each text, such as query, or an empty name for none (default: as the model's folder says)")
	return cmd
}

// A textFile is a file with texts in a column, as flags describe it.
type textFile struct {
	path, column string // values of --data and --column
	as           data.Settings
}

// flags declares --data, and the flags that say how to read the file.
func (t *textFile) flags(f *pflag.FlagSet) {
	f.StringVar(&t.path, "data", "", "TSV, CSV or JSONL file with the texts")
	f.StringVar(&t.column, "column", "", "with --data: column of the texts, by name, by number from 1, or by key for JSONL (default: text, or the first column)")
	f.StringVar(&t.as.Header, "header", "", "with --data: yes if the first row is a header, or no if it is a row like the others (default: a header if it names the column)")
	f.StringVar(&t.as.Quotes, "quotes", "", "with --data: "+quotes)
	f.StringVar(&t.as.Encoding, "encoding", "", "with --data: "+encodings)
}

// settings says how to read the file.
func (t *textFile) settings() data.Settings {
	if t.column != "" {
		t.as.Columns = []string{t.column}
	}
	return t.as
}

func (e *embedding) check(flags *pflag.FlagSet, dir string, texts []string) error {
	if c, err := readConfig(flags, dir); err == nil && c.Describe().Embed != nil {
		return usagef("%s: %w", dir, c.Describe().Embed)
	}
	return cmp.Or(needData(flags, "column", "header", "quotes", "encoding"), knownEncoding(e.as.Encoding),
		argsOrData(flags, "texts", texts), fileFlag(flags, "out", ".npy", ".csv", ".jsonl"))
}

// run prints the vectors of the texts, of the file or of standard input, or writes them to --out.
func (e *embedding) run(cmd *cobra.Command, dir string, texts []string) error {
	stdout := cmd.OutOrStdout()
	out := &outFile{flag: "out", path: e.out, inputs: append(runFiles(dir, baseOf(cmd.Flags())), e.path)}
	if err := out.open(stdout); err != nil {
		return err
	}
	defer out.Close()
	line, end := waitIf(len(texts) > 0 || e.path != "", cmd, "Embedding") // not while somebody types the texts
	defer end()
	m, err := openModel(cmd, dir)
	if err != nil {
		return err
	}
	m.Progress, m.Note = line.counts(e.path != ""), noting(cmd)
	m.Config.Data = e.settings()
	embed := func(w io.Writer) error {
		v := &vectors{out: bufio.NewWriter(w), form: strings.ToLower(filepath.Ext(e.out))}
		if err := e.embed(cmd, m, texts, v); err != nil {
			return err
		}
		return v.end()
	}
	if e.out != "" {
		return out.write(cmd.Context(), embed)
	}
	return embed(stdout)
}

// embed writes the vectors of the texts, of the file or of standard input.
func (e *embedding) embed(cmd *cobra.Command, m *model.Model, texts []string, v *vectors) error {
	write := func(texts []string) error {
		vectors, _, err := m.Embed(cmd.Context(), texts)
		if err != nil {
			return wrongInput(err)
		}
		return v.write(texts, vectors)
	}
	switch {
	case e.path != "":
		return wrongFlag(task.EmbedFile(cmd.Context(), m, e.path, v.write), cmd.Flags())
	case len(texts) > 0:
		return write(texts)
	}
	return inputLines(cmd, typeLines, func(_ int, lines []string) error { return write(lines) })
}

// vectors writes vectors in one of several forms.
type vectors struct {
	out   *bufio.Writer
	form  string    // .npy, .csv, .jsonl, or empty for a JSON array per line
	held  []float32 // for .npy, whose header has their number
	count int
}

// write writes the vectors of texts. It flushes them unless the form is .npy.
func (v *vectors) write(texts []string, vectors [][]float32) error {
	v.count += len(vectors)
	for i, vector := range vectors {
		if v.form == ".npy" {
			v.held = append(v.held, vector...)
			continue
		}
		var line []byte
		for _, x := range vector {
			line = append(strconv.AppendFloat(line, float64(x), 'g', -1, 32), ',')
		}
		line = line[:max(0, len(line)-1)]
		switch v.form {
		case "":
			line = slices.Concat([]byte("["), line, []byte("]"))
		case ".jsonl":
			name, err := text.JSON(texts[i])
			if err != nil {
				return err
			}
			line = fmt.Appendf(nil, `{"text":%s,"embedding":[%s]}`, name, line)
		}
		v.out.Write(append(line, '\n'))
	}
	return v.out.Flush()
}

// end writes what write has held back: with .npy, all.
func (v *vectors) end() error {
	if v.form == ".npy" {
		v.out.WriteString(npy.Header(v.count, len(v.held)/max(1, v.count), ""))
		binary.Write(v.out, binary.LittleEndian, v.held) // a bufio.Writer keeps the first error
	}
	return v.out.Flush()
}
