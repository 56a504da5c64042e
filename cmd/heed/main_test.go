package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/internal/kernel"
	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/task"
)

// asCommand is an environment variable that makes the test binary run as the command heed.
const asCommand = "HEED_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testseed.KeepInMemory()
	var err error
	if shared, err = os.MkdirTemp("", "heed"); err != nil {
		panic(err)
	}
	// Heed train keeps this value: for tiny models, collecting garbage more often takes as long as training.
	os.Setenv("GOGC", "400")
	debug.SetGCPercent(400)
	code := m.Run()
	os.RemoveAll(shared)
	os.Exit(code)
}

// shared is a folder of files that several tests read and no test changes.
var shared string

// sharedFile writes a file in shared and returns its path.
func sharedFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(shared, name)
	must.Do(t, os.Rename(newFile(t, name, content), path)) // atomic, as parallel tests may write the same file
	return path
}

// sharedRuns maps flags to the functions that train the runs in shared.
var sharedRuns sync.Map

// ran returns the folder of a run with the flags of small and the given flags. It is trained once for all tests, which
// must not change it.
func ran(t *testing.T, flags ...string) string {
	t.Helper()
	type made struct {
		dir string
		called
	}
	train, _ := sharedRuns.LoadOrStore(fmt.Sprintf("%q", flags), sync.OnceValue(func() made {
		dir, err := os.MkdirTemp(shared, "")
		if err != nil {
			return made{"", called{1, "", err.Error()}}
		}
		dir = filepath.Join(dir, "run")
		return made{dir, heed(small(append(slices.Clone(flags), "--out="+dir)...)...)}
	}))
	run := train.(func() made)()
	if run.code != 0 || run.stderr != "" {
		t.Fatalf("heed train %q: status %d and standard error %q, want 0 and none", flags, run.code, run.stderr)
	}
	return run.dir
}

// copied returns a copy of ran's folder, which the test may change.
func copied(t *testing.T, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	must.Do(t, os.CopyFS(dir, os.DirFS(ran(t, flags...))))
	return dir
}

// called is the result of a call.
type called struct {
	code           int
	stdout, stderr string
}

// heed makes a call in this process.
func heed(args ...string) called { return heedContext(context.Background(), args...) }

func heedContext(ctx context.Context, args ...string) called {
	var stdout bytes.Buffer
	c := heedTo(ctx, &stdout, args...)
	c.stdout = stdout.String()
	return c
}

// heedTo makes a call that prints to stdout.
func heedTo(ctx context.Context, stdout io.Writer, args ...string) called {
	var stderr bytes.Buffer
	code := run(ctx, nil, args, stdout, &stderr)
	return called{code, "", stderr.String()}
}

// process returns a call in a process of its own, which isn't started yet. It collects garbage like the command heed.
func process(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "GOGC=")
	return cmd
}

// ended runs a process to its end. It returns the status and standard error.
func ended(cmd *exec.Cmd) called {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Run() // fails with a status
	return called{cmd.ProcessState.ExitCode(), "", stderr.String()}
}

// background makes a call that goes on. It returns the group in the first printed line that matches. The function end
// interrupts the call and returns its result.
func background(t *testing.T, line *regexp.Regexp, args ...string) (found string, end func() called) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	printed, stdout := io.Pipe()
	ended, read := make(chan called, 1), make(chan bool)
	go func() {
		c := heedTo(ctx, stdout, args...)
		stdout.Close()
		ended <- c
	}()
	var all strings.Builder
	lines := bufio.NewReader(io.TeeReader(printed, &all))
	for found == "" {
		text, err := lines.ReadString('\n')
		if parts := line.FindStringSubmatch(text); parts != nil {
			found = parts[1]
		} else if err != nil {
			t.Fatalf("heed %q ends with %+v, without a line like %s", args, <-ended, line)
		}
	}
	go func() {
		io.Copy(io.Discard, lines)
		close(read)
	}()
	return found, func() called {
		cancel(errInterrupted)
		c := <-ended
		<-read
		c.stdout = all.String()
		return c
	}
}

