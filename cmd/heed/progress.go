package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/report"
)

// progress shows the state of a training as the last line of a terminal. The line has no colours.
type progress struct {
	live    *report.Live
	bySteps bool // whether checks are at steps, not at the ends of epochs
	unicode bool // whether the terminal shows Unicode
	line    *waiting

	drawn time.Time // when the line was last drawn
	mark  string    // start of the log's line about the latest check if that is the best, otherwise empty
}

func newProgress(line *waiting, steps int, c train.Config, options train.RunOptions) *progress {
	return &progress{live: report.NewLive(steps, c, options), bySteps: c.CheckEvery > 0, unicode: showsUnicode(os.Getenv), line: line}
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
	if p.line != nil && time.Since(p.drawn) >= 100*time.Millisecond {
		p.drawn = time.Now()
		p.line.show(p.live.Line(widthOf(p.line.w)-1, p.unicode))
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

// over returns a writer of lines to w, which escapes characters that can't be printed. If people is true, it adds "best
// so far" to the line of the best check.
func (p *progress) over(w io.Writer, people bool) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
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
