package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/runfolder"
)

// runFiles returns the paths of the files of run folders that commands read. It ignores empty names of folders.
func runFiles(dirs ...string) (paths []string) {
	for _, dir := range dirs {
		for _, name := range runfolder.Files() {
			if dir != "" && name != runfolder.ReportFile {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	return paths
}

// dataFiles returns the paths of the files that a configuration learns from and validates on.
func dataFiles(d data.Settings) []string {
	files := append([]string{d.File, d.TargetFile, d.ValidationFile, d.ValidationTargetFile}, d.MoreFiles...)
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}

// checkStdout returns an error if standard output is a regular file that is one of the inputs. The command would read
// its own output or, if the file isn't opened for appending, overwrite its input.
func checkStdout(stdout io.Writer, inputs []string) error {
	if input := among(inputs, regular(stdout)); input != "" {
		return fmt.Errorf("standard output is %s, which this call reads: write to another file", input)
	}
	return nil
}

// stdin returns standard input. It returns an error if standard output is the same regular file.
func stdin(cmd *cobra.Command) (io.Reader, error) {
	r := cmd.InOrStdin()
	if f, ok := r.(*os.File); ok {
		input, err := f.Stat()
		if output := regular(cmd.OutOrStdout()); err == nil && output != nil && os.SameFile(input, output) {
			return nil, errors.New("standard input and standard output are the same file: write to another file")
		}
	}
	return r, nil
}

// regular describes the regular file that w writes to. It returns nil if there is none.
func regular(w io.Writer) fs.FileInfo {
	f := fileOf(w)
	if f == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// among returns the path of the input that is the same file as info, or "" if there is none. A folder stands for the
// files of a text in it: see data.TextFiles.
func among(inputs []string, info fs.FileInfo) string {
	if info == nil {
		return ""
	}
	found := ""
	compare := func(path string) (isFolder bool) {
		file, err := os.Stat(path)
		if err == nil && os.SameFile(file, info) {
			found = path
		}
		return err == nil && file.IsDir()
	}
	for _, input := range inputs {
		if !compare(input) {
			continue
		}
		fs.WalkDir(os.DirFS(input), ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil || name == ".":
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return fs.SkipDir
			case !strings.HasPrefix(d.Name(), "."):
				compare(filepath.Join(input, filepath.FromSlash(name)))
			}
			return nil // reading the folder gives the same error
		})
	}
	return found
}

// within reports whether a path is in a folder or below it. If there is no such folder, it returns false.
func within(folder, path string) bool {
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return false
	}
	above, err1 := filepath.Abs(folder)
	below, err2 := filepath.Abs(path)
	name, err := filepath.Rel(above, below)
	return err == nil && err1 == nil && err2 == nil && filepath.IsLocal(name)
}
