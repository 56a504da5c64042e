package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task"
)

func newExport() *cobra.Command {
	var out string
	var adapter bool
	cmd := &cobra.Command{
		Use:   "export DIR --out FOLDER",
		Short: "Write a model as a published one, for other libraries",
		Long: `Write the model of a run as a folder that other libraries open, such as transformers, and heed as well:
config.json, model.safetensors (32 bits), and the tokenizer.

The run's model must have the layers of a published architecture. Text models have them that heed train
makes with its default --norm and with --positions learned (the default; the folder's model is a GPT-2) or
--positions rotary (a GPT-NeoX), with any --activation that those have; so has the preset nanogpt. For
other settings, the error names the nearest architecture and what differs. Logits differ by rounding at
most. If the run's tokens are characters, other libraries leave out characters that it doesn't know.
Taggers with --units tokens become such models, too, with a head for tags.

DIR may also be the folder of a published model, or a run that began as one: the result is such a model, with
its tokenizer and other settings. Labels and numbers need a model that already had a head for them.
If a linear model has a share in the answers of rows, which no published model has, heed writes
the network alone and says so: its answers aren't as good.`,
		Example: `  heed export runs/text --out models/shakespeare
  heed export models/smollm2 --out copies/smollm2`,
		Args: takes("one model folder", cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if adapter && out != "" {
				if err := model.ExportAdapter(args[0], baseOf(cmd.Flags()), out); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "Exported: %s (an adapter)\n", text.Escape(out))
				return err
			}
			_, end := wait(cmd, "Exporting")
			defer end()
			m, err := openModel(cmd, args[0])
			if err != nil {
				return err
			}
			if out == "" {
				return usagef("--out must be the folder to write, got none")
			}
			m.Note = noting(cmd)
			if err := m.Export(out); err != nil {
				return wrongFlag(err, cmd.Flags())
			}
			c, err := task.ReadConfig(out)
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Exported: %s (model_type %s)\n", text.Escape(out), c.Task.Name)
			}
			return err
		},
	}
	baseFlag(cmd.Flags())
	cmd.Flags().BoolVar(&adapter, "adapter", false, "write only the adapter of a run with --tune lora, as the library peft does, instead of a model with the adapter merged")
	cmd.Flags().StringVar(&out, "out", "", "folder to write; it must be empty or not exist yet")
	return cmd
}
