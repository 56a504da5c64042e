package main

import (
	"bytes"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/train"
)

// screen returns the lines on a terminal, without trailing blanks. The argument written is the whole output so far.
func screen(written string) []string {
	var lines []string
	var line []rune
	column := 0
	for i, r := range []rune(strings.NewReplacer("\x1b[2K", "\x01", "\x1b[0K", "\x02").Replace(written)) {
		switch r {
		case '\n':
			lines = append(lines, strings.TrimRight(string(line), " "))
			line, column = nil, 0
		case '\r':
			column = 0
		case 1: // erase the line
			line = []rune(strings.Repeat(" ", column))
		case 2: // erase to its end
			line = line[:min(column, len(line))]
		case 0x1b:
			panic(fmt.Sprintf("unknown escape sequence at %d of %q", i, written))
		default:
			if column == len(line) {
				line = append(line, ' ')
			}
			line[column] = r
			column++
		}
	}
	return append(lines, strings.TrimRight(string(line), " "))
}

// The screen shows the lines of all epochs, with the progress line below. After clear, the progress line is gone.
func TestProgress(t *testing.T) {
	var terminal bytes.Buffer
	line := &waiting{w: &terminal}
	p := newProgress(line, 4, train.Config{MaxEpochs: 7}, train.RunOptions{})
	out := p.over(&output{Writer: &terminal, line: line}, false)
	var want []string
	shows := regexp.MustCompile(`^Epoch \d, 7 in all  .*\d/4.*  loss 1`)
	for epoch := range 6 {
		for step := range 4 {
			p.drawn = time.Time{} // long ago
			p.step(epoch, step, 1)
			got := screen(terminal.String())
			if last := len(got) - 1; !shows.MatchString(got[last]) || strings.Join(got[:last], "\n") != strings.Join(want, "\n") {
				t.Fatalf("the screen shows\n%s\nwant\n%s\nand the progress line", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		line := fmt.Sprintf("Epoch %d: Train=1.000, Val=1.000", epoch)
		fmt.Fprintln(out, line)
		want = append(want, line)
	}
	p.drawn = time.Time{}
	p.step(6, 1, 1)
	line.clear() // like after an interruption
	if got := screen(terminal.String()); strings.Join(got, "\n") != strings.Join(want, "\n")+"\n" {
		t.Errorf("the screen shows\n%s\nwant no progress line", strings.Join(got, "\n"))
	}
}

func TestShowsUnicode(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"LANG": "en_GB.UTF-8"}, true},
		{map[string]string{"LANG": "C.utf8"}, true},
		{map[string]string{"LANG": "en_GB.UTF-8", "LC_CTYPE": "C"}, false},
		{map[string]string{"LANG": "en_GB.UTF-8", "LC_CTYPE": "POSIX", "LC_ALL": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.ISO-8859-1"}, false},
		{nil, runtime.GOOS == "windows"},
	} {
		if got := showsUnicode(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("showsUnicode of %v is %v, want %v", c.env, got, c.want)
		}
	}
}

// For people, the line of the best check has a mark. For programs, it has none.
func TestBestSoFar(t *testing.T) {
	const line = "Epoch 1: Train=0.457, Val=0.300"
	for _, c := range []struct {
		name   string
		config train.Config
		people bool
		best   int
		line   string
		want   string
	}{
		{"the best", train.Config{}, true, 1, line, line + "; best so far\n"},
		{"another", train.Config{}, true, 0, line, line + "\n"},
		{"of a pipe", train.Config{}, false, 1, line, line + "\n"},
		{"of steps", train.Config{CheckEvery: 2}, true, 1, "Step 8: Train=0.457", "Step 8: Train=0.457; best so far\n"},
		{"other lines", train.Config{}, true, 1, "Early stopping at epoch 1", "Early stopping at epoch 1\n"},
	} {
		var got strings.Builder
		p := newProgress(nil, 4, c.config, train.RunOptions{})
		out := p.over(&got, c.people)
		p.checked([]train.Check{{Epoch: 0, Step: 4}, {Epoch: 1, Step: 8}}, c.best)
		fmt.Fprintln(out, c.line)
		if got.String() != c.want {
			t.Errorf("%s: the line is %q, want %q", c.name, got.String(), c.want)
		}
	}
}
