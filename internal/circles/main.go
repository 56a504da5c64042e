// Circles finds files of Go packages that can only be understood together: a circle is a set of files of a package of
// which each uses names of every other, directly or through other files of the set. Tests don't count.
//
//	circles [-limit N] [FOLDER]
//
// FOLDER is in the module whose packages it measures; it is the current folder by default. Without -limit, it prints a
// table of all packages with several files. With -limit, it prints only the packages whose largest circle has more than
// N files, and exits with status 1 if there is one. For each it lists the files, and the pairs that use each other: to
// break a circle, move the names that such a pair shares to a lower file.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/tools/go/packages"
)

func main() {
	limit := flag.Int("limit", 0, "fail if a package has a circle of more files (0: print a table)")
	flag.Parse()
	folder := "."
	if flag.NArg() > 0 {
		folder = flag.Arg(0)
	}
	if err := run(os.Stdout, folder, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "circles:", err)
		os.Exit(1)
	}
}

// run prints what the command prints for a module and a limit. It returns an error if packages don't compile or a
// circle is too large.
func run(out io.Writer, folder string, limit int) error {
	const mode = packages.NeedName | packages.NeedModule | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: folder}, "./...")
	if err != nil {
		return err
	}
	type result struct {
		graph
		circle []int
	}
	var results []result
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return p.Errors[0]
		}
		if g := newGraph(p); len(g.files) > 1 {
			results = append(results, result{g, g.circle()})
		}
	}
	if len(results) == 0 {
		return errors.New("there are no packages with several files")
	}
	slices.SortFunc(results, func(a, b result) int {
		return cmp.Or(len(b.circle)-len(a.circle), cmp.Compare(a.pkg, b.pkg))
	})
	if limit == 0 {
		fmt.Fprintln(out, "circle  files  edges  package")
		for _, r := range results {
			fmt.Fprintf(out, "%6d %6d %6d  %s\n", len(r.circle), len(r.files), len(r.names), r.pkg)
		}
		return nil
	}
	above := 0
	for _, r := range results {
		if len(r.circle) > limit {
			above++
			fmt.Fprintf(out, "%s has a circle of %d files:\n%s", r.pkg, len(r.circle), r.describe(r.circle))
		}
	}
	if above > 0 {
		return fmt.Errorf("packages with a circle of more than %d files: %d", limit, above)
	}
	return nil
}