// succeed makes a call, checks that it succeeds, and returns its standard output.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	c := heed(args...)
	if c.code != 0 || c.stderr != "" {
		t.Fatalf("heed %q: status %d and standard error %q, want 0 and none", args, c.code, c.stderr)
	}
	return c.stdout
}

// fail checks the status of a call, and that its standard error is one line that contains all words and repeats
// twice.
func fail(t *testing.T, c called, code int, words ...string) {
	t.Helper()
	if c.code != code {
		t.Errorf("status %d, want %d; standard error %q", c.code, code, c.stderr)
	}
	if !strings.HasPrefix(c.stderr, "heed: ") || strings.Count(c.stderr, "\n") != 1 || !strings.HasSuffix(c.stderr, "\n") {
		t.Errorf("standard error is %q, want one line that begins with heed:", c.stderr)
	}
	if repeated := repetition(c.stderr); repeated != "" {
		t.Errorf("standard error is %q, which says %q twice", c.stderr, repeated)
	}
	must.Have(t, c.stderr, words...)
}

// repetition returns a part of an error that repeats an earlier part, or "". Parts are separated by colons. The part
// "open x" repeats any part that names x.
func repetition(message string) string {
	parts := strings.Split(message, ": ")
	for i, part := range parts {
		before := parts[:i]
		op, name, _ := strings.Cut(part, " ")
		repeats := slices.Contains([]string{"open", "read", "write", "stat", "lstat", "mkdir", "rename", "remove", "listen"}, op) &&
			strings.Contains(strings.Join(before, ": "), filepath.Base(name[strings.LastIndex(name, " ")+1:]))
		if repeats || slices.Contains(before, part) {
			return part
		}
	}
	return ""
}

// rejected is like fail, and checks that the call printed nothing on standard output.
func rejected(t *testing.T, c called, code int, words ...string) {
	t.Helper()
	fail(t, c, code, words...)
	if c.stdout != "" {
		t.Errorf("the call prints %q, want nothing", c.stdout)
	}
}

// prints makes a call, and checks that it succeeds and prints want.
func prints(t *testing.T, want string, args ...string) {
	t.Helper()
	if got := succeed(t, args...); got != want {
		t.Errorf("heed %q prints\n%q\nwant\n%q", args, got, want)
	}
}

// begins checks that a call's output begins with want.
func begins(t *testing.T, output, want string) {
	t.Helper()
	if !strings.HasPrefix(output, want) {
		t.Errorf("the output is\n%s\nwant it to begin with %q", output, want)
	}
}

// small returns the arguments of heed train for a very short run. The run has one worker, because tests run in
// parallel.
func small(more ...string) []string {
	return append([]string{"train", "--dim=16", "--heads=2", "--layers=1", "--batch-size=16", "--steps-per-epoch=10", "--max-epochs=3", "--validation=60", "--workers=1"}, more...)
}

// newRun trains in a new folder with the flags of small and the given flags. It returns the folder.
func newRun(t *testing.T, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	succeed(t, small(append(flags, "--out="+dir)...)...)
	return dir
}

// folder returns the contents of a folder's files by name.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		files[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return files
}

// unchanged checks that a folder has these files and no others.
func unchanged(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if now := folder(t, dir); !maps.Equal(now, files) {
		t.Errorf("%s has changed: it has %q, want %q with the same contents", dir, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(files)))
	}
}

// absent checks that there is no file or folder of this name.
func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		t.Errorf("there is %s, want none", path)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content := must.Get(os.ReadFile(path))(t)
	return string(content)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o666))
}

// lines returns n lines, made from their numbers.
func lines(n int, line func(i int) string) string {
	var s strings.Builder
	for i := range n {
		s.WriteString(line(i) + "\n")
	}
	return s.String()
}

// newFile returns the path of a new file in a folder of its own.
func newFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, content)
	return path
}

