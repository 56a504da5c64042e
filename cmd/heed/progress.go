package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar for the steps of an epoch, on standard error and only if that is a terminal.
type progress struct {
	bar *progressbar.ProgressBar // nil for none
}

func newProgress(steps int) *progress {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("steps"),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(100e6), // nanoseconds
	)}
}

// step is train.Config's OnStep.
func (p *progress) step(_, step int, _ float64) {
	if p.bar != nil {
		p.bar.Set(step + 1)
	}
}

func (p *progress) clear() {
	if p.bar != nil {
		p.bar.Clear()
	}
}

// over is w, where the bar makes room for every line.
func (p *progress) over(w io.Writer) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		p.clear()
		if p.bar != nil {
			p.bar.Reset()
		}
		return w.Write(b)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
