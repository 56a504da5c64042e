package floors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var arrowLimit = flag.Int("arrows", 0, "count the arrows back up in every package, and fail above this number")

// unlimited are packages that may have more arrows than the limit.
var unlimited = []string{"layers", "train"}

// An arrow is a use of a package-level name that another file of the same package declares. Methods and fields belong
// to their type, so their uses don't count.
type arrow struct {
	from, to int // files
	name     string
}

// TestArrows counts in every package the arrows that run back up; .ci/arrows calls it. It orders the files of a package
// from top to bottom such that most arrows run down. For train/task, data/tokenizer, layers and train of commit 201f5d7
// it counts 98, 98, 22 and 29.
func TestArrows(t *testing.T) {
	if *arrowLimit == 0 {
		t.Skip("runs with -arrows")
	}
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	for packages := json.NewDecoder(bytes.NewReader(out)); packages.More(); {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := packages.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours || len(p.GoFiles) < 2 {
			continue
		}
		up, err := arrowsUp(p.ImportPath, p.Dir, p.GoFiles, lookup)
		if err != nil {
			t.Fatal(err)
		}
		uses := make(map[arrow]int)
		for _, a := range up {
			uses[a]++
		}
		fmt.Printf("%4d %s\n", len(up), name)
		for _, a := range slices.SortedFunc(maps.Keys(uses), func(a, b arrow) int {
			return cmp.Or(uses[b]-uses[a], a.from-b.from, strings.Compare(a.name, b.name))
		}) {
			fmt.Printf("%8d %s → %s: %s\n", uses[a], p.GoFiles[a.from], p.GoFiles[a.to], a.name)
		}
		if len(up) > *arrowLimit && !slices.Contains(unlimited, name) {
			t.Errorf("%s has %d arrows back up, want at most %d", name, len(up), *arrowLimit)
		}
	}
}

// arrowsUp returns the arrows of a package that run back up in the order of its files.
func arrowsUp(path, dir string, names []string, lookup importer.Lookup) ([]arrow, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	uses := make(map[*ast.Ident]types.Object)
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	pkg, err := config.Check(path, fset, files, &types.Info{Uses: uses})
	if err != nil {
		return nil, err
	}
	fileOf := func(p token.Pos) int {
		return slices.IndexFunc(files, func(f *ast.File) bool { return f.FileStart <= p && p < f.FileEnd })
	}
	var arrows []arrow
	used := make([]map[int]bool, len(files)) // by each file
	for from, file := range files {
		used[from] = make(map[int]bool)
		ast.Inspect(file, func(n ast.Node) bool {
			name, _ := n.(*ast.Ident)
			if object := uses[name]; object != nil && object.Parent() == pkg.Scope() {
				if target := fileOf(object.Pos()); target != from {
					arrows = append(arrows, arrow{from, target, object.Name()})
					used[from][target] = true
				}
			}
			return true
		})
	}
	height := heights(used)
	return slices.DeleteFunc(arrows, func(a arrow) bool { return height[a.from] > height[a.to] }), nil
}

// heights returns the places of files from bottom to top, by the heuristic of Eades, Lin and Smyth (1993): a file that
// uses no other remaining file goes to the bottom, and a file that no other uses to the top. If there is neither, the
// file whose number of used files exceeds its number of users most goes to the top.
func heights(used []map[int]bool) []int {
	height := make([]int, len(used)) // 0 until a file has its place
	count := func(file int) (out, users int) {
		for other := range used {
			if height[other] == 0 && used[file][other] {
				out++
			}
			if height[other] == 0 && used[other][file] {
				users++
			}
		}
		return out, users
	}
	for bottom, top := 1, len(used); bottom <= top; {
		sink, source, widest, excess := -1, -1, -1, 0
		for file := range used {
			if height[file] > 0 {
				continue
			}
			out, users := count(file)
			if out == 0 && sink < 0 {
				sink = file
			}
			if users == 0 && source < 0 {
				source = file
			}
			if widest < 0 || out-users > excess {
				widest, excess = file, out-users
			}
		}
		switch {
		case sink >= 0:
			height[sink] = bottom
			bottom++
		case source >= 0:
			height[source] = top
			top--
		default:
			height[widest] = top
			top--
		}
	}
	return height
}
