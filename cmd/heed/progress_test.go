package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/report"
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

// However long an epoch is, its line is alone on the screen and the progress below it, and in the end there is none.
func TestProgress(t *testing.T) {
	var terminal bytes.Buffer
	p := newProgress(&terminal, report.Plan{Steps: 4, Epochs: 7})
	p.to = &terminal
	out := p.over(&terminal, false)
	var want []string
	shows := regexp.MustCompile(`^Epoch \d, 7 in all  .*\d/4.*  loss 1`)
	for epoch := range 6 {
		for step := range 4 {
			p.drawn = time.Time{} // long ago
			p.step(epoch, step, 1)
			got := screen(terminal.String())
			if last := len(got) - 1; !shows.MatchString(got[last]) || strings.Join(got[:last], "\n") != strings.Join(want, "\n") {
				t.Fatalf("the screen shows\n%s\nwant\n%s\nand the progress", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		line := fmt.Sprintf("Epoch %d: Train=1.000, Val=1.000", epoch)
		fmt.Fprintln(out, line)
		want = append(want, line)
	}
	p.drawn = time.Time{}
	p.step(6, 1, 1)
	p.clear() // as at an interruption
	if got := screen(terminal.String()); strings.Join(got, "\n") != strings.Join(want, "\n")+"\n" {
		t.Errorf("the screen shows\n%s\nwant no progress", strings.Join(got, "\n"))
	}
}

// What there is no room for isn't shown, and what is left is whole.
func TestProgressFits(t *testing.T) {
	p := newProgress(new(bytes.Buffer), report.Plan{Steps: 200, Epochs: 7})
	now := report.Now{Epoch: 2, Step: 150, Loss: 0.037042, Rate: 719.4, EpochLeft: 62 * time.Second, RunLeft: 3602 * time.Second}
	for _, c := range []struct {
		width   int
		unicode bool
		want    string
	}{
		{5, true, ""},
		{10, true, ""},
		{18, true, "Epoch 2, 7 in all"},
		{30, true, "Epoch 2, 7 in all  150/200"},
		{40, true, "Epoch 2, 7 in all  150/200  left: 1:02"},
		{60, false, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{60, true, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{130, true, "Epoch 2, 7 in all  ███████████████░░░░░  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704  █▆▄▁"},
		{130, false, "Epoch 2, 7 in all  [###############-----]  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704"},
	} {
		p.unicode = c.unicode
		if got := p.line(now, []float64{4, 3, 2, 0.4}, c.width); got != c.want {
			t.Errorf("in %d columns there is %q, want %q", c.width, got, c.want)
		}
	}
	p.plan.Epochs = 0
	now = report.Now{Epoch: 2, Step: 1, Loss: 2, EpochLeft: -1, RunLeft: -1}
	if got, want := p.line(now, []float64{2}, 80), "Epoch 2  [--------------------]  1/200  loss 2"; got != want {
		t.Errorf("where nothing is known of the time there is %q, want %q", got, want)
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
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}

func TestProgressOnlyToATerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, new(bytes.Buffer)} {
		p := newProgress(w, report.Plan{Steps: 4})
		p.step(0, 0, 1)
		if p.to != nil {
			t.Error("there is progress, though there is no terminal")
		}
	}
	if got := read(t, f.Name()); got != "" {
		t.Errorf("the file has %q, want nothing", got)
	}
}

// The best check has a mark for people, and what reads the lines has them plain.
func TestBestSoFar(t *testing.T) {
	const line = "Epoch 1: Train=0.457, Val=0.300"
	for _, c := range []struct {
		name   string
		plan   report.Plan
		people bool
		best   int
		line   string
		want   string
	}{
		{"the best", report.Plan{Steps: 4}, true, 1, line, line + "; best so far\n"},
		{"another", report.Plan{Steps: 4}, true, 0, line, line + "\n"},
		{"of a pipe", report.Plan{Steps: 4}, false, 1, line, line + "\n"},
		{"of steps", report.Plan{Steps: 4, CheckEvery: 2}, true, 1, "Step 8: Train=0.457", "Step 8: Train=0.457; best so far\n"},
		{"other lines", report.Plan{Steps: 4}, true, 1, "Early stopping at epoch 1", "Early stopping at epoch 1\n"},
	} {
		var got strings.Builder
		p := newProgress(&got, c.plan)
		out := p.over(&got, c.people)
		p.checked([]train.Check{{Epoch: 0, Step: 4}, {Epoch: 1, Step: 8}}, c.best)
		fmt.Fprintln(out, c.line)
		if got.String() != c.want {
			t.Errorf("%s: the line is %q, want %q", c.name, got.String(), c.want)
		}
	}
}
