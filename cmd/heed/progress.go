package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
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
	run     *report.Live
	plan    report.Plan
	to      io.Writer // nil for no line
	unicode bool      // the terminal shows it

	drawn time.Time // when the line was last drawn
	shown int       // its width
	mark  string    // how the line of a check begins that is the best one; empty where the next one isn't
}

func newProgress(w io.Writer, plan report.Plan) *progress {
	p := &progress{run: report.NewLive(plan), plan: plan, unicode: showsUnicode(os.Getenv)}
	if terminal(w) != nil && os.Getenv("TERM") != "dumb" {
		p.to = w
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

// step is train.Config's OnStep.
func (p *progress) step(epoch, step int, loss float64) (stop bool) {
	p.run.Step(epoch, step, loss)
	if p.to != nil && time.Since(p.drawn) >= 100*time.Millisecond {
		p.drawn = time.Now()
		line := p.line(p.run.Now(), p.run.Losses(16), widthOf(p.to)-1)
		p.clear()
		io.WriteString(p.to, line)
		p.shown = utf8.RuneCountInString(line)
	}
	return false
}

// checked is a task.Task's OnCheck.
func (p *progress) checked(history []train.Check, best int) {
	p.run.Checked(history, best)
	p.mark = ""
	if last := len(history) - 1; best == last {
		p.mark = fmt.Sprintf("Epoch %d: ", history[last].Epoch)
		if p.plan.CheckEvery > 0 {
			p.mark = fmt.Sprintf("Step %d: ", history[last].Step)
		}
	}
}

// line returns what there is to show, as much of it as there is room for.
func (p *progress) line(now report.Now, losses []float64, width int) string {
	epoch := fmt.Sprintf("Epoch %d", now.Epoch)
	if p.plan.Epochs > 0 {
		epoch += fmt.Sprintf(", %d in all", p.plan.Epochs)
	}
	done := 20 * now.Step / p.plan.Steps
	bar, spark := "["+strings.Repeat("#", done)+strings.Repeat("-", 20-done)+"]", ""
	if p.unicode {
		bar = strings.Repeat("█", done) + strings.Repeat("░", 20-done)
		spark = sparkline(losses)
	}
	var rate, left, all string
	if now.Rate > 0 {
		rate = fmt.Sprintf("%.3g steps/s", now.Rate)
		if now.Rate >= 100 {
			rate = fmt.Sprintf("%.0f steps/s", now.Rate)
		}
		left = "left: " + clock(now.EpochLeft)
	}
	if now.RunLeft >= 0 && p.plan.Epochs != 1 {
		all = "run: " + clock(now.RunLeft)
	}
	// The parts stand on the line in this order; the first to be there is the first of the indices.
	parts := []string{epoch, bar, fmt.Sprintf("%d/%d", now.Step, p.plan.Steps), rate, left, all, fmt.Sprintf("loss %.4g", now.Loss), spark}
	shown := make([]string, len(parts))
	for _, i := range []int{0, 2, 4, 5, 6, 3, 7, 1} {
		shown[i] = parts[i]
		if utf8.RuneCountInString(joined(shown)) > width {
			shown[i] = ""
			break
		}
	}
	return joined(shown)
}

// joined returns the parts that aren't empty, with spaces between.
func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "  ")
}

// clock returns a time as 1:02 or 1:02:03.
func clock(d time.Duration) string {
	s := int(d.Seconds() + 0.5)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// sparkline draws numbers as blocks, from the least to the greatest.
func sparkline(numbers []float64) string {
	if len(numbers) < 2 {
		return ""
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	var line strings.Builder
	for _, x := range numbers {
		level := 0
		if high > low {
			level = int(7*(x-low)/(high-low) + 0.5)
		}
		line.WriteRune('▁' + rune(level))
	}
	return line.String()
}

// clear takes the line from the screen.
func (p *progress) clear() {
	switch {
	case p.shown == 0:
	case runtime.GOOS == "windows": // whose terminals may know no escape sequences
		fmt.Fprintf(p.to, "\r%*s\r", p.shown, "")
	default:
		io.WriteString(p.to, "\r\x1b[2K")
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