// sameRun checks that two run folders have the same bytes. It ignores times: the summary's seconds, the file of times
// and the report.
func sameRun(t *testing.T, got, want string) {
	t.Helper()
	g, w := folder(t, got), folder(t, want)
	for _, files := range []map[string]string{g, w} {
		var s map[string]any
		must.Do(t, json.Unmarshal([]byte(files[runfolder.SummaryFile]), &s))
		delete(s, "seconds")
		delete(files, runfolder.TimesFile)
		delete(files, runfolder.ReportFile)
		b, _ := json.Marshal(s)
		files[runfolder.SummaryFile] = string(b)
	}
	if maps.Equal(g, w) {
		return
	}
	for name := range w {
		if g[name] != w[name] {
			t.Errorf("%s differs: %d bytes beginning %.200q, want %d beginning %.200q", name, len(g[name]), g[name], len(w[name]), w[name])
		}
	}
	for name := range g {
		if _, ok := w[name]; !ok {
			t.Errorf("the folder has the file %s, want none", name)
		}
	}
}

func TestWrongCalls(t *testing.T) {
	t.Chdir(t.TempDir()) // in case a call trains
	for _, test := range []struct {
		args string // separated by spaces, or by semicolons if there are any
		want string
	}{
		{"nope", `there is no command "nope"`},
		{"help nope", `there is no command "nope"`},
		{"trian", `there is no command "trian"; did you mean train? heed --help lists the commands`},
		{"test run", `there is no command "test"; did you mean eval?`},
		{"help bench dst", `there is no command "bench dst"; did you mean dist?`},
		{"completion pwsh", `got ["pwsh"]; did you mean powershell?`},
		{"bench nanogtp", `there is no benchmark "nanogtp" in float32; did you mean nanogpt? heed bench --help lists the benchmarks`},
		{"--epochs=3", "unknown flag: --epochs; heed train has --max-epochs: heed --help lists the flags"},
		{"train --lr 0.1", "unknown flag: --lr; did you mean --learning-rate? heed train --help lists the flags"},
		{"train -lr=0.1", "in -lr=0.1; did you mean --learning-rate? heed train --help lists the flags"},
		{"train -heads 3", "did you mean --heads?"}, // pflag reads -h -eads
		{"train --top-p=1", "unknown flag: --top-p; heed chat has --top-p: heed train --help lists the flags"},
		{"eval x --batch_size=3", "unknown flag: --batch_size; heed train has --batch-size: heed eval --help lists the flags"},
		{"predict x --topk 3", "did you mean --top? heed predict --help lists the flags; put -- before an argument that begins with a dash"},
		{"predict x -5", "unknown shorthand flag: '5' in -5: heed predict --help lists the flags; put --"},
		{"bench --turn", "unknown flag: --turn: heed bench --help lists the flags"}, // --turns is hidden
		{"train --task=ner", `got "ner"; did you mean tagging?`},
		{"train --norm=rmsnorm", "use one of layer, rms; did you mean rms?"},
		{"train --activation=swish", "did you mean silu?"},
		{"train --precision=bf16", `--precision: there is no precision "bf16": use one of float32, bfloat16`},
		{"train --positions=rope", "did you mean rotary?"},
		{"train --schedule=OneCycleLR", `got "OneCycleLR"; did you mean one-cycle?`},
		{"train --monitor=accuracy", `got "accuracy"; did you mean val_accuracy?`},
		{"train --task=text --data=x --preset=nano", `got "nano"; did you mean nanogpt?`},
		{"train --task=text --data=x --encoding=latin-1", "did you mean latin1?"},
		{"--nope", "unknown flag: --nope: heed --help lists"},
		{"train --dim", "needs an argument: --dim"},
		{"train --task=nope", "--task must be one of " + strings.Join(task.Names(), ", ") + `, got "nope"`},
		{"train;--task=", `--task must be one of`},
		{"train;--out=", "--out must be a folder's name"},
		{"train;--resume=", "the run folder's name is empty"},
		{"train --micro-batches=5", "--batch-size must be a multiple of --micro-batches, got 64 and 5"},
		{"train --task=text", "--task text must come with --data, the file"},
		{"train --data=x.txt", "--task reverse draws its own examples, so it can't come with --data: for a file, the task must be one of text, mlm, seq2seq, classification, multilabel, tagging"},
		{"train --task=seq2seq --data=x --data=y --data=z", `--data must be one file of rows, or two files, one of sources and one of answers, got 3: ["x" "y" "z"]`},
		{"train;--task=text;--data=x;--data=", "--data must be the name of a file or a folder, got none"},
		{"train --task=seq2seq --data=x --data=y --columns=1,2", "--columns is for one file of rows or a text, and --task seq2seq learns two parallel files"},
		{"train --task=seq2seq --data=x --columns=1", `--columns must name 2 columns, the source and the answer, got ["1"]`},
		{"eval x --data=y --data=z --columns=1,2", "--columns needs exactly one --data"},
		{"predict;x;--data=", "--data must be a file's name, got none"},
		{"predict;x;--data=y;--out=", "--out must be a file's name, got none"},
		{"predict x --data=y --json --out=z.csv", "--out z.csv promises CSV, but --json writes JSONL: let its name end in .jsonl"},
		{"predict x --data=y --encoding=ansi", `--encoding: encoding "ansi" is unknown`},
		{"predict x --columns=1", "--columns needs --data"},
		{"eval x --encoding=latin1", "--encoding needs --data"},
		{"eval x --data=y --encoding=ansi", `--encoding: encoding "ansi" is unknown`},
		{"train --task=seq2seq --data=x --validation-data=y --validation=0", "--validation-data needs a --validation above 0"},
		{"train --task=seq2seq --data=x --data=y --validation-data=z", "--validation-data must have the same number of files as --data"},
		{"train --task=seq2seq --data=x --units=letters", `--units must be one of characters, tokens, words, bpe for the task seq2seq, got "letters"`},
		{"train --task=seq2seq --data=x --target-units=words", `--target-units must be one of characters, tokens, bpe for the task seq2seq, got "words"`},
		{"train --task=tagging --data=x --units=bpe", "--units must be one of characters, tokens, words for the task tagging, got \"bpe\""},
		{"train --task=tagging --data=x --units=words --target-units=characters", "--units words needs tags with spaces between them: leave out --target-units characters"},
		{"train --task=seq2seq --data=x --units=bpe --vocab-size=200", "--vocab-size is only for --units bpe and must be at least 256, got 200"},
		{"train --task=seq2seq --data=x --from=y --units=tokens", "--from uses the symbols and the shape of the other run's model: leave out --units"},
		{"train;--task=seq2seq;--data=x;--from=", "the run folder's name is empty"},
		{"train --task=seq2seq --data=x --class-weights=balanced", "--class-weights are for the labels and tags of a file, not for the task seq2seq"},
		{"train --task=classification --data=x --class-weights=some", `--class-weights must be balanced or empty, got "some"`},
		{"train --task=classification --data=x --target-units=tokens", "--task classification can't have --target-units: its answers aren't split into units"},
		{"train --task=text --data=x --columns=1,2", `--columns is for rows, and for texts in files that end in .jsonl, got --data ["x"]`},
		{"train --task=text --data=x.jsonl --columns=1,2", `--columns must be one for --task text, the key of the text in the lines of JSONL files, got ["1" "2"]`},
		{"train --task=text --data=x --validation-data=y", "--validation-data is for rows and for conversations, and --data is a text"},
		{"train --task=tagging --data=x --validation-data=y --validation-data=z", "a second --validation-data is for two parallel files, and --task tagging learns one file of rows"},
		{"train --columns=1,2", "--columns is for one file of rows or a text, and --task reverse learns examples of its own"},
		{"train --decoder-layers=1", "--decoder-layers is for models with an encoder and a decoder, not for the task reverse"},
		{"train --heads=5", "--dim must be a multiple of --heads, got 32 and 5"},
		{"train --patience=0", "set --patience or --max-epochs"},
		{"train --resume=x --max-steps=2 --max-epochs=4 --seed=2", "only --max-epochs, --patience, --workers, --max-steps, --max-time, --checkpoint-every, --watch, --watch-addr, --no-examples, --data, --validation-data and --base may be given with it, got --seed"},
		{"train;--task=text;--data=x.txt;--preset=", `--preset must be one of nanogpt, speedrun for the task text, got ""`},
		{"train --solver=sgd,momentums=0.9", `use momentum, nesterov; did you mean momentum?`},
		{"train --find-rate curve.png", `as in --find-rate=FILE.png, got "curve.png" as an argument`},
		{"train;--find-rate=", `--find-rate must be a file's name that ends in .png, got ""`},
		{"train --find-rate=curve.jpg", `--find-rate must be a file's name that ends in .png, got "curve.jpg"`},
		{"train --solver=newton", `--solver: there are no solvers of kind "newton": use adamw, adam, sgd`},
		{"train --solver=sgd,nesterov=true", "--solver: option Nesterov needs a momentum above 0, for example 0.9"},
		{"train --plateau-factor=0.5", "--plateau must be above 0 if the plateau has other settings, got 0"},
		{"train --positions=rotary,base=x", "--positions: positions of kind rotary: "},
		{"train --positions=learned,max_len=3", "max_len in --positions must be from 11"},
		{"train --experts=x", "--experts: expected a number of experts and, after commas, fields such as top=2"},
		{"train --experts=4,tap=2", "did you mean top?"},
		{"train --experts=2,shared=-1", "heed: shared in --experts must be from 0 to 65536"},
		{"train --schedule=linear --decay=0", "--decay must be at least 1 for --schedule linear with --warm-up 100, got 0"},
		{"train --auto-resume", "--auto-resume needs --out"},
		{"train --resume=x --auto-resume", "got --auto-resume"},
		{"train --mode=auto", `--mode must be min or max, got "auto"`},
		{"train --task=add --validation=5000", "were found: use a smaller number"},
		{"train --max-len=1", "--validation asks for 1000"},
		{"eval x --threshold=0.5", `--threshold must be a label and the lowest probability at which it is answered, such as fraud=0.2, got "0.5"`},
		{"predict x --threshold=fraud=much", "--threshold must be a label and the lowest probability"},
		{"serve x --threshold==0.5", "--threshold must be a label and the lowest probability"},
		{"eval;", "name is empty"},
		{"eval;x;--answers=", "--answers must be a file's name, got none"},
		{"eval x --columns=1,2", "--columns needs --data, the file that it belongs to"},
		{"predict", "heed predict takes a run folder, then inputs or none to read standard input, got none"},
		{"predict x y --data=z", `give the inputs as arguments or with --data, not both, got "y"`},
		{"predict x --out=y", "--out needs --data"},
		{"predict x -abc", "put -- before an argument that begins with a dash"},
		{"search x -abc", "put -- before an argument that begins with a dash"},
		{"sweep", "takes a folder, two dashes and flags of heed train"},
		{"sweep x --dim=8,16", "unknown flag: --dim; heed train has --dim"},
		{"sweep x y -- --dim=8,16", "takes a folder, two dashes and flags of heed train"},
		{"sweep x --halving=0 -- --dim=8,16", "--halving must be at least 1, got 0"},
		{"sweep x --samples=-1 -- --dim=8,16", "--samples must be from 0 to 10000, got -1"},
		{"sweep x -- --dim=8, 16", `got "16": write lists without spaces`},
		{"sweep x -- --dims=8,16", "unknown flag: --dims; did you mean --dim?"},
		{"sweep x -- --out=y", "--out can't be given to the runs of a sweep"},
		{"sweep x -- --dim=8,many", `--dim must be a whole number, got "many"`},
		{"sweep x -- --dim=8..16", "--dim has a range, 8..16: say with --samples how many"},
		{"sweep x --samples=3 -- --dim=16..8", `--dim must be a whole number, got "16..8"`},
		{"sweep x -- --solver=adamw,sgdd", `--solver: `},
		{"sweep x -- --max-epochs=0 --patience=0,3", "the runs have no end"},
		{"sweep x -- --batch-size=8,-8", "--batch-size must be from 1"},
		{"sweep x -- --dim=8 --heads=2,3", "--heads"},
		{"serve x --addr=8080", `--addr must be a host and a port, such as 127.0.0.1:8080, or 127.0.0.1:0 for a free port, got "8080"`},
		{"serve x --queue=0", "--queue must be at least 1, got 0"},
		{"serve x --timeout=0s", "--timeout must be above 0, got 0s"},
		{"serve x --timeout=30", `--timeout must be a time, such as 30s or 10m, got "30"`},
		{"bench nope", `there is no benchmark "nope"`},
		{"bench --procs=-1", fmt.Sprintf("--procs must be from 1 to %d, the number of processors, or 0 for all, got -1", runtime.NumCPU())},
		{fmt.Sprint("bench --procs=", runtime.NumCPU()+1), "--procs must be from 1 to "},
		{"bench --precision=bfloat16 decode", `there is no benchmark "decode" in bfloat16: heed bench --help lists the benchmarks`},
	} {
		args := strings.Fields(test.args)
		if strings.Contains(test.args, ";") {
			args = strings.Split(test.args, ";")
		}
		t.Run(test.args, func(t *testing.T) {
			rejected(t, heed(args...), 2, test.want)
		})
	}
	unchanged(t, ".", nil)
}

