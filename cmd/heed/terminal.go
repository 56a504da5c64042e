package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/heed-go/heed/internal/text"
)

// terminal returns the terminal that is written to, or nil.
func terminal(w io.Writer) *os.File {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// widthOf returns how many columns a line may have: those of the terminal, or 80 where there is none.
func widthOf(w io.Writer) int {
	if f := terminal(w); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// visible returns w, or what makes a model's text printable first where it is written to a terminal.
func visible(w io.Writer) io.Writer {
	if terminal(w) == nil {
		return w
	}
	var part []byte // of a character, or of the end of a line, that goes on in the next write
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

// oneLine returns an error's text on one line, of which the middle is cut where it is very long: what is in it may be a
// user's argument.
func oneLine(err error) string {
	return text.Shorten(text.Escape(strings.Join(strings.Fields(err.Error()), " ")), 800, 300)
}
