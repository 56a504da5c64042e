package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/report"
)

// progress shows the state of a training as the last line of a terminal. Without a capable terminal, it shows nothing.
// The line has no colours.
type progress struct {
	live    *report.Live
	bySteps bool      // whether checks are at steps, not at the ends of epochs
	w       io.Writer // the terminal; nil shows nothing
	unicode bool      // whether the terminal shows Unicode
	line    *waiting  // the line that appears while this one isn't shown

	drawn time.Time // when the line was last drawn
	shown int       // width of the line; 0: there is no line
	mark  string    // start of the log's line about the latest check if that is the best, otherwise empty
}

func newProgress(w io.Writer, steps int, c train.Config, options train.RunOptions) *progress {
	p := &progress{live: report.NewLive(steps, c, options), bySteps: c.CheckEvery > 0, unicode: showsUnicode(os.Getenv)}
	if terminal(w) != nil && os.Getenv("TERM") != "dumb" {
		p.w = w
	}
	return p
}

// showsUnicode reports whether the locale in the environment uses UTF-8.
func showsUnicode(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(env(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return runtime.GOOS == "windows" // Windows has no such variables
}

// step draws the line, up to ten times per second. It is the OnStep of a train.RunOptions.
func (p *progress) step(epoch, step int, loss float64) (stop bool) {
	p.live.Step(epoch, step, loss)
	if p.w != nil && time.Since(p.drawn) >= 100*time.Millisecond {
		p.drawn = time.Now()
		line := p.live.Line(widthOf(p.w)-1, p.unicode)
		p.clear()
		io.WriteString(p.w, line)
		p.shown = utf8.RuneCountInString(line)
		p.line.hold(true)
	}
	return false
}

// checked records the checks so far. The argument best is the index of the best check, or -1.
func (p *progress) checked(history []train.Check, best int) {
	last := len(history) - 1
	p.live.Check(history, best == last)
	p.mark = ""
	if best == last {
		p.mark = fmt.Sprintf("Epoch %d: ", history[last].Epoch)
		if p.bySteps {
			p.mark = fmt.Sprintf("Step %d: ", history[last].Step)
		}
	}
}

// clear erases the line.
func (p *progress) clear() {
	if p.shown > 0 {
		eraseLine(p.w, p.shown)
		p.line.hold(false)
	}
	p.shown = 0
}

// over returns a writer of lines to w. It erases the progress line before each of them and escapes characters that
// can't be printed. If people is true, it adds "best so far" to the line of the best check.
func (p *progress) over(w io.Writer, people bool) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		p.clear()
		text := text.Escape(string(b))
		if people && p.mark != "" && strings.HasPrefix(text, p.mark) {
			text, p.mark = strings.TrimSuffix(text, "\n")+"; best so far\n", ""
		}
		if _, err := io.WriteString(w, text); err != nil {
			return 0, err
		}
		return len(b), nil
	})
}