func TestNumbersOutOfRange(t *testing.T) {
	t.Chdir(t.TempDir())
	wrong := map[string][]string{
		"dim": {"0", "-1", "16385"}, "heads": {"0", "-4", "1025"}, "layers": {"0", "-1", "129"}, "decoder-layers": {"-1", "129"}, "hidden": {"-1", "65537"},
		"max-len": {"-1", "65537"}, "batch-size": {"0", "-1", "65537"}, "steps-per-epoch": {"0", "-1", "1073741825"},
		"warm-up": {"-1", "1073741825"}, "decay": {"-1", "1073741825"}, "patience": {"-1", "1073741825"},
		"max-epochs": {"-1", "1073741825"}, "validation": {"-1", "16777217"}, "seed": {"-1", "18446744073709551616"},
		"dropout": {"1", "-0.1", "2"}, "learning-rate": {"0", "-1", "11"}, "floor": {"-0.1", "1.1"},
		"weight-decay": {"-1", "11"}, "clip-norm": {"-1", "1e31"}, "min-delta": {"-0.1", "1e31"}, "first-epoch": {"-1", "1073741825"},
		"relative-delta": {"maybe"}, "keep-last": {"maybe"}, "skip-bad": {"maybe"}, "merge-labels": {"maybe"}, "allow-non-finite": {"maybe"}, "mix": {"maybe"},
		"baseline": {"1e31", "-1e31"}, "stopping-threshold": {"1e31"}, "divergence-threshold": {"1e31"},
		"micro-batches": {"-1", "1048577"}, "workers": {"-1"}, "check-every": {"-1", "1073741825"},
		"max-steps": {"-1"}, "max-time": {"-1s", "1"}, "checkpoint-every": {"0", "-1", "-1s", "0s"}, "auto-resume": {"maybe"}, "watch": {"maybe"}, "no-examples": {"maybe"},
		"average": {"1", "-0.1"}, "clip-value": {"-1", "1e31"},
		"plateau": {"-1", "1073741825"}, "plateau-factor": {"1", "-0.1"}, "max-answer": {"-1", "65537"}, "vocab-size": {"-1", "262145"}, "label-smoothing": {"1", "-0.1"},
		"temperature": {"-1", "0.0001", "101"}, "rank": {"-1", "16385"}, "alpha": {"-1"}, "adapter-dropout": {"1", "-0.1"}, "root-scale": {"maybe"},
	}
	floats := []string{"temperature", "alpha", "adapter-dropout", "average", "label-smoothing", "clip-value", "plateau-factor", "dropout", "learning-rate", "floor", "weight-decay", "clip-norm", "min-delta", "baseline", "stopping-threshold", "divergence-threshold"}
	for _, flag := range floats {
		wrong[flag] = append(wrong[flag], "NaN", "Inf", "-Inf", "1e999")
	}
	for flag, values := range wrong {
		for _, v := range append(values, "x", "", "99999999999999999999999999999999", "1.5.2", "0x") {
			t.Run(flag+"="+v, func(t *testing.T) {
				fail(t, heed("train", "--"+flag+"="+v), 2, "--"+flag+" must be ")
			})
		}
	}
	newTrain(nil).Flags().VisitAll(func(f *pflag.Flag) {
		if _, texts := f.Value.(pflag.SliceValue); f.Value.Type() != "string" && f.Value.Type() != "name" && !texts && wrong[f.Name] == nil {
			t.Errorf("the test has no values for --%s", f.Name)
		}
	})
	unchanged(t, ".", nil)
}

