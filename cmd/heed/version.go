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
		Long: `Print the module's version, the version of Go that built it, and the processor's instructions in use. If heed
was built from a checkout, the version ends in the commit, and in +dirty if files had changed since.
Results of different instructions differ in their last bits.`,
		Example: `  heed version`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				return errors.New("heed was built without modules, so its version is unknown")
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "heed %s %s, computing with %s\n", info.Main.Version, info.GoVersion, kernel.Instructions())
			return err
		},
	}
}
