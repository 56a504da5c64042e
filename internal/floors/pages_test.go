package floors

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
)

// names holds what pages can name.
type names struct {
	declared map[string]bool            // functions, types, variables, constants, fields and methods
	packages map[string]map[string]bool // names declared at the top of each package, by the package's name
	members  map[string]map[string]bool // fields and methods of each type, by the type's name; types in several packages share them
	embedded map[string][]string        // embedded types of each type, and types of each field
	literals map[string]bool            // string literals, such as names of flags
	words    map[string]bool            // names of files, and words in string literals, such as JSON keys
}

// add adds name to the set of key.
func add(sets map[string]map[string]bool, key, name string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][name] = true
}

var wordOf = regexp.MustCompile(`[\w.-]*\w`)

// file adds the names of a Go file.
func (n *names) file(file *ast.File) {
	pkg := strings.TrimSuffix(file.Name.Name, "_test")
	top := func(ids ...*ast.Ident) {
		for _, id := range ids {
			add(n.packages, pkg, id.Name)
			n.declared[id.Name] = true
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			n.declared[decl.Name.Name] = true
			if decl.Recv == nil {
				top(decl.Name)
			} else {
				add(n.members, base(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					top(spec.Names...)
				case *ast.TypeSpec:
					top(spec.Name)
					n.typ(spec)
				}
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			n.literals[text] = true
			for _, word := range wordOf.FindAllString(text, -1) {
				n.words[word] = true
			}
		}
		return true
	})
}

// typ adds the fields and methods of a type.
func (n *names) typ(spec *ast.TypeSpec) {
	name := spec.Name.Name
	if alias := base(spec.Type); alias != "" {
		n.embedded[name] = append(n.embedded[name], alias)
	}
	ast.Inspect(spec.Type, func(node ast.Node) bool {
		field, ok := node.(*ast.Field)
		if !ok {
			return true
		}
		inner := base(field.Type)
		for _, id := range field.Names {
			add(n.members, name, id.Name)
			n.declared[id.Name] = true
			n.embedded[id.Name] = append(n.embedded[id.Name], inner) // pages write Stopping.Patience for a field of a field
		}
		if len(field.Names) == 0 && inner != "" {
			add(n.members, name, inner)
			n.embedded[name] = append(n.embedded[name], inner)
		}
		return true
	})
}

// has reports whether a type, or a type embedded in it, has a field or method. It looks at most depth levels deep.
func (n *names) has(typ, member string, depth int) bool {
	return n.members[typ][member] || depth > 0 && slices.ContainsFunc(n.embedded[typ], func(inner string) bool { return n.has(inner, member, depth-1) })
}

// base returns the name of a type, without its package, pointer and type parameters.
func base(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.StarExpr:
		return base(expr.X)
	case *ast.SelectorExpr:
		return expr.Sel.Name
	case *ast.IndexExpr:
		return base(expr.X)
	}
	return ""
}

// collect returns the names in all Go files of the repository, and the top names of Gorgonia's packages.
func collect(t *testing.T) *names {
	t.Helper()
	n := &names{map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string][]string{}, map[string]bool{}, map[string]bool{}}
	parse := func(file string) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		must.Do(t, err)
		n.file(parsed)
	}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && file != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(file, ".go") {
			parse(file)
		}
		n.words[filepath.Base(file)] = true
		return err
	})
	must.Do(t, err)
	words := n.words
	n.words = map[string]bool{} // Gorgonia's words aren't ours
	for _, pkg := range []string{"gorgonia.org/gorgonia", "gorgonia.org/tensor"} {
		found, err := build.Import(pkg, root, build.FindOnly)
		must.Do(t, err)
		files, err := filepath.Glob(filepath.Join(found.Dir, "*.go"))
		must.Do(t, err)
		for _, file := range files {
			parse(file)
		}
	}
	n.words, n.packages["G"] = words, n.packages["gorgonia"]
	return n
}

// pages lists the documents.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(docs) < 9 {
		t.Fatalf("found the pages %v, error %v, want at least 9", docs, err)
	}
	for i, page := range docs {
		docs[i], _ = filepath.Rel(root, page)
	}
	return append(docs, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "internal/kernel/README.md")
}

// foreign lists names of other programs that pages mention, and names that an example on the page makes.
var foreign = map[string]bool{
	"F.scaled_dot_product_attention": true, "padding_idx": true, "eta_min": true, "load_state_dict": true, // PyTorch
	"--mpi=pmix": true, "--oversubscribe": true, "--allow-run-as-root": true, "--mca mpi_yield_when_idle 1": true, "--mca odls_base_sigkill_timeout 60": true, // Slurm and Open MPI
	"/dev/stdout": true, "/tmp": true,
	"chat.Encode": true,                    // a variable in docs/tokenizers.md
	"ReLU2":       true, "ReLU2Grad": true, // the activation that internal/kernel/README.md adds
}