func TestHelp(t *testing.T) {
	commands := []string{"train", "eval", "predict", "generate", "attention", "serve", "sweep", "bench", "completion", "version"}
	for _, test := range []struct {
		args string
		want []string
	}{
		{"", commands}, {"--help", commands}, {"help", commands},
		{"help train", []string{"--resume", "config.json, model.safetensors, history.jsonl and summary.json", "--help"}},
		{"train --help", []string{"--task", strings.Join(task.Names(), ", "), "--seed", "(default 0.003)", "Common flags:", "Solver:", "Learning rate over time:", "Early stopping:", "--min-delta", "each check also writes one (default 10m0s)"}},
		{"eval -h", []string{"heed eval DIR", "--data"}},
	} {
		must.Have(t, succeed(t, strings.Fields(test.args)...), test.want...)
	}
}

// failing is a writer that fails like a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCantBeWritten(t *testing.T) {
	t.Parallel()
	dir := ran(t, "--task=copy")
	for _, args := range [][]string{{"eval", dir}, {"predict", dir, "abc"}, {}, {"--help"}, {"help", "train"}, {"train", "-h"}} {
		fail(t, heedTo(t.Context(), failing{}, args...), 1, "no space left")
	}
	// The run folder of heed train is complete anyway.
	other := filepath.Join(t.TempDir(), "run")
	fail(t, heedTo(t.Context(), failing{}, small("--task=copy", "--out="+other)...), 1, "the work is done, but not all output could be printed: no space left")
	sameRun(t, other, dir)
}

