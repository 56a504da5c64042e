package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/report"
	"github.com/heed-go/heed/train/task"
)

func newReport() *cobra.Command {
	var out string
	var private bool
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write a page about a run, or a page that compares runs",
		Long: `Write an HTML page about a run: training curves, configuration and data, right and wrong answers, errors
by label or by length, text that the model generates, and attention. heed train writes this page when
the run ends or reaches a limit. Use this command for a run that is in progress or was interrupted.

With several runs, the page compares them: their scores, their curves in shared charts, and the
differences between their configurations.

The page is one file and needs no network. It contains texts of the data and the paths of its files,
unless --no-examples leaves them out. It always contains the names of labels and tags, and the names of
run folders without their paths.`,
		Example: `  heed report runs/reverse
  heed report runs/reverse runs/reverse-2 --out compared.html`,
		Args: takes("one or more run folders", cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && out == "" {
				return usagef("a page that compares runs needs --out, the file to write, such as --out runs.html")
			}
			if err := fileFlag(cmd.Flags(), "out", ".html"); err != nil {
				return err
			}
			return reportRuns(cmd, args, out, private)
		},
	}
	baseFlag(cmd.Flags())
	cmd.Flags().StringVar(&out, "out", "", "page to write, a .html file (default report.html in the run folder)")
	cmd.Flags().BoolVar(&private, "no-examples", false, "leave out texts of the data and paths of files")
	return cmd
}

// reportRuns writes a page about the runs in the folders dirs.
func reportRuns(cmd *cobra.Command, dirs []string, out string, private bool) error {
	_, end := wait(cmd, "Writing the page")
	defer end()
	page := &outFile{flag: "out", path: out, page: true}
	var runs []*report.Run
	var c task.Config // of the last run
	for _, dir := range dirs {
		if dir == "" {
			return errNoFolder
		}
		run, config, err := readRunPage(cmd, dir, private)
		if errors.Is(err, task.ErrNoHistory) {
			err = fmt.Errorf("%w; heed train --resume %s continues the run", err, shell(dir))
		}
		if err != nil {
			return err
		}
		runs, c = append(runs, run), config
		page.inputs = slices.Concat(page.inputs, runFiles(dir), dataFiles(c.Data))
	}
	if err := page.open(cmd.OutOrStdout()); err != nil {
		return err
	}
	defer page.Close()
	write := func(w io.Writer) error { return report.Compare(w, runs) }
	if len(runs) == 1 {
		if err := addAnswers(cmd, runs[0], dirs[0], c); err != nil {
			return err
		}
		write = runs[0].Write
	}
	path, put := cmp.Or(out, filepath.Join(dirs[0], runfolder.ReportFile)), page.write
	if out == "" { // the folder may come from elsewhere, so links must not be followed
		put = func(_ context.Context, write func(io.Writer) error) error { return atomicfile.WriteFile(path, write) }
	}
	if err := put(cmd.Context(), write); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "Report:", text.Escape(path))
	return err
}

// readRunPage reads a run's folder for a page, and prints how many lines of the run's times the page leaves out.
func readRunPage(cmd *cobra.Command, dir string, private bool) (*report.Run, task.Config, error) {
	run, err := task.ReadRun(dir)
	if err != nil {
		return nil, task.Config{}, err
	}
	if run.Untimed > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "heed: the report leaves out %s of %s: they aren't positive times of the run's checks in order\n",
			text.Count(run.Untimed, "line"), text.Escape(filepath.Join(dir, runfolder.TimesFile)))
	}
	page := report.FromTask(dir, run)
	page.Private = private
	return page, run.Config, nil
}

// addAnswers adds the answers of a run's model to its page. If the data can't be read, the page says why.
func addAnswers(cmd *cobra.Command, r *report.Run, dir string, c task.Config) error {
	if c.Describe().Rows != nil {
		m, err := openModel(cmd, dir)
		if err != nil {
			return err
		}
		return r.AddAnswers(cmd.Context(), m, nil)
	}
	c.From.Dir = cmp.Or(baseOf(cmd.Flags()), c.From.Dir)
	t, err := newTask(cmd.Context(), c)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		if r.Missing = withoutBase(err).Error(); r.Private { // the error may quote the data
			r.Missing = "the data can't be read"
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "heed: the report has no examples:", oneLine(errors.New(r.Missing)))
		return nil
	}
	defer t.Close()
	if err := t.Load(dir); err != nil {
		return withoutWeights(err, dir)
	}
	return r.AddAnswers(cmd.Context(), t.Model, t)
}
