package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/kernel"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print heed's version",
		Long: "Print the module's version, the version of Go that built it, the commit if it was built from a checkout, and the " +
			"processor's instructions in use. Results of different instructions differ in their last bits.",
		Example: `  heed version`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return errors.New("heed was built without modules, so its version is unknown")
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, computing with %s\n", version(info), kernel.Instructions())
			return err
		},
	}
}

// version returns a line such as: heed (devel) go1.26 1a2b3c4d (changed since).
func version(info *debug.BuildInfo) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	line := fmt.Sprintf("heed %s %s", info.Main.Version, info.GoVersion)
	if revision := settings["vcs.revision"]; revision != "" {
		line += " " + revision
	}
	if settings["vcs.modified"] == "true" {
		line += " (changed since)"
	}
	return line
}
