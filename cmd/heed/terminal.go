package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/internal/textfile"
)

// terminal returns the terminal that w writes to, or nil.
func terminal(w io.Writer) *os.File {
	if f := fileOf(w); f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// fileOf returns the file that w writes to, or nil.
func fileOf(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, _ := w.(*os.File)
	return f
}

// widthOf returns the number of columns of w's terminal, or 80 if there is none.
func widthOf(w io.Writer) int {
	if f := terminal(w); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// visible returns w or, if w writes to a terminal, a writer that first escapes characters that can't be printed.
func visible(w io.Writer) io.Writer {
	if terminal(w) == nil {
		return w
	}
	var part []byte // start of a character or of a line end; the next write has the rest
	return writerFunc(func(b []byte) (int, error) {
		part = append(part, b...)
		n := len(part)
		for i := max(0, n-utf8.UTFMax); i < n; i++ {
			if utf8.RuneStart(part[i]) && !utf8.FullRune(part[i:]) {
				n = i
			}
		}
		if n > 0 && part[n-1] == '\r' {
			n--
		}
		_, err := io.WriteString(w, text.EscapeExcept(strings.ReplaceAll(string(part[:n]), "\r\n", "\n"), "\n\t"))
		if part = part[n:]; err != nil {
			return 0, err
		}
		return len(b), nil
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// oneLine returns an error's text as one printable line. It cuts out the middle of a very long text, which may quote a
// user's argument. It adds the flag to the advice about encodings.
func oneLine(err error) string {
	line := strings.ReplaceAll(err.Error(), textfile.Advice, strings.Replace(textfile.Advice, "its encoding", "its --encoding", 1))
	return text.Shorten(text.Escape(strings.Join(strings.Fields(line), " ")), 800, 300)
}

// printJSON prints a value as a line of JSON.
func printJSON(w io.Writer, value any) error {
	line, err := text.JSON(value)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// failures is the number of inputs that a command failed on. The method add prints the first few errors.
type failures int

func (n *failures) add(w io.Writer, err error) {
	if *n++; *n <= 5 {
		fmt.Fprintln(w, "heed:", oneLine(err))
	}
}
