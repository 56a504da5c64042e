package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/text"
)

// onTerminal makes a call in a process of its own that has a terminal for its output and its errors, and returns what
// the terminal gets.
func onTerminal(t *testing.T, env string, args ...string) string {
	t.Helper()
	return interruptedOnTerminal(t, "", env, args...)
}

// interruptedOnTerminal is onTerminal of a call that is sent SIGINT when the terminal first gets a text, unless that is
// empty.
func interruptedOnTerminal(t *testing.T, at, env string, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals to be had: %v", err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals to be had: %v", err)
	}
	cmd := process(args...)
	cmd.Env = append(cmd.Env, env)
	cmd.Stdout, cmd.Stderr = slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var got []byte
	for b := make([]byte, 1<<12); ; { // ends with an error when the terminal has no user any more
		n, err := master.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			break
		}
		if at != "" && strings.Contains(string(got), at) {
			cmd.Process.Signal(os.Interrupt)
			at = ""
		}
	}
	cmd.Wait()
	return strings.ReplaceAll(string(got), "\r\n", "\n") // as a terminal gets the end of a line
}

// What a terminal would obey is escaped where a model writes to it, and nowhere else.
func TestGenerateOnATerminal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "escapes.txt")
	write(t, file, strings.Repeat("a\x1b[31mb\tc\x07\u009b\u202e d\u3000\n", 300))
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, small("--task=text", "--max-len=16", "--data="+file, "--steps-per-epoch=60", "--out="+dir)...)
	args := []string{"generate", dir, "--prompt=a\x1b[", "--tokens=200", "--temperature=0.5"}
	plain := succeed(t, args...)
	if strings.Count(plain, "\x1b") < 2 {
		t.Fatalf("the model writes no escape: %q", plain)
	}
	got := onTerminal(t, "TERM=xterm", args...)
	if want := text.EscapeExcept(plain, "\n\t"); got != want || strings.ContainsAny(got, "\x1b\x07\u009b\u202e") {
		t.Errorf("a terminal gets\n%q, want\n%q", got, want)
	}
}

// So it is where a file is written back to a terminal, of which no character and no end of a line is torn.
func TestPredictOnATerminal(t *testing.T) {
	t.Parallel()
	dir := spelled(t)
	path := filepath.Join(t.TempDir(), "escapes.csv")
	write(t, path, "word,x\r\n"+strings.Repeat("a,\x1b[31m\u009bäöü€\U0001F600\r\n", 2000))
	got := onTerminal(t, "TERM=xterm", "predict", dir, "--data="+path)
	want := text.EscapeExcept(strings.ReplaceAll(succeed(t, "predict", dir, "--data="+path), "\r\n", "\n"), "\n")
	if got != want || strings.Count(got, "äöü€\U0001F600") != 2000 || strings.Contains(got, "\x1b") {
		t.Errorf("a terminal gets\n%.300q, want\n%.300q", got, want)
	}
}

// A dumb terminal gets no progress, and none gets colours. The best epoch has a mark.
func TestTrainOnATerminal(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	call := func(env, dir string) string {
		return onTerminal(t, env, small("--task=copy", "--steps-per-epoch=600", "--out="+filepath.Join(t.TempDir(), dir))...)
	}
	if got := call("TERM=dumb", "dumb"); strings.ContainsAny(got, "\r\x1b") || !strings.Contains(got, "Epoch 2: ") {
		t.Errorf("a dumb terminal gets %q", got)
	}
	got := call("TERM=xterm", "capable")
	if !strings.Contains(got, "\x1b[2K") || !strings.Contains(got, "Epoch 2: ") {
		t.Errorf("another terminal gets %q, want progress", got)
	}
	best := regexp.MustCompile(`(?m)^Best epoch (\d)`).FindStringSubmatch(strings.NewReplacer("\r", "", "\x1b[2K", "").Replace(got))
	if best == nil || !regexp.MustCompile("Epoch "+best[1]+": .*; best so far\n").MatchString(got) {
		t.Errorf("the terminal gets %q, want a mark at the best epoch", got)
	}
	if colour.MatchString(got) {
		t.Errorf("there are colours: %q", got)
	}
}

// A terminal is told at once that a signal has been heard.
func TestInterruptedOnATerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	got := interruptedOnTerminal(t, "Epoch 0: ", "TERM=xterm", "train", "--task=copy", "--patience=0", "--max-epochs=1000", "--out="+dir)
	// an epoch may end between the two
	said := slices.DeleteFunc(screen(got), func(line string) bool { return !strings.HasPrefix(line, "heed: ") })
	if want := []string{"heed: interrupted: ending what is under way", "heed: interrupted: heed train --resume " + shell(dir) + " goes on from there"}; !slices.Equal(said, want) {
		t.Errorf("the terminal gets %q, want %q of it", got, want)
	}
}
