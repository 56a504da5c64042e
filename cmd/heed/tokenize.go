package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/task"
)

func newTokenize() *cobra.Command {
	var ids, count bool
	cmd := &cobra.Command{
		Use:   "tokenize FOLDER|FILE [TEXT...]",
		Short: "Show the tokens of texts, or count them",
		Long: `Print the tokens of texts: one line per token, with its id and, in quotes, the part of the text that it
comes from. If several tokens share a character, each line shows it. Texts are separated by an empty
line. Without texts, heed tokenizes each line of standard input as soon as it arrives.

The tokenizer is in a run folder, in the folder of a published model, or in a file such as
tokenizer.json. If a run folder has two tokenizers, heed takes the one for inputs; the one for answers
is the file target.json. No special tokens are added, and their names in a text are ordinary text.

With --count, the arguments after the tokenizer are files, and heed prints the number of tokens of each
file, or of standard input.`,
		Example: `  heed tokenize runs/reverse gorgonia
  heed tokenize --ids models/gpt2 < lines.txt
  heed tokenize --count models/gpt2/tokenizer.json book.txt`,
		Args: takes("a folder or file with a tokenizer, then texts or none to read standard input", cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			show := showTokens
			if ids {
				show = showIDs
			}
			return tokenize(cmd, args[0], args[1:], count, show)
		},
	}
	cmd.Flags().BoolVar(&ids, "ids", false, "print only the ids: one line per text, with spaces between them")
	cmd.Flags().BoolVar(&count, "count", false, "print only the number of tokens in each file, or in standard input")
	cmd.MarkFlagsMutuallyExclusive("ids", "count")
	return cmd
}

// tokenize shows the tokens of texts, or of the lines of standard input. If count is true, texts are names of files,
// and tokenize counts their tokens.
func tokenize(cmd *cobra.Command, path string, texts []string, count bool, show func(io.Writer, tokenizer.Tokenizer, string, int) error) error {
	inputs := tokenizerFiles(path)
	if count {
		inputs = append(inputs, texts...)
	}
	if err := checkStdout(cmd.OutOrStdout(), inputs); err != nil {
		return err
	}
	t, err := openTokenizer(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(cmd.OutOrStdout())
	defer out.Flush()
	if count {
		return countTokens(cmd, out, t, texts)
	}
	if len(texts) == 0 {
		return inputLines(cmd, typeLines, func(first int, lines []string) error {
			for i, line := range lines {
				if err := show(out, t, line, first+i); err != nil {
					return fmt.Errorf("standard input, line %d: %w", first+i, err)
				}
			}
			return out.Flush()
		})
	}
	for i, text := range texts {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if err := show(out, t, text, i+1); err != nil {
			return usagef("text %d: %w", i+1, err)
		}
	}
	return out.Flush()
}

// tokenizerFiles returns the paths of the files that openTokenizer may read.
func tokenizerFiles(path string) []string {
	folder, files := path, tokenizer.Files()
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		folder, files = filepath.Dir(path), append(files, filepath.Base(path))
	} else if isRun(path) {
		return runFiles(path)
	}
	for i, name := range files {
		files[i] = filepath.Join(folder, name)
	}
	return files
}

// openTokenizer opens the tokenizer of a run folder, of a published folder, or of a file.
func openTokenizer(path string) (tokenizer.Tokenizer, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() || !isRun(path) {
		t, err := readTokenizer(path)
		if errors.Is(err, fs.ErrNotExist) { // perhaps the folder has its model in another one
			if c, failed := task.ReadConfig(path); failed == nil {
				return c.Task.Source, nil
			}
		}
		return t, err
	}
	c, err := task.ReadConfig(path)
	if err != nil {
		return nil, err
	}
	coder, err := data.NewCoder(c.Task)
	if err != nil {
		return nil, err
	}
	source, _ := coder.Tokenizers()
	return source, nil
}

// readTokenizer opens the tokenizer of a published model, or reads a tokenizer.json of heed's own.
func readTokenizer(path string) (tokenizer.Tokenizer, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Ext(path) != ".json" || filepath.Base(path) == "vocab.json" {
		return tokenizer.Open(path)
	}
	content, err := readWhole(path, 64<<20)
	var t tokenizer.Tokenizer
	if err == nil {
		t, err = tokenizer.Read(bytes.NewReader(content))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// showTokens prints a line per token of a text. The argument number counts texts from 1.
func showTokens(out io.Writer, t tokenizer.Tokenizer, text string, number int) error {
	tokens, err := t.Tokenize(text, tokenizer.Options{})
	if err != nil {
		return err
	}
	if number > 1 {
		fmt.Fprintln(out)
	}
	for _, token := range tokens {
		fmt.Fprintf(out, "%d\t%s\n", token.ID, strconv.Quote(text[token.Start:token.End]))
	}
	return nil
}

// showIDs prints the ids of a text in one line.
func showIDs(out io.Writer, t tokenizer.Tokenizer, text string, _ int) error {
	ids, err := t.Encode(text)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.Trim(fmt.Sprint(ids), "[]"))
	return err
}

// countTokens prints the number of tokens of each file or, if there are no files, of standard input. It encodes a file
// as one text.
func countTokens(cmd *cobra.Command, out io.Writer, t tokenizer.Tokenizer, files []string) error {
	const perByte = 100 // bytes of memory per byte of text, if every byte is a token
	limit := int64(memory.Limit() / perByte)
	show := func(from, suffix string, content []byte, err error) error {
		var tokens []tokenizer.Token
		if err == nil {
			tokens, err = t.Tokenize(string(content), tokenizer.Options{})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		_, err = fmt.Fprintf(out, "%d%s\n", len(tokens), suffix)
		return err
	}
	if len(files) == 0 {
		input, err := stdin(cmd)
		if err != nil {
			return err
		}
		content, err := readAll(input, limit)
		return show("standard input", "", content, err)
	}
	for _, name := range files {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		content, err := readWhole(name, limit)
		if err := show(text.Escape(name), "\t"+text.EscapeExcept(name, ""), content, err); err != nil {
			return err
		}
	}
	return nil
}

// readWhole reads a regular file of up to limit bytes. Its errors don't name the file.
func readWhole(path string, limit int64) ([]byte, error) {
	f, _, err := runfolder.At(filepath.Dir(path)).Open(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

// readAll reads up to limit bytes. It is an error if there are more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it has more than %s, the most that fits in memory with its tokens: split it", text.Bytes(int(limit)))
	}
	return content, err
}