var (
	blockOf      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	spanOf       = regexp.MustCompile("`([^`\n]+)`")
	flagOf       = regexp.MustCompile(`^--([a-z][\w-]*)`)
	pathOf       = regexp.MustCompile(`^\.?[A-Za-z][\w.-]*(/[\w.-]+)+/?$`)
	fileOf       = regexp.MustCompile(`^[\w-]+\.(go|md|py|json|jsonl|html|png|txt|model|safetensors)$`)
	variableOf   = regexp.MustCompile(`^\$?([A-Z][A-Z0-9]*_?[A-Z0-9_]{3,})(=|$)`)
	identifierOf = regexp.MustCompile(`^[*&]?([A-Za-z_]\w*)((?:\.[A-Za-z]\w*)*)(?:[({].*)?$`)
	declaredIn   = regexp.MustCompile("((?:`\\w+`,? (?:and )?)+)in `([\\w./-]+\\.go)`")
	torchOf      = regexp.MustCompile("(?m)^\\| [^|]*`[^|]*\\|") // the first cell of a row, which has PyTorch's names
	declaredAs   = regexp.MustCompile("(?:method|function|type|interface|struct|table|test)s? `(\\w+)`")
)

// TestPagesNameWhatExists looks up what the documents name in backquotes: files, identifiers, flags and variables of
// the environment.
func TestPagesNameWhatExists(t *testing.T) {
	n := collect(t)
	exists := func(file string) bool {
		_, err := os.Stat(filepath.Join(root, file))
		return err == nil
	}
	for _, page := range pages(t) {
		content, err := os.ReadFile(filepath.Join(root, page))
		must.Do(t, err)
		text := blockOf.ReplaceAllStringFunc(string(content), func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) })
		if page == "docs/pytorch.md" {
			text = torchOf.ReplaceAllStringFunc(text, func(cell string) string { return strings.ReplaceAll(cell, "`", "") })
		}
		wrong := func(offset int, what string) {
			t.Errorf("%s:%d: %s doesn't exist", page, 1+strings.Count(text[:offset], "\n"), what)
		}
		found := 0
		for _, at := range spanOf.FindAllStringSubmatchIndex(text, -1) {
			span := text[at[2]:at[3]]
			if !foreign[span] && !n.named(span, page, exists) {
				wrong(at[0], strconv.Quote(span))
			}
			found++
		}
		if found == 0 {
			t.Errorf("%s names nothing: the test searches the wrong file", page)
		}
		for _, at := range declaredIn.FindAllStringSubmatchIndex(text, -1) {
			file := text[at[4]:at[5]]
			code, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				code, err = os.ReadFile(filepath.Join(root, path.Dir(page), file))
			}
			for _, name := range spanOf.FindAllStringSubmatch(text[at[2]:at[3]], -1) {
				if err != nil || !regexp.MustCompile(`\b`+name[1]+`\b`).Match(code) {
					wrong(at[0], name[1]+" in "+file)
				}
			}
		}
		for _, at := range declaredAs.FindAllStringSubmatchIndex(text, -1) {
			if name := text[at[2]:at[3]]; !n.declared[name] {
				wrong(at[0], text[at[0]:at[1]])
			}
		}
	}
}

// named reports whether everything in a span of a page exists. It knows nothing about words in small letters.
func (n *names) named(span, page string, exists func(file string) bool) bool {
	if words := strings.Fields(span); len(words) > 1 {
		for _, word := range words {
			if flag := flagOf.FindStringSubmatch(word); flag != nil && words[0] != "mpirun" && words[0] != "srun" && !n.literals[flag[1]] {
				return false
			}
			if file, ok := strings.CutPrefix(word, "./"); ok && !exists(strings.TrimSuffix(file, "...")) {
				return false
			}
		}
		return true
	}
	switch {
	case strings.HasPrefix(span, "--"):
		flag := flagOf.FindStringSubmatch(span)
		return flag != nil && n.literals[flag[1]]
	case strings.HasPrefix(span, "/"):
		return n.words[strings.Trim(span, "/")]
	case strings.HasPrefix(span, "runs/"):
		return true
	case pathOf.MatchString(span):
		return exists(span) || exists(path.Join(path.Dir(page), span))
	case fileOf.MatchString(span):
		return exists(path.Join(path.Dir(page), span)) || n.words[span] && !strings.HasSuffix(span, ".go")
	case variableOf.MatchString(span):
		name := variableOf.FindStringSubmatch(span)[1]
		return n.words[name] || n.declared[name]
	}
	id := identifierOf.FindStringSubmatch(span)
	if id == nil {
		return true
	}
	first, rest := id[1], strings.Split(id[2], ".")[1:]
	switch {
	case len(rest) == 0 && first == strings.ToLower(first) && !strings.Contains(first, "_"):
		return true
	case len(rest) == 0:
		return n.declared[first] || n.words[first]
	case n.packages[first] != nil:
		if !n.packages[first][rest[0]] {
			return false
		}
		return len(rest) == 1 || n.has(rest[0], rest[1], 3)
	case n.packages[first] == nil && first == strings.ToLower(first): // another package, or a variable
		return true
	}
	return n.has(first, rest[0], 3)
}
