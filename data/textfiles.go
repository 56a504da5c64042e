package data

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// TextFiles names the files of a text. Each file may be compressed with gzip. If a file doesn't end in a newline and
// another one follows, a newline is added between them.
type TextFiles struct {
	// Paths has files and folders in the order of the text. A folder stands for all regular files below it, in the
	// order of their names. Files and folders below it whose names begin with a dot are left out, and so are empty
	// files.
	Paths []string

	// Encoding is the encoding of the files that have no byte-order mark, by a name of the WHATWG Encoding Standard,
	// such as windows-1252. If it is empty, the encoding is UTF-8.
	Encoding string

	// Key is the key of the documents in JSONL files, whose names end in .jsonl or .ndjson. Each line is an object of
	// at most 4 MiB, and its document is followed by a newline. If Key is empty, it is text.
	Key string

	// With Whole, a tokenizer encodes the text at once, and not in parts. A published tokenizer may add a space to each
	// part, and may treat white space between parts in its own way.
	Whole bool
}

// name returns the name of the text for errors.
func (f TextFiles) name() string {
	switch len(f.Paths) {
	case 0:
		return ""
	case 1:
		return f.Paths[0]
	}
	return fmt.Sprintf("%s and %d more", f.Paths[0], len(f.Paths)-1)
}

// A textSource has the characters of a text in UTF-8.
type textSource struct {
	io.ReaderAt
	size   int64   // number of bytes
	starts []int64 // offsets of the documents: of lines of JSONL, and of other files; nil for one document
	close  func() error
}

// open returns a source of the text. A single file of plain UTF-8 that isn't JSONL and has no byte-order mark is its
// own source. Otherwise the source is a temporary file, which the function close removes.
func (f TextFiles) open() (textSource, error) {
	paths, err := f.list()
	if err != nil {
		return textSource{}, err
	}
	if len(paths) == 1 && !textfile.IsJSONL(paths[0]) {
		file, err := textfile.Open(paths[0], f.Encoding)
		if err != nil {
			return textSource{}, fileError(paths[0], err)
		}
		if file.Plain != nil && !file.Mark {
			return textSource{file.Plain, file.Size, nil, file.Close}, nil
		}
		file.Close()
	}
	return f.copy(paths)
}

// list returns the files of the text.
func (f TextFiles) list() (files []string, err error) {
	if len(f.Paths) == 0 {
		return nil, errors.New("a text needs at least one file")
	}
	for _, path := range f.Paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		before := len(files)
		err = fs.WalkDir(os.DirFS(path), ".", func(name string, d fs.DirEntry, err error) error {
			file := filepath.Join(path, filepath.FromSlash(name))
			switch {
			case err != nil:
				return fileError(file, err)
			case name != "." && strings.HasPrefix(d.Name(), "."):
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			info, err := os.Stat(file) // of the target, if it is a link
			if err != nil {
				return fileError(file, err)
			}
			if info.Mode().IsRegular() && info.Size() > 0 {
				files = append(files, file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, fmt.Errorf("text %q is a directory without files to read: give a text file, or a directory of text files", path)
		}
	}
	return files, nil
}

// copy copies the characters of files to a temporary file.
func (f TextFiles) copy(paths []string) (textSource, error) {
	file, err := os.CreateTemp("", "heed-text-")
	if err != nil {
		return textSource{}, copyError(err)
	}
	removed := os.Remove(file.Name()) == nil // an open file can't be removed on every system
	close := func() error {
		err := file.Close()
		if !removed {
			err = errors.Join(err, os.Remove(file.Name()))
		}
		return err
	}
	c := textCopy{out: bufio.NewWriterSize(file, 1<<16)}
	for _, path := range paths {
		if err := c.add(path, f); err != nil {
			close()
			return textSource{}, fileError(path, err)
		}
	}
	if err := c.out.Flush(); err != nil {
		close()
		return textSource{}, copyError(err)
	}
	return textSource{file, c.size, c.starts, close}, nil
}

func copyError(err error) error {
	return fmt.Errorf("the text can't be copied as UTF-8 to a temporary file: %w: make room, or set TMPDIR to a folder with room for the whole text", err)
}

// A textCopy copies the characters of files.
type textCopy struct {
	out    *bufio.Writer
	size   int64 // number of bytes
	last   rune
	starts []int64 // offsets of the documents
}

func (c *textCopy) put(r rune) error {
	n, err := c.out.WriteRune(r)
	if err != nil {
		return copyError(err)
	}
	c.size += int64(n)
	c.last = r
	return nil
}

// add adds a file.
func (c *textCopy) add(path string, f TextFiles) error {
	file, err := textfile.Open(path, f.Encoding)
	if err != nil {
		return err
	}
	defer file.Close()
	if c.size > 0 && c.last != '\n' {
		if err := c.put('\n'); err != nil {
			return err
		}
	}
	if textfile.IsJSONL(path) {
		return c.documents(file, f.Key)
	}
	c.starts = append(c.starts, c.size)
	offset := int64(0)
	if file.Mark {
		offset = int64(len(textfile.Mark))
	}
	for {
		r, n, err := file.ReadRune()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case r == utf8.RuneError && n == 1:
			return file.NotText(offset)
		case r == 0:
			return textfile.ErrNUL
		}
		if err := c.put(r); err != nil {
			return err
		}
		offset += int64(n)
	}
}

// maxLine is the maximum size of a line of JSONL in bytes.
const maxLine = 4 << 20

// documents adds the documents of a JSONL file.
func (c *textCopy) documents(file *textfile.File, key string) error {
	return jsonLines(file, func(line []byte) error {
		text, err := document(line, cmp.Or(key, "text"))
		if err != nil {
			return err
		}
		c.starts = append(c.starts, c.size)
		for _, r := range text + "\n" {
			if err := c.put(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// jsonLines calls each for the lines of a JSONL file that aren't empty. It returns the first error, with the number of
// the line.
func jsonLines(file *textfile.File, each func(line []byte) error) error {
	if err := file.CheckJSONL(); err != nil {
		return err
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := each(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d: it has more than %d MiB", number+1, maxLine>>20)
	} else if err != nil {
		return err
	}
	return nil
}

// document returns the text with this key in a line of JSONL.
func document(line []byte, key string) (string, error) {
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil { // checks the syntax and the depth of nesting
		return "", fmt.Errorf("it isn't a JSON object: %w", err)
	}
	if line = bytes.TrimLeft(line, " \t\r"); line[0] != '{' {
		return "", fmt.Errorf("it isn't a JSON object: %.50q", line)
	}
	var keys []string
	var found []byte
	err := jsonkeys.Members(line, func(name string, value []byte) error {
		if keys = append(keys, name); name != key {
			return nil
		}
		if found != nil {
			return fmt.Errorf("the key %q is in the line twice", key)
		}
		found = value
		return nil
	})
	slices.Sort(keys)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", fmt.Errorf("it has no key %q, but the keys %.50q: choose the key of the text%s", key, keys, text.DidYouMean(key, keys))
	case found[0] != '"':
		return "", fmt.Errorf("the value of key %q is not a string", key)
	case !utf8.Valid(found):
		return "", fmt.Errorf("the value of key %q has a byte that is no part of a character: %s", key, textfile.Advice)
	}
	text, err := jsonkeys.Text(found)
	if err != nil {
		return "", fmt.Errorf("the value of key %q %w", key, err)
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("the value of key %q has a NUL character, which isn't text", key)
	}
	return text, nil
}

// fileError returns err with the path of a text's file.
func fileError(path string, err error) error {
	return fmt.Errorf("text %q: %w", path, text.Reason(err))
}
