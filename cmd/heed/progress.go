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

// progress is a line at the end of a terminal that shows how a training goes, if there is a terminal that it can be
// drawn on. It has no colours.
type progress struct {
	live    *report.Live
	bySteps bool      // checks are at steps, not at the ends of epochs
	w       io.Writer // nil for no line
	unicode bool      // the terminal shows it

	drawn time.Time // when the line was last drawn
	shown int       // its width
	mark  string    // how the line of a check begins that is the best one; empty where the next one isn't
}

func newProgress(w io.Writer, steps int, c train.Config, call train.Call) *progress {
	p := &progress{live: report.NewLive(steps, c, call), bySteps: c.CheckEvery > 0, unicode: showsUnicode(os.Getenv)}
	if terminal(w) != nil && os.Getenv("TERM") != "dumb" {
		p.w = w
	}
	return p
}

// showsUnicode reports whether the environment's locale says that terminals show UTF-8.
func showsUnicode(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(env(name)); locale != "" {
			return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
		}
	}
	return runtime.GOOS == "windows" // which has no such variables
}

// step is a train.Call's OnStep.
func (p *progress) step(epoch, step int, loss float64) (stop bool) {
	p.live.Step(epoch, step, loss)
	if p.w != nil && time.Since(p.drawn) >= 100*time.Millisecond {
		p.drawn = time.Now()
		line := p.live.Line(widthOf(p.w)-1, p.unicode)
		p.clear()
		io.WriteString(p.w, line)
		p.shown = utf8.RuneCountInString(line)
	}
	return false
}

// checked takes note of the checks so far, and which of them is the best, or -1 for none.
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

// clear takes the line from the screen.
func (p *progress) clear() {
	switch {
	case p.shown == 0:
	case runtime.GOOS == "windows": // whose terminals may know no escape sequences
		fmt.Fprintf(p.w, "\r%*s\r", p.shown, "")
	default:
		io.WriteString(p.w, "\r\x1b[2K")
	}
	p.shown = 0
}

// over returns w, where the progress makes room for every line and, for people, the best check so far has a mark. The
// lines are made printable.
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