// heed train finishes its run even if the reader of its output goes away.
func TestReaderThatGoesAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	cmd := process(small("--task=copy", "--out="+dir)...)
	r, w, err := os.Pipe()
	must.Do(t, err)
	cmd.Stdout = w
	r.Close()
	defer w.Close()
	fail(t, ended(cmd), 1, "the work is done, but not all output could be printed")
	if s, _ := readRun(t, dir); s.Epochs != 3 {
		t.Errorf("the run has %d epochs, want 3", s.Epochs)
	}
}

func TestBench(t *testing.T) {
	testseed.Slow(t)
	t.Setenv(asCommand, "1") // heed bench starts new processes
	var m bench.Measurement
	out := succeed(t, "bench", "--json", "--precision=bfloat16", "gemm-64")
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	must.Do(t, d.Decode(&m))
	if m.Config != "gemm-64" || m.Precision != layers.BFloat16 || !(m.MinMS > 0) || m.MedianMS < m.MinMS || !(m.GFLOPS > 0) || math.IsInf(m.GFLOPS, 0) || m.Share != m.GFLOPS/m.Limits.GFLOPS || !(m.Limits.GBPerS > 0) {
		t.Errorf("measured %+v, want times, GFLOP/s, limits and a share", m)
	}
	if strings.Count(out, "\n") != 1 {
		t.Errorf("heed bench prints %q, want one line", out)
	}
	procs := runtime.GOMAXPROCS(0)
	table := succeed(t, "bench", "--procs=1", "gemm-64")
	if now := runtime.GOMAXPROCS(0); now != procs {
		t.Errorf("after heed bench --procs=1, GOMAXPROCS is %d, want %d again", now, procs)
	}
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "limits: ") || !strings.HasPrefix(lines[1], "config") || strings.Join(strings.Fields(lines[2])[:2], " ") != "gemm-64 float32" {
		t.Errorf("heed bench prints %q, want limits, a heading and one line for gemm-64 in float32", table)
	}
}

