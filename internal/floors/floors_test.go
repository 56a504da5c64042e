// Package floors checks rules for the whole module: packages import only what ARCHITECTURE.md allows, comments fit into
// 120 columns, functions of the command have at most 60 lines, and pages name only what exists.
package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/must"
)

const (
	root   = "../.."
	module = "github.com/heed-go/heed/"
)

// floors lists the packages from top to bottom. A package imports only packages on lower floors, except that the
// packages at the top may also import each other. A name that ends in a slash includes all packages below it.
var floors = [][]string{
	{"cmd/", "examples/", "docs/"},
	{"train/report", "train/task/serve"},
	{"train/task", "train/mpi", "internal/llama2c"},
	{"train/task/judge"},
	{"train/model"},
	{"internal/linear/beside", "internal/logit", "internal/runfolder/runlog", "layers/pretrained"},
	{"train", "layers/decode"},
	{"layers", "layers/gradcheck"},
	{"data/search", "internal/linear/fit", "internal/ops", "train/optim"},
	{"internal/chats", "internal/kernel", "internal/kernel/internal/amxrun", "internal/linear", "internal/rows", "internal/runfolder", "data/toy"},
	{"data", "internal/atomicfile", "internal/choices", "internal/extremes", "internal/folderlock", "internal/heatmap", "internal/kernel/internal/portable", "internal/safetensors", "internal/table", "internal/testseed", "train/score"},
	{"internal/oov"},
	{"data/tokenizer", "internal/memory", "internal/textfile"},
	{"data/tokenizer/internal/chat", "data/tokenizer/internal/learn", "data/tokenizer/internal/published"},
	{"data/tokenizer/internal/folder"},
	{"data/tokenizer/internal/sentencepiece"},
	{"data/tokenizer/internal/models"},
	{"data/tokenizer/internal/format", "data/tokenizer/internal/patterns", "data/tokenizer/internal/trie"},
	{"data/tokenizer/internal/characters", "data/tokenizer/internal/pipe"},
	{"internal/apart", "internal/jsonkeys", "internal/metrics", "internal/must", "internal/npy", "internal/setting", "internal/text", "internal/webpage"},
}

// floorOf returns the floor of a package, or -1 if it has none.
func floorOf(pkg string) int {
	best, longest := -1, 0
	for i, names := range floors {
		for _, name := range names {
			if (pkg == name || strings.HasSuffix(name, "/") && strings.HasPrefix(pkg, name)) && len(name) > longest {
				best, longest = i, len(name)
			}
		}
	}
	return best
}

// sources calls do for every Go file of the module.
func sources(t *testing.T, do func(file string) error) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, noModule := os.Stat(filepath.Join(file, "go.mod"))
			if file != root && (noModule == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		return do(file)
	})
	must.Do(t, err)
}

func TestImportsRunDownwards(t *testing.T) {
	seen := 0
	sources(t, func(file string) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(folder)
		from := floorOf(pkg)
		if from < 0 {
			t.Errorf("package %s has no floor: give it one in this test and in ARCHITECTURE.md", pkg)
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imported, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			seen++
			if target := floorOf(imported); target <= from && !(target == from && from == 0) {
				t.Errorf("%s imports %s, which must be on a lower floor", path.Join(pkg, filepath.Base(file)), imported)
			}
		}
		return nil
	})
	if seen < 50 {
		t.Errorf("found %d imports, want at least 50: the test searches the wrong folder", seen)
	}
}

// TestCommentsFit checks that comment lines are at most 120 columns wide, where a tab counts as four. Generated files
// and the output of examples may be wider.
func TestCommentsFit(t *testing.T) {
	sources(t, func(file string) error {
		content, err := os.ReadFile(file)
		if err != nil || strings.HasPrefix(string(content), "// Code generated") {
			return err
		}
		output := false
		for i, line := range strings.Split(string(content), "\n") {
			line = strings.ReplaceAll(line, "\t", "    ")
			comment := strings.HasPrefix(strings.TrimSpace(line), "//")
			output = comment && (output || strings.Contains(line, "// Output:"))
			if n := utf8.RuneCountInString(line); comment && !output && n > 120 && !strings.HasPrefix(line, "//go:") {
				t.Errorf("%s:%d: a comment of %d columns, want at most 120", file, i+1, n)
			}
		}
		return nil
	})
}

// TestCommandsFitOnAScreen checks that no function of cmd/heed, without its tests, has more than 60 lines.
func TestCommandsFitOnAScreen(t *testing.T) {
	const limit = 60
	files := token.NewFileSet()
	seen := 0
	sources(t, func(file string) error {
		if !strings.HasPrefix(file, filepath.Join(root, "cmd")) || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(files, file, nil, 0)
		if err != nil {
			return err
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				seen++
				if first, last := files.Position(f.Pos()), files.Position(f.End()); last.Line-first.Line >= limit {
					t.Errorf("%v: %s has %d lines, want at most %d", first, f.Name.Name, last.Line-first.Line+1, limit)
				}
			}
		}
		return nil
	})
	if seen < 50 {
		t.Errorf("found %d functions, want at least 50: the test searches the wrong folder", seen)
	}
}
