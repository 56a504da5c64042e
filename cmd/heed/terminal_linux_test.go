package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/text"
)

// onTerminal makes a call in a process of its own. Its standard output and standard error are a terminal. onTerminal
// returns what the terminal gets.
func onTerminal(t *testing.T, env string, args ...string) string {
	t.Helper()
	return interruptedOnTerminal(t, "", env, args...)
}

// interruptedOnTerminal is like onTerminal, but sends SIGINT to the call when the terminal first gets the text cue. An
// empty cue sends nothing.
func interruptedOnTerminal(t *testing.T, cue, env string, args ...string) string {
	t.Helper()
	cmd := process(args...)
	cmd.Env = append(cmd.Env, env)
	return atTerminal(t, cmd, false, func(master *os.File, got string) {
		if cue != "" && strings.Contains(got, cue) {
			cmd.Process.Signal(os.Interrupt)
			cue = ""
		}
	})
}

// atTerminal runs a call whose standard output and standard error are a terminal. With typing, its standard input is
// the terminal, too. The function read gets all that the terminal has so far.
func atTerminal(t *testing.T, cmd *exec.Cmd, typing bool, read func(master *os.File, got string)) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("can't open a terminal: %v", err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	must.Do(t, err)
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("can't open a terminal: %v", err)
	}
	if cmd.Stdout, cmd.Stderr = slave, slave; typing {
		cmd.Stdin = slave
	}
	must.Do(t, cmd.Start())
	defer time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }).Stop() // it may wait for a line that never comes
	slave.Close()
	var got []byte
	for b := make([]byte, 1<<12); ; { // Read fails when no process has the terminal open any more
		n, err := master.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			break
		}
		read(master, string(got))
	}
	cmd.Wait()
	return strings.ReplaceAll(string(got), "\r\n", "\n") // a terminal gets \r\n for a new line
}

// When a model writes to a terminal, control characters are escaped. In other output they aren't.
func TestGenerateOnATerminal(t *testing.T) {
	t.Parallel()
	file := newFile(t, "escapes.txt", strings.Repeat("a\x1b[31mb\tc\x07\u009b\u202e d\u3000\n", 300))
	dir := newRun(t, "--task=text", "--max-len=16", "--data="+file, "--steps-per-epoch=60")
	args := []string{"generate", dir, "--prompt=a\x1b[", "--tokens=200", "--temperature=0.5"}
	plain := succeed(t, args...)
	if strings.Count(plain, "\x1b") < 2 {
		t.Fatalf("the model writes %q, want escape characters in it", plain)
	}
	got := onTerminal(t, "TERM=xterm", args...)
	if want := text.EscapeExcept(plain, "\n\t"); got != want || strings.ContainsAny(got, "\x1b\x07\u009b\u202e") {
		t.Errorf("a terminal gets\n%q, want\n%q", got, want)
	}
}

// When a file is written back to a terminal, control characters are escaped too. No character or line end is split.
func TestPredictOnATerminal(t *testing.T) {
	t.Parallel()
	dir := spelled(t)
	path := newFile(t, "escapes.csv", "word,x\r\n"+strings.Repeat("a,\x1b[31m\u009bäöü€\U0001F600\r\n", 2000))
	got := onTerminal(t, "TERM=xterm", "predict", dir, "--data="+path)
	want := text.EscapeExcept(strings.ReplaceAll(succeed(t, "predict", dir, "--data="+path), "\r\n", "\n"), "\n")
	if got != want || strings.Count(got, "äöü€\U0001F600") != 2000 || strings.Contains(got, "\x1b") {
		t.Errorf("a terminal gets\n%.300q, want\n%.300q", got, want)
	}
}

// A dumb terminal gets no progress line. No terminal gets colours. The line of the best epoch has a mark.
func TestTrainOnATerminal(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	colour := regexp.MustCompile("\x1b\\[[0-9;]*m")
	call := func(env, dir string) string {
		return onTerminal(t, env, small("--task=copy", "--steps-per-epoch=150", "--out="+filepath.Join(t.TempDir(), dir))...)
	}
	if got := call("TERM=dumb", "dumb"); strings.ContainsAny(got, "\r\x1b") || !strings.Contains(got, "Epoch 2: ") {
		t.Errorf("a dumb terminal gets %q, want only lines", got)
	}
	got := call("TERM=xterm", "capable")
	must.Have(t, got, "\x1b[2K", "Epoch 2: ")
	best := regexp.MustCompile(`(?m)^Best epoch (\d)`).FindStringSubmatch(strings.NewReplacer("\r", "", "\x1b[2K", "").Replace(got))
	if best == nil || !regexp.MustCompile("Epoch "+best[1]+": .*; best so far\n").MatchString(got) {
		t.Errorf("the terminal gets %q, want a mark at the best epoch", got)
	}
	if colour.MatchString(got) {
		t.Errorf("the terminal gets %q, want no colours", got)
	}
}

// After a signal, the terminal shows at once that heed is stopping.
func TestInterruptedOnATerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	got := interruptedOnTerminal(t, "Epoch 0: ", "TERM=xterm", "train", "--task=copy", "--patience=0", "--max-epochs=1000", "--out="+dir)
	// Lines of epochs may come between the two lines.
	lines := slices.DeleteFunc(screen(got), func(line string) bool { return !strings.HasPrefix(line, "heed: ") })
	if want := []string{"heed: interrupted: stopping", "heed: interrupted: heed train --resume " + shell(dir) + " continues the run"}; !slices.Equal(lines, want) {
		t.Errorf("the terminal gets %q, want the lines %q in it", got, want)
	}
}

// On a terminal, heed chat says what can be typed before it asks, and goes on after a question that the model can't
// answer.
func TestChatOnATerminal(t *testing.T) {
	t.Parallel()
	lines := []string{"/help", "/nope", "a", "a", "/reset", "a", "\x04"} // the last one is Ctrl-D
	cmd := process("chat", chatFolder(t), "--tokens=2")
	got := atTerminal(t, cmd, true, func(master *os.File, got string) {
		if strings.HasSuffix(got, "\n> ") && len(lines) > 0 {
			end := "\n"
			if len(lines) == 1 {
				end = ""
			}
			master.WriteString(lines[0] + end)
			lines = lines[1:]
		}
	})
	answer := strings.TrimSuffix(succeed(t, "generate", filepath.Clean(cmd.Args[2]), "--chat", "--prompt=a", "--tokens=2"), "\n")
	want := "Type a question, or /help; Ctrl-D ends the conversation.\n> /help\n" + chatCommands +
		"> /nope\nheed: there is no \"/nope\"; these lines aren't questions:\n" + chatCommands +
		"> a\n" + answer + "\n> a\nheed: the prompt has 44 tokens, and the model reads and writes at most 32 together (max_position_embeddings): give a shorter prompt, or ask for at most 0 tokens; /reset begins anew\n" +
		"> /reset\nThe conversation begins anew.\n> a\n" + answer + "\n> \n"
	if got != want || len(lines) > 0 {
		t.Errorf("the terminal gets\n%s\nwant\n%s", got, want)
	}
}
