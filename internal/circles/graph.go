package main

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A graph has the files of a package, and which of them use names that another declares.
type graph struct {
	pkg   string // path below the module's
	files []string
	names map[edge][]string // sorted
}

// An edge runs from a file to another that declares a name which it uses. Both are indices of graph.files.
type edge struct{ user, declarer int }

// newGraph returns the graph of a package. Names of functions, types, variables, constants, methods and fields count.
func newGraph(p *packages.Package) graph {
	g := graph{pkg: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), names: map[edge][]string{}}
	for _, file := range p.Syntax {
		g.files = append(g.files, p.Fset.File(file.FileStart).Name())
	}
	for user, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			name, _ := n.(*ast.Ident)
			object := p.TypesInfo.Uses[name]
			if object == nil || object.Pkg() != p.Types {
				return true
			}
			// What another file declares is no local variable.
			declarer := slices.Index(g.files, p.Fset.File(object.Pos()).Name())
			if e := (edge{user, declarer}); declarer >= 0 && declarer != user {
				if i, found := slices.BinarySearch(g.names[e], name.Name); !found {
					g.names[e] = slices.Insert(g.names[e], i, name.Name)
				}
			}
			return true
		})
	}
	for i, file := range g.files {
		g.files[i] = filepath.Base(file)
	}
	return g
}

// circle returns the largest set of files of which each reaches every other along edges. If there are several, it
// returns the one with the first file.
func (g graph) circle() (largest []int) {
	n := len(g.files)
	reach := make([][]bool, n) // by Warshall's algorithm: paths through the first k files, for each k
	for i := range reach {
		reach[i] = make([]bool, n)
		for j := range reach {
			reach[i][j] = i == j || g.names[edge{i, j}] != nil
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	for i := range n {
		var both []int
		for j := range n {
			if reach[i][j] && reach[j][i] {
				both = append(both, j)
			}
		}
		if len(both) > len(largest) {
			largest = both
		}
	}
	return largest
}

// describe lists the files of a circle, and then in a line each the pairs of them that use each other.
func (g graph) describe(circle []int) string {
	var names []string
	for _, i := range circle {
		names = append(names, g.files[i])
	}
	var s strings.Builder
	fmt.Fprintf(&s, "    %s\n", strings.Join(names, ", "))
	for a, i := range circle {
		for _, j := range circle[a+1:] {
			if forward, back := g.names[edge{i, j}], g.names[edge{j, i}]; forward != nil && back != nil {
				fmt.Fprintf(&s, "    %s needs %s from %s, which needs %s\n", g.files[i], some(forward), g.files[j], some(back))
			}
		}
	}
	return s.String()
}

// some lists the first names.
func some(names []string) string {
	const listed = 5
	if more := len(names) - listed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:listed], ", "), more)
	}
	return strings.Join(names, ", ")
}
