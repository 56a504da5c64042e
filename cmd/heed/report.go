package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/report"
	"github.com/heed-go/heed/train/task"
)

func newReport() *cobra.Command {
	var out string
	var private bool
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write a page about a run, or one that compares runs",
		Long: `Write an HTML page about a run: curves of its training, its configuration and data, right and wrong
answers, what is mistaken for what or how length matters, what a text model writes, and whom it attends
to. heed train writes one when it ends, or a limit ends it; of a run that is under way or was
interrupted, this command does.

With several runs, the page compares them: their scores, their curves in one chart each, and what
differs in their configurations.

The page is one file, which needs no network. It has texts of the data in it, unless --no-examples
leaves them out; the names of labels and tags stay.`,
		Example: `  heed report runs/reverse
  heed report runs/reverse runs/reverse-2 --out compared.html`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("heed report takes one run folder or several, got none")
			case len(args) > 1 && out == "":
				return usagef("a page that compares runs needs --out, the file to write it in, such as --out runs.html")
			case out != "" && !strings.EqualFold(filepath.Ext(out), ".html"):
				return usagef("--out must be a file's name that ends in .html, got %q", out)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			page := &outFile{flag: "out", path: out, page: true}
			var runs []*report.Run
			var last *task.Run // the one to show, where there is one folder
			for _, dir := range args {
				if dir == "" {
					return errNoFolder
				}
				run, err := task.ReadRun(dir)
				if errors.Is(err, task.ErrNoHistory) {
					err = fmt.Errorf("%w; heed train --resume %s goes on with it", err, shell(dir))
				}
				if err != nil {
					return err
				}
				noteUntimed(cmd, dir, run)
				runs, last = append(runs, report.FromTask(dir, run)), run
				page.inputs = append(page.inputs, append(runFiles(dir), dataFiles(run.Config.Data)...)...)
			}
			if out != "" {
				if err := page.open(); err != nil {
					return err
				}
				defer page.Close()
			}
			path := cmp.Or(out, filepath.Join(args[0], task.ReportFile))
			write := func(w io.Writer) error { return report.Compare(w, runs) }
			if len(runs) == 1 {
				if err := addAnswers(cmd, runs[0], args[0], last.Config, private); err != nil {
					return err
				}
				write = runs[0].Write
			}
			put := atomicfile.WriteFile // nobody has named it: a folder that came from elsewhere doesn't say what is overwritten
			if out != "" {
				put = func(_ string, write func(io.Writer) error) error { return page.write(cmd.Context(), write) }
			}
			if err := putWhole(put, path, write); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "Report:", text.Escape(path))
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the page to write, a .html file (default report.html in the run folder)")
	cmd.Flags().BoolVar(&private, "no-examples", false, "leave out what has texts of the data in it")
	return cmd
}

// noteUntimed says which lines of a run's times are in no report.
func noteUntimed(cmd *cobra.Command, dir string, r *task.Run) {
	if r.Untimed > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "heed: the report leaves out %s of %s: they aren't times above 0 of the run's checks, in order\n",
			text.Count(r.Untimed, "line"), text.Escape(filepath.Join(dir, task.TimesFile)))
	}
}

// putWhole has put write what write writes, when all of it is there: a kill before would leave a file that is begun.
func putWhole(put func(path string, write func(io.Writer) error) error, path string, write func(io.Writer) error) error {
	var page bytes.Buffer
	if err := write(&page); err != nil {
		return err
	}
	return put(path, func(w io.Writer) error { _, err := page.WriteTo(w); return err })
}

// addAnswers adds to a run's page what its model answers, or says there why it can't.
func addAnswers(cmd *cobra.Command, r *report.Run, dir string, c task.Config, private bool) error {
	if c.Kind().Columns == nil {
		m, err := openModel(dir)
		if err != nil {
			return err
		}
		return r.AddAnswers(cmd.Context(), &task.Task{Model: m}, private)
	}
	t, err := newTask(cmd.Context(), c)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		if r.Missing = err.Error(); private { // which may have some of the data in it
			r.Missing = "the data can't be read as they were"
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "heed: the report has no examples:", oneLine(errors.New(r.Missing)))
		return nil
	}
	defer t.Close()
	if err := t.Load(dir); err != nil {
		return withoutWeights(err, dir)
	}
	return r.AddAnswers(cmd.Context(), t, private)
}

// writeReport writes the page of a training that has just ended. The run is whole without it.
func writeReport(cmd *cobra.Command, t *task.Task, dir string) {
	runtime.GC()         // runs the finalizers of training's machines, which hold its memory
	debug.FreeOSMemory() // so that the report's memory doesn't come on top of it
	private, _ := cmd.Flags().GetBool("no-examples")
	path := filepath.Join(dir, task.ReportFile)
	run, err := task.ReadRun(dir)
	if err == nil {
		noteUntimed(cmd, dir, run)
		r := report.FromTask(dir, run)
		if err = r.AddAnswers(cmd.Context(), t, private); err == nil {
			err = putWhole(atomicfile.WriteFile, path, r.Write)
		}
	}
	if err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "heed: the run is whole, but not its report, which heed report", shell(dir), "writes:", oneLine(interrupted(cmd.Context(), err)))
		return
	}
	fmt.Fprintln(cmd.OutOrStdout(), "Report:", text.Escape(path))
}
