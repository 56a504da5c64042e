package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

// printTasks lists the tasks, the folders of published models, the commands that ask the models of each, and a call of
// every command that takes a folder.
func printTasks(cmd *cobra.Command) error {
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "Tasks that heed train learns, and the commands that ask their models:\n\n")
	for _, name := range task.Names() {
		if c, err := task.Named(name, 0); err == nil {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", name, c.Task.About, commandsFor(c.Describe()))
		}
	}
	fmt.Fprint(w, "\nFolders of published models, by the end of a name in the architectures of config.json:\n\n")
	for classes, c := range model.PublishedTasks() {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", classes, c.Task.About, commandsFor(c.Describe()))
	}
	fmt.Fprint(w, "\nCalls:\n\n")
	for _, sub := range cmd.Root().Commands() {
		if strings.HasPrefix(strings.TrimPrefix(sub.Use, sub.Name()), " DIR") {
			example, _, _ := strings.Cut(sub.Example, "\n")
			fmt.Fprintln(w, example)
		}
	}
	return w.Flush()
}

// commandsFor lists the commands that ask a model.
func commandsFor(d model.Description) string {
	var names []string
	for _, c := range []struct {
		names string
		wrong error
	}{{"predict", d.Predict}, {"explain", d.Explain}, {"rank", d.Rank}, {"generate", d.Generate}, {"embed, search", d.Embed}} {
		if c.wrong == nil {
			names = append(names, c.names)
		}
	}
	return strings.Join(names, ", ")
}
