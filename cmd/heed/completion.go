package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/cmd/heed/internal/bench"
	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/text"
	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/task"
)

// shells lists the shells that have completion scripts.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a shell completion script",
		Long: `Print a script that makes a shell complete heed's commands, its flags and their values: run folders,
tasks, presets, and files of the right kind. bash also needs the package bash-completion.`,
		Example: `  source <(heed completion bash)                                # to keep it: add this line to ~/.bashrc
  heed completion zsh > "${fpath[1]}/_heed"
  heed completion fish > ~/.config/fish/completions/heed.fish
  heed completion powershell | Out-String | Invoke-Expression   # to keep it: add this line to $PROFILE`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return usagef("heed completion takes one of %s, got %q%s", strings.Join(shells, ", "), args, text.DidYouMean(strings.Join(args, ""), shells))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return root.GenPowerShellCompletionWithDesc(out)
		},
	}
}

// complete sets up the completion of arguments and of flags' values. Whatever isn't listed here has no completion.
func complete(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	values := flagValues()
	// firstArg completes the first argument or, with --count, all of them.
	firstArg := func(arg cobra.CompletionFunc) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !cmd.Flags().Changed("count") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return arg(cmd, args, start)
		}
	}
	for _, cmd := range root.Commands() {
		switch words := append(strings.Fields(cmd.Use), ""); {
		case words[1] == "DIR":
			cmd.ValidArgsFunction = firstArg(runFolders)
		case words[1] == "DIR...":
			cmd.ValidArgsFunction = runFolders
		case words[0] == "sweep":
			cmd.ValidArgsFunction = firstArg(cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
		case words[0] == "tokenize":
			cmd.ValidArgsFunction = firstArg(cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		case words[0] == "bench":
			for _, b := range bench.All(layers.Float32) {
				cmd.ValidArgs = append(cmd.ValidArgs, b.Name)
			}
			cmd.ValidArgs = slices.Compact(cmd.ValidArgs)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			complete, ok := values[cmd.Name()+" "+f.Name]
			if !ok {
				complete, ok = values[f.Name]
			}
			if ok {
				cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails only if there is no such flag
			}
		})
	}
}

// flagValues returns the functions that complete the values of flags, by the name of the flag or, if it differs between
// commands, of the command and the flag.
func flagValues() map[string]cobra.CompletionFunc {
	oneOf := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	files := func(endings ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(endings, cobra.ShellCompDirectiveFilterFileExt)
	}
	const characters, tokens, words, bpe = string(tokenizer.Characters), string(tokenizer.Tokens), string(tokenizer.Words), string(tokenizer.BPE)
	values := map[string]cobra.CompletionFunc{
		"task":            oneOf(described(task.Names())...),
		"preset":          presets,
		"units":           oneOf(characters, tokens, words, bpe),
		"source-units":    oneOf(characters, tokens, words, bpe),
		"target-units":    oneOf(characters, tokens, bpe),
		"class-weights":   oneOf("balanced"),
		"header":          oneOf("yes", "no"),
		"pack":            oneOf("yes", "no"),
		"quotes":          oneOf("no"),
		"template":        oneOf(tokenizer.ChatTemplates()...),
		"mode":            oneOf("min", "max"),
		"tune":            oneOf("all", "head", "last:1", "last:2", "lora"),
		"resume":          runFolders,
		"from":            runFolders,
		"base":            runFolders,
		"search rank":     runFolders,
		"data":            files("tsv", "csv", "jsonl", "conll", "conllu", "txt"),
		"validation-data": files("tsv", "csv", "jsonl", "conll", "conllu", "txt"),
		"answers":         files("tsv"),
		"find-rate":       files("png"),
		"out":             cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		"attention out":   files("png", "svg", "html"),
		"predict out":     files("tsv", "csv", "jsonl", "conll", "conllu"),
		"eval out":        files("html"),
		"report out":      files("html"),
		"embed out":       files("npy", "csv", "jsonl"),
	}
	for flag, table := range task.Choices() {
		var completions []string
		for name, help := range table.All {
			completions = append(completions, cobra.CompletionWithDesc(name, help))
		}
		values[flag] = oneOf(completions...)
	}
	return values
}

// described returns completions of tasks, with their descriptions.
func described(tasks []string) (completions []string) {
	for _, name := range tasks {
		if c, err := task.Named(name, 0); err == nil {
			completions = append(completions, cobra.CompletionWithDesc(name, c.Task.About))
		}
	}
	return completions
}

// presets completes the names of presets. If --task is given, it completes only the presets of that task.
func presets(cmd *cobra.Command, _ []string, _ string) (completions []string, _ cobra.ShellCompDirective) {
	name := cmd.Flags().Lookup("task")
	for _, p := range task.Presets() {
		if !name.Changed || name.Value.String() == string(p.Kind) { // a task with presets is named like its kind
			completions = append(completions, cobra.CompletionWithDesc(p.Name, string(p.Kind)+": "+p.About))
		}
	}
	return completions, cobra.ShellCompDirectiveNoFileComp
}

// runFolders completes run folders or, if it finds none, any folders.
func runFolders(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	folder, prefix := filepath.Split(start)
	if found := runsIn(folder, prefix, 1); found != nil {
		return found, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// runsIn returns the run folders in folder whose names start with prefix. In other folders with this prefix, it looks
// for run folders too, up to depth levels down. An empty prefix doesn't match hidden folders.
func runsIn(folder, prefix string, depth int) (found []string) {
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := folder + e.Name()
		if !strings.HasPrefix(e.Name(), prefix) || prefix == "" && strings.HasPrefix(e.Name(), ".") || text.EscapeExcept(path, "") != path {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, runfolder.ConfigFile)); err == nil {
			found = append(found, path)
		} else if depth > 0 {
			found = append(found, runsIn(path+string(filepath.Separator), "", depth-1)...)
		}
	}
	return found
}