// TestBenchTurns checks that each line of input starts a turn, and the end of input ends the command.
func TestBenchTurns(t *testing.T) {
	withText(t, "1\n7\n")
	d := json.NewDecoder(strings.NewReader(succeed(t, "bench", "--turns", "gemm-64")))
	for range 2 {
		var m bench.Measurement
		if err := d.Decode(&m); err != nil || m.Config != "gemm-64" || !(m.MinMS > 0) || m.MedianMS < m.MinMS || !(m.PeakRSSMB > 0) {
			t.Errorf("measured %+v and error %v, want times and memory of gemm-64", m, err)
		}
	}
	if d.More() {
		t.Error("heed bench --turns prints more than two measurements for two lines")
	}
	for _, steps := range []string{"0", "x", ""} {
		withText(t, steps+"\n")
		rejected(t, heed("bench", "--turns", "gemm-64"), 1, fmt.Sprintf("must be a number of steps, at least 1, got %q", steps))
	}
}

func TestVersion(t *testing.T) {
	if got := succeed(t, "version"); !strings.HasPrefix(got, "heed ") || !strings.Contains(got, " "+runtime.Version()) || !strings.HasSuffix(got, ", computing with "+kernel.Instructions()+"\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("heed version prints %q, want one line with the version of Go, %s, and the instructions, %s", got, runtime.Version(), kernel.Instructions())
	}
}

