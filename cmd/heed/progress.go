package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/schollz/progressbar/v3"

	"github.com/heed-go/heed/internal/printable"
)

// progress is a bar for the steps of an epoch, if there is a terminal that it can be drawn on: it has their rate, the
// time since the epoch began, and the time that is left of it. It has no colours.
type progress struct {
	bar    *progressbar.ProgressBar // nil for none
	epochs int                      // at most; 0 for no limit
	epoch  int                      // the one that the bar is of, from 1; 0 before the first
}

func newProgress(w io.Writer, steps, epochs int) *progress {
	if terminal(w) == nil || os.Getenv("TERM") == "dumb" {
		return &progress{}
	}
	return &progress{bar: newBar(w, steps), epochs: epochs}
}

func newBar(w io.Writer, steps int) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("steps"),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100e6), // nanoseconds
		progressbar.OptionClearOnFinish(), // Clear leaves a bar that is full
		progressbar.OptionUseANSICodes(runtime.GOOS != "windows"),
	)
}

// step is train.Config's OnStep.
func (p *progress) step(epoch, step int, _ float64) (stop bool) {
	if p.bar == nil {
		return false
	}
	if p.epoch != epoch+1 {
		p.epoch = epoch + 1
		of := ""
		if p.epochs > 0 {
			of = fmt.Sprintf(", %d in all", p.epochs)
		}
		p.bar.Describe(fmt.Sprintf("Epoch %d%s", epoch, of))
	}
	p.bar.Set(step + 1)
	return false
}

func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// over returns w, where the bar makes room for every line. The lines are made printable.
func (p *progress) over(w io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		p.clear()
		if p.bar != nil {
			p.bar.Reset()
		}
		if _, err := io.WriteString(w, printable.Text(string(b))); err != nil {
			return 0, err
		}
		return len(b), nil
	})
}
