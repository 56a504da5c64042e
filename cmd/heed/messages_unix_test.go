//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
)

// The system's errors have the operation and the name of the file. Heed's own errors have the name too. The function
// fail checks that no error has it twice. A link to itself can't be opened, not even by root.
func TestErrorsOfTheSystem(t *testing.T) {
	run, rows := ran(t, "--task=copy"), sharedFile(t, "twice.tsv", strings.Repeat("abc\tabc\n", 2000))
	t.Chdir(t.TempDir())
	loop := func(path string) {
		os.Remove(path)
		must.Do(t, os.Symlink(filepath.Base(path), path))
	}
	for _, name := range []string{runfolder.ConfigFile, runfolder.WeightsFile, runfolder.HistoryFile, runfolder.SummaryFile, runfolder.CheckpointFile, ".heed.lock"} {
		must.Do(t, os.CopyFS(name, os.DirFS(run)))
		loop(filepath.Join(name, name))
	}
	must.Do(t, os.Mkdir("texts", 0o777))
	for _, path := range []string{"loop", "loop.json", "texts/loop.txt"} {
		loop(path)
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	addr := listener.Addr().String()
	type call struct{ args, want string }
	calls := []call{
		{"predict config.json abc", "config.json can't be read as a run folder: config.json/config.json: too many levels of symbolic links"},
		{"eval model.safetensors", "heed: model.safetensors/model.safetensors: too many levels"},
		{"report history.jsonl", "heed: history.jsonl/history.jsonl: too many levels"},
		{"report summary.json", "summary.json/summary.json can't be read, or was changed: too many levels"},
		{"train --resume=checkpoint.safetensors --max-epochs=9", "checkpoint.safetensors: too many levels"},
		{"train --resume=.heed.lock --max-epochs=9", ".heed.lock: too many levels"},
		{"train --from=model.safetensors --task=copy --out=new", "can't start from model.safetensors: model.safetensors/model.safetensors: too many levels"},
		{"train --out=loop", "loop can't become a run folder: file exists"},
		{"train --out=" + rows + "/new", "can't become a run folder: not a directory"},
		{"train --task=text --data=loop", `text "loop": too many levels`},
		{"train --task=text --data=texts", `text "texts/loop.txt": too many levels`},
		{"train --task=text --data=" + rows + " --data=loop", `text "loop": too many levels`},
		{"train --task=seq2seq --data=loop", `data file "loop": too many levels`},
		{"predict " + run + " --data=" + rows + " --out=loop/x.tsv", "--out loop/x.tsv can't be written: too many levels"},
		{"tokenize loop.json abc", `tokenizer "loop.json": too many levels`},
		{"tokenize none abc", `tokenizer "none": no such file`},
		{"tokenize --count " + run + " loop", "loop: too many levels"},
		{"serve " + run + " --addr=" + addr, "--addr " + addr + ": address already in use: choose another address"},
	}
	if runtime.GOOS == "linux" {
		for _, name := range []string{"full.svg", "full.html"} {
			must.Do(t, os.Symlink("/dev/full", name))
		}
		calls = append(calls, []call{
			{"predict " + run + " --data=" + rows + " --out=/dev/full", "heed: write /dev/full: no space left on device"},
			{"predict " + run + " --data=" + rows + " --json --out=/dev/full", "heed: write /dev/full: no space left on device"},
			{"eval " + run + " --answers=/dev/full", "heed: write /dev/full: no space left on device"},
			{"attention " + run + " abc --out=full.svg", "heed: write full.svg: no space left on device"},
			{"report " + run + " " + run + " --out=full.html", "heed: write full.html: no space left on device"},
		}...)
	}
	for _, c := range calls {
		t.Run(c.args, func(t *testing.T) { fail(t, heed(strings.Fields(c.args)...), 1, c.want) })
	}
}