// A name may have control characters. heed escapes them in everything that it prints.
func TestNamesAreMadePrintable(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("names of files have no control characters on Windows")
	}
	dir := filepath.Join(t.TempDir(), "no\x1b[31m\u202edir")
	for _, args := range [][]string{
		{"predict", dir, "x"}, {"eval", dir}, {"train", "--resume=" + dir}, {"train", "--task=text", "--data=" + dir},
		{"attention", dir, "x"}, {"\x1b"}, {"help", "\x1b"}, {"eval", "--\x1b"}, {"train", "--dim=\x1b"},
	} {
		c := heed(args...)
		if c.code == 0 || text.Escape(c.stderr) != c.stderr || !strings.Contains(c.stderr, `\x1b`) {
			t.Errorf("heed %q: status %d and standard error %q, want an error with \\x1b escaped", args, c.code, c.stderr)
		}
	}
	out := succeed(t, small("--task=copy", "--out="+dir)...)
	if text.Escape(out) != out || strings.Count(out, "no\\x1b[31m") != 3 {
		t.Errorf("heed train prints %q, want the name escaped, 3 times", out)
	}
	fail(t, heed(small("--task=copy", "--out="+dir)...), 1, `no\x1b[31m\u202edir holds a run already`, "--resume $'")
	if out := succeed(t, "predict", dir, "abc"); out == "" {
		t.Error("heed predict prints nothing")
	}
	figure := filepath.Join(dir, "figure.svg")
	if out := succeed(t, "attention", dir, "abc", "--out="+figure); text.Escape(out) != out {
		t.Errorf("heed attention prints %q, want the name escaped", out)
	}
}

func TestShell(t *testing.T) {
	for s, want := range map[string]string{
		"runs/copy-2": "runs/copy-2", "": "''", "a b": "'a b'", "c'd": `'c'\''d'`, "27+35": "27+35", "$x": "'$x'", "~": "'~'", "größer": "größer", "a\nb": "'a\nb'",
		"no\x1b[31m dir": `$'no\x1b[31m dir'`, "c'd\\\ré\n": `$'c\'d\\\x0d\xc3\xa9\x0a'`, "\xff": `$'\xff'`,
	} {
		if got := shell(s); got != want {
			t.Errorf("shell(%q) is %s, want %s", s, got, want)
		}
	}
}

// An error is one line of limited length, even if an argument is very long.
func TestLongArgumentsAreCut(t *testing.T) {
	long := strings.Repeat("ä\x1b", 50_000)
	for _, args := range [][]string{
		{long}, {"help", long}, {"train", "--task=" + long}, {"train", "--dim=" + long}, {"train", "--" + long}, {"train", long},
		{"train", "--resume=" + long}, {"train", "--task=text", "--data=" + long}, {"eval", long}, {"predict", long, "x"},
		{"generate", long, "--prompt=x", "--tokens=1"}, {"attention", "x", "y", "--out=" + long}, {"bench", long},
	} {
		c := heed(args...)
		if fail(t, c, c.code, "…"); c.code == 0 || len(c.stderr) > 2500 {
			t.Errorf("heed %.20q: status %d and an error of %d bytes, want a failure and at most 2500 bytes", args, c.code, len(c.stderr))
		}
	}
	if c := heed("bench", long); !strings.HasSuffix(c.stderr, ": heed bench --help lists the benchmarks\n") {
		t.Errorf("the error is %q, want it to end with the hint to heed bench --help", c.stderr)
	}
}
