package main

import (
	"cmp"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// tree returns the contents of all files below the working folder, by path, and "a folder" for each folder.
func tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			files[path] = "a folder"
		} else if err == nil {
			files[path] = read(t, path)
		}
		return err
	})
	must.Do(t, err)
	return files
}

// For a bad input or output path, each command prints one line, exits with the right status and leaves no files.
func TestBadPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	succeed(t, small("--task=copy", "--out=run")...)
	succeed(t, small("--task=text", "--max-len=16", "--data="+foxText(t), "--out=text")...)
	config := read(t, "run/config.json")
	for _, dir := range []string{"older", "newer", "begun", "folder", "folder.html"} {
		must.Do(t, os.Mkdir(dir, 0o777))
	}
	write(t, "older/config.json", strings.Replace(config, `"format": 5`, `"format": 3`, 1))
	write(t, "newer/config.json", strings.Replace(config, `"format": 5`, `"format": 6`, 1))
	write(t, "begun/config.json", read(t, "text/config.json"))
	write(t, "file", "keep me")
	write(t, "rows.tsv", "abc\tabc\n")
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	before := tree(t)

	type call struct {
		args   string
		status int
		want   string
	}
	var calls []call
	arguments := map[string]string{"predict": " abc", "generate": " --prompt=a --tokens=1", "attention": " abc", "serve": " --addr=127.0.0.1:0", "search": " --data=rows.tsv abc", "explain": " abc", "rank": " abc abc"}
	missing := map[string]string{"report": "history: the run ended before its first check"}
	for _, cmd := range newRoot(nil).Commands() {
		words := append(strings.Fields(cmd.Use), "")
		if !strings.HasPrefix(words[1], "DIR") {
			continue
		}
		with := func(dir string) string { return words[0] + " " + dir + arguments[words[0]] }
		calls = append(calls, call{with("none"), 1, "none: there is no such folder"},
			call{with("folder"), 1, "folder isn't a run folder: it has no config.json"},
			call{with("file"), 1, "file isn't a folder, but a file: give the folder"},
			call{with("older"), 1, "older/config.json: this run folder has the older format 3, and heed reads format 5: train it again"},
			call{with("newer"), 1, "newer/config.json: this run folder has the newer format 6, and heed reads format 5: update heed"},
			call{with("run --nope"), 2, "unknown flag: --nope"},
			call{words[0], 2, "heed " + words[0] + " takes "})
		// These commands are not for models of the task text.
		if slices.Contains([]string{"chat", "embed", "search", "rank", "explain"}, words[0]) {
			calls = append(calls, call{with("begun"), 2, " the task text, "})
			continue
		}
		calls = append(calls, call{with("begun"), 1, "begun has no " + cmp.Or(missing[words[0]], "weights: the run ended before the end of its first epoch") + "; heed train --resume begun continues the run"})
	}
	if len(calls) < 5*8 {
		t.Errorf("found %d calls of commands with a DIR, want at least 40", len(calls))
	}
	flags := " --max-epochs=1 --out=new"
	calls = append(calls, []call{
		{"eval run more", 2, `takes one folder, got "run" "more"`},
		{"generate text more --prompt=a --tokens=1", 2, `takes one model folder, and a prompt of several words in quotes, got "text" "more"`},
		{"attention run abc more", 2, `takes a run folder and one input, in quotes if it has several words, got "run" "abc" "more"`},
		{"serve run more", 2, `takes one folder, got "run" "more"`},
		{"train more", 2, `takes no argument, got "more"`},
		{"completion bash zsh", 2, "takes one of"},
		{"help train more", 2, `there is no command "train more"`},

		{"train --resume=file", 1, "file isn't a folder, but a file"},
		{"train --resume=folder", 1, "folder isn't a run folder: it has no config.json; heed train makes one"},
		{"train --resume=none", 1, "none: there is no such folder"},
		{"eval run --data=none", 1, "no such file"},
		{"train --resume=newer --max-epochs=9", 1, "has the newer format 6"},
		{"train --from=none" + flags, 1, "none: there is no such folder"},
		{"train --from=older" + flags, 1, "has the older format 3"},
		{"train --task=text --max-len=16 --data=" + foxText(t) + " --from=begun" + flags, 1, "can't start from begun: it has no weights"},
		{"train --task=seq2seq --data=none" + flags, 1, `data file "none": no such file`},
		{"train --task=seq2seq --data=folder" + flags, 1, `data file "folder": it is a directory`},
		{"train --task=text --data=folder" + flags, 1, "is a directory"},
		{"eval run --data=folder", 1, `data file "folder": it is a directory`},
		{"eval text --data=folder", 1, "is a directory"},

		{"train --out=file", 1, "file can't become a run folder"},
		{"train --out=file/new", 1, "file/new can't become a run folder"},
		{"train --out=run", 1, "run holds a run already"},
		{"train --find-rate=none/x.png", 1, "--find-rate's folder none doesn't exist"},
		{"train --find-rate=x.gif", 2, "must be a file's name that ends in .png"},
		{"eval run --answers=none/x", 1, "--answers's folder none doesn't exist"},
		{"eval run --answers=file/x", 1, "--answers's folder file is a file"},
		{"eval run --answers=folder", 1, "--answers folder is a folder"},
		{"eval run --out=x.tsv", 2, `--out must be a file's name that ends in .html, got "x.tsv"`},
		{"eval run --out=none/x.html", 1, "--out's folder none doesn't exist"},
		{"eval text --out=x.html", 2, "--out is for models that answer rows; text learned the task text"},
		{"eval run --answers=x.json", 2, "--answers x.json promises JSONL, but answers are written as TSV or CSV: let its name end in .tsv or .csv"},
		{"eval run --answers=x.conllu.gz", 2, "--answers x.conllu.gz promises CoNLL"},
		{"predict run --data=rows.tsv --out=none/x", 1, "--out's folder none doesn't exist"},
		{"predict run --data=rows.tsv --out=folder", 1, "--out folder is a folder"},
		{"attention run abc --out=none/x.png", 1, "--out's folder none doesn't exist"},
		{"attention run abc --out=x.gif", 2, "must be a file's name that ends in .png, .svg or .html"},

		{"report run --out=none/x.html", 1, "--out's folder none doesn't exist"},
		{"report run run --out=folder.html", 1, "--out folder.html is a folder"},
		{"report run --out=x.png", 2, "must be a file's name that ends in .html"},
		{"report run run", 2, "a page that compares runs needs --out"},

		{"serve run --addr=" + listener.Addr().String(), 1, "address already in use"},
		{"serve run --addr=127.0.0.1:65536", 2, "--addr must be a host and a port"},
		{"train --watch-addr=" + listener.Addr().String() + flags, 1, "address already in use: choose another address, or port 0"},
		{"train --watch-addr=203.0.113.1:0" + flags, 1, "--watch-addr 203.0.113.1:0"},
		{"train --watch --watch-addr=" + flags, 2, "--watch-addr must be a host and a port"},
		{"train --watch --find-rate=x.png" + flags, 2, "--find-rate and --watch can't be used together"},

		{"export text", 2, "--out must be the folder to write, got none"},
		{"export text --out=run", 1, "run isn't empty: it has checkpoint.safetensors; choose a new folder"},
		{"export text --out=file", 1, "file: not a directory"},
		{"export run --out=new", 1, "the task copy can't be exported: it tags with a vocabulary of its own"},
		{"generate run --prompt=a --temperature=-1", 2, "run: the model is for the task copy, and only text models generate text: use heed predict"},
		{"eval run --beam=4", 2, "--beam is for answers written symbol by symbol, not for the task copy"},
		{"predict run abc --beam=4", 2, "--beam is for answers written symbol by symbol, not for the task copy"},
		{"eval run --beam=-1", 2, "--beam must be from 1 to 1024, or 0 for 1, got -1"},
		{"eval text --header=yes", 2, "--header is for models that answer rows; text learned the task text"},
		{"eval text --data=none --columns=a,b,c", 2, `--columns must be one for a text, the key in the lines of JSONL files, got ["a" "b" "c"]`},
		{"eval text --data=none --columns=a", 2, `--columns is for rows, and for texts in files that end in .jsonl, got --data ["none"]`},
		{"predict text --data=none abc", 2, "--data is for models that answer rows; text learned the task text"},
		{"predict text abc --out= --beam=4", 2, "--out needs --data"},
		{"train --resume=run --validation-data=none", 2, "--validation-data is for models that learned a file; run learned the task copy"},
		{"train --resume=text --validation-data=none", 2, "--validation-data is for models that answer rows; text learned the task text"},
		{"attention run abc --layer=atention", 2, `contains "atention"; the layers are blocks.0.attention; did you mean attention?`},
	}...)
	for _, c := range calls {
		t.Run(c.args, func(t *testing.T) {
			rejected(t, heed(strings.Fields(c.args)...), c.status, c.want)
		})
	}
	if after := tree(t); !maps.Equal(after, before) {
		t.Errorf("files have changed: there are %q, want %q with the same contents", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}
