package tokenizer

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/testseed"
)

var hostileFiles = flag.Int("hostile", 0, "`number` of files that TestDrawnFiles draws, 0 for none; -run 'TestDrawnFiles/file/^7$' repeats one")

// hostileDir is an environment variable for a child process of TestDrawnFiles: the folder with texts.json, and with the
// folder of the tokenizer to open. The process has one argument, the name of the file to open in that folder.
const hostileDir = "HEED_HOSTILE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(hostileDir); dir != "" {
		os.Stdout.Write(encoded(openHostile(dir, os.Args[1])))
		return
	}
	debug.SetGCPercent(400) // with a small heap, collecting garbage takes a fifth of the time
	os.Exit(m.Run())
}

// An outcome says what a process did with a file. Times are in seconds of processor time, and memory is in bytes.
type outcome struct {
	Refused        string // the error of opening the file, or ""
	Wrong          string // what went wrong, or ""
	Time, OpenTime float64
	TextTime       float64 // the time to encode the slowest text of a megabyte
	Memory, Open   float64
	recipe         string
	size           float64
}

// A repeated is a text that is made of the same unit many times.
type repeated struct {
	Unit  string
	Times int
}

// openHostile opens a tokenizer, and encodes and decodes texts.
func openHostile(dir, name string) (o outcome) {
	for resource, limit := range map[int]uint64{syscall.RLIMIT_AS: 3 << 30, syscall.RLIMIT_CPU: 20, syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	defer func() { o.Time, o.Memory = used() }()
	complain := func(err error) {
		if err != nil && len(err.Error()) > 1000 {
			o.Wrong = fmt.Sprintf("a message of %d bytes: %.300v", len(err.Error()), err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	var texts []repeated
	if err == nil {
		err = json.Unmarshal(content, &texts)
	}
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "tokenizer", name)
	var tok Tokenizer
	if name == "tokenizer.json" {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			tok, err = Read(f)
		}
	} else {
		tok, err = Open(path)
	}
	if o.OpenTime, o.Open = used(); err != nil {
		complain(err)
		o.Refused = fmt.Sprintf("%.100v", err)
		return o
	}
	for _, text := range texts {
		whole := strings.Repeat(text.Unit, text.Times)
		start, _ := used()
		tokens, err := tok.Tokenize(whole, Options{})
		if end, _ := used(); len(whole) >= 1_000_000 {
			o.TextTime = max(o.TextTime, end-start)
		}
		complain(err)
		if err == nil {
			if err := checkParts(tok, whole, tokens); err != nil {
				o.Wrong = err.Error()
			}
		}
		if p, ok := tok.(*Pipeline); ok && len(whole) < 1e5 {
			_, err := p.Input(whole, "a")
			complain(err)
		}
	}
	return o
}

// used returns the processor time of this process in seconds, and its peak memory.
func used() (seconds, memory float64) {
	var usage syscall.Rusage
	status, err := os.ReadFile("/proc/self/status") // not Rusage, which may have the memory of the parent
	if err == nil {
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, scanErr := fmt.Sscan(after, &memory); err != nil || scanErr != nil {
		panic(fmt.Sprint(err, scanErr))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds(), memory * 1024
}

// TestDrawnFiles draws hostile files. A process for each file opens it, and encodes and decodes texts. It must end in
// 10 seconds of processor time and 1 GB of memory. The test prints the worst files, and their shares of these goals:
// opening or refusing a file takes at most 1 s plus 2 s per 10 MB, and at most 64 MB plus 8 times its size. Encoding 1
// MB takes at most 2 s.
func TestDrawnFiles(t *testing.T) {
	if *hostileFiles == 0 {
		t.Skip("draws files only with -hostile")
	}
	bases, seed := hostileBases(t), testseed.Of(t)
	outcomes := make([]outcome, *hostileFiles)
	t.Run("file", func(t *testing.T) {
		for i := range outcomes {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				key := [32]byte(fmt.Appendf(nil, "%16x%16x", seed, i))
				outcomes[i] = openInChild(t, drawer{rand.New(rand.NewChaCha8(key))}, bases)
				if o := &outcomes[i]; o.Wrong == "" && (o.Time > 10 || o.Memory > 1<<30) {
					o.Wrong = fmt.Sprintf("it took %.1f s and %.0f MB", o.Time, o.Memory/1e6)
				}
				if o := outcomes[i]; o.Wrong != "" {
					t.Errorf("%s, %.0f bytes: %s", o.recipe, o.size, o.Wrong)
				}
			})
		}
	})
	counts := map[string]int{}
	for _, o := range outcomes {
		switch {
		case o.Wrong != "":
			counts["wrong"]++
		case o.Refused != "":
			counts["refused"]++
		default:
			counts["opened"]++
		}
	}
	t.Logf("%d files: %v", len(outcomes), counts)
	for name, share := range map[string]func(o outcome) float64{
		"seconds":                              func(o outcome) float64 { return o.Time },
		"megabytes of memory":                  func(o outcome) float64 { return o.Memory / 1e6 },
		"share of the goal for time to open":   func(o outcome) float64 { return o.OpenTime / (1 + 2*o.size/10e6) },
		"share of the goal for memory to open": func(o outcome) float64 { return o.Open / (64e6 + 8*o.size) },
		"share of the goal for time to encode": func(o outcome) float64 { return o.TextTime / 2 },
	} {
		slices.SortFunc(outcomes, func(a, b outcome) int { return int(1e6 * (share(b) - share(a))) })
		var list strings.Builder
		for _, o := range outcomes[:min(10, len(outcomes))] {
			fmt.Fprintf(&list, "\n%10.2f  %9.0f bytes, %s %.60s", share(o), o.size, o.recipe, o.Refused)
		}
		t.Logf("%s, the worst ten:%s", name, list.String())
	}
}

// openInChild draws files, and opens them in another process.
func openInChild(t *testing.T, d drawer, bases []hostile) (o outcome) {
	h, mixed := drawHostile(d, bases), ""
	for len(mixed) < 1<<16 {
		mixed += strings.ToValidUTF8(string(rune(d.IntN(pick(d, 0x80, 0x600, 0x10000, 0x30000)))), "")
	}
	unit := pick(d, "aa", "é", " ", "あ", "a\u0301", "a ", "\u0301", "x", "<0x41>", "▁", "0", "!", "\U0001f600", "ab", h.text)
	dir := t.TempDir()
	size := 0
	write := func(name string, content []byte) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o666))
	}
	write("texts.json", encoded([]repeated{{"", 1}, {h.text, 1}, {mixed, 1}, {"a", 1e6}, {unit, 1e6/len(unit) + 1}}))
	must.Do(t, os.Mkdir(filepath.Join(dir, "tokenizer"), 0o777))
	for name, content := range h.files {
		write("tokenizer/"+name, content)
		size += len(content)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, os.Args[0], h.name)
	child.Env = append(os.Environ(), hostileDir+"="+dir)
	child.Stdout, child.Stderr = &stdout, &stderr
	err := child.Run()
	if err == nil {
		err = json.Unmarshal(stdout.Bytes(), &o)
	}
	if err != nil {
		o.Wrong = fmt.Sprintf("ended with %v: %.300s", err, stderr.String())
		o.Time = (child.ProcessState.UserTime() + child.ProcessState.SystemTime()).Seconds()
		o.Memory = float64(child.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	}
	o.recipe, o.size = fmt.Sprintf("%s (%s)", h.recipe, t.Name()), float64(size)
	return o
}
