package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// screen is what a terminal shows, its lines without trailing blanks, after what is written to it.
func screen(written string) []string {
	var lines []string
	var line []rune
	at := 0
	for i, r := range []rune(strings.NewReplacer("\x1b[2K", "\x01", "\x1b[0K", "\x02").Replace(written)) {
		switch r {
		case '\n':
			lines = append(lines, strings.TrimRight(string(line), " "))
			line, at = nil, 0
		case '\r':
			at = 0
		case 1: // erase the line
			line = []rune(strings.Repeat(" ", at))
		case 2: // erase to its end
			line = line[:min(at, len(line))]
		case 0x1b:
			panic(fmt.Sprintf("an escape sequence that this screen doesn't know, at %d of %q", i, written))
		default:
			if at == len(line) {
				line = append(line, ' ')
			}
			line[at] = r
			at++
		}
	}
	return append(lines, strings.TrimRight(string(line), " "))
}

// However long an epoch is, its line is alone on the screen and the bar below it, and in the end there is no bar.
func TestProgress(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the bar is overwritten there, not erased")
	}
	var terminal bytes.Buffer
	p := &progress{bar: newBar(&terminal, 4), epochs: 7}
	out := p.over(&terminal)
	var want []string
	for epoch := range 6 {
		for step := range 4 {
			if epoch == 1 || epoch == 4 {
				time.Sleep(60 * time.Millisecond) // long enough to draw within the epoch
			}
			p.step(epoch, step, 1)
		}
		line := fmt.Sprintf("Epoch %d: Train=1.000, Val=1.000", epoch)
		fmt.Fprintln(out, line)
		want = append(want, line)
		if got := screen(terminal.String()); strings.Join(got, "\n") != strings.Join(want, "\n")+"\n" {
			t.Fatalf("the screen shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if drawn := regexp.MustCompile(`Epoch 1, 7 in all .*\(\d/4, \d+ steps/s\) \[\d+s:\d+s\]`); !drawn.MatchString(terminal.String()) {
		t.Errorf("no bar was ever drawn with its epoch, its rate and the time that is left: %q", terminal.String())
	}
	time.Sleep(150 * time.Millisecond)
	p.step(6, 1, 1)
	p.clear() // as at an interruption
	if got := screen(terminal.String()); got[len(got)-1] != "" {
		t.Errorf("the last line is %q, want nothing", got[len(got)-1])
	}
}

func TestProgressOnlyToATerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if newProgress(f, 4, 0).bar != nil || newProgress(new(bytes.Buffer), 4, 0).bar != nil {
		t.Error("there is a bar, though there is no terminal")
	}
}
