package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
)

// longWait is how long a command may print nothing before it shows what it is doing.
const longWait = 2 * time.Second

// waiting shows the last line of a terminal while a command prints nothing for long: what it is doing, how many texts
// the model has read, and how long the command has taken. A nil waiting shows nothing.
type waiting struct {
	w     io.Writer // the terminal
	began time.Time

	mu    sync.Mutex
	what  string
	texts string    // how many texts the model has read
	since time.Time // when the terminal last changed
	shown int       // width of the line; 0: there is no line
	held  bool      // the line stays until the command prints something
}

// wait lets cmd show what it is doing, until it calls end. If it shows something already, wait changes nothing. Without
// a capable terminal, wait returns nil.
func wait(cmd *cobra.Command, what string) (l *waiting, end func()) {
	stdout, isOutput := cmd.OutOrStdout().(*output)
	stderr := cmd.ErrOrStderr()
	if terminal(stderr) == nil || os.Getenv("TERM") == "dumb" || !isOutput {
		return nil, func() {}
	}
	if stdout.line != nil {
		return stdout.line, func() {}
	}
	now := time.Now()
	l = &waiting{w: stderr, what: what, began: now, since: now}
	stdout.line = l
	cmd.SetErr(&output{Writer: stderr, line: l})
	tick, stop := time.NewTicker(longWait/4), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				l.draw()
			case <-stop:
				return
			}
		}
	}()
	return l, func() {
		tick.Stop()
		close(stop)
		l.show("")
		stdout.line = nil
		cmd.SetErr(stderr)
	}
}

// waitIf is like wait if shown is true. Otherwise it shows nothing.
func waitIf(shown bool, cmd *cobra.Command, what string) (l *waiting, end func()) {
	if !shown {
		return nil, func() {}
	}
	return wait(cmd, what)
}

// draw draws the line if nothing else has changed the terminal for long.
func (l *waiting) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held || time.Since(l.since) < longWait {
		return
	}
	line := fmt.Sprintf("%s: %s%s so far", l.what, l.texts, text.Seconds(time.Since(l.began).Seconds()))
	l.put(text.Shorten(line, max(0, widthOf(l.w)-4), 0))
}

// put replaces the line. The mutex must be locked.
func (l *waiting) put(line string) {
	switch {
	case l.shown == 0:
	case runtime.GOOS == "windows": // its terminals may not support escape sequences
		fmt.Fprintf(l.w, "\r%*s\r", l.shown, "")
	default:
		io.WriteString(l.w, "\r\x1b[2K")
	}
	io.WriteString(l.w, line)
	l.shown = utf8.RuneCountInString(line)
}

// show shows another line, at once and until the command prints something.
func (l *waiting) show(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(line)
	l.held = true
}

// clear erases the line, because the command prints something.
func (l *waiting) clear() {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.put("")
		l.held, l.since = false, time.Now()
	}
}

// does says what the command is doing from now on.
func (l *waiting) does(what string) {
	if l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.what, l.texts = what, ""
	}
}

// counts returns a function that counts the texts that the model has read, for the Progress of a task.Model. If the
// texts are in a file, the model reads them in several parts, whose number isn't known.
func (l *waiting) counts(file bool) func(done, total int) {
	if l == nil {
		return nil
	}
	before := 0
	return func(done, total int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case file:
			l.texts = text.Count(before+done, "text") + ", "
			if done == total {
				before += total
			}
		case done < total:
			l.texts = fmt.Sprintf("%d of %s, ", done, text.Count(total, "text"))
		default: // the command goes on with something else
			l.texts = ""
		}
	}
}

// output writes to standard output, or to standard error, and keeps the first error.
type output struct {
	io.Writer
	err  error
	line *waiting // the line to erase before printing
}

func (o *output) Write(b []byte) (int, error) {
	o.line.clear()
	n, err := o.Writer.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
