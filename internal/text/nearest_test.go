package text

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	const (
		flags    = "batch-size clip-norm clip-value dim dropout heads layers learning-rate max-epochs max-len max-steps min-delta mode norm out watch"
		tasks    = "reverse copy sort text seq2seq classification tagging"
		solvers  = "adamw adam sgd lion muon"
		commands = "attention bench eval generate predict report serve train"
	)
	for _, test := range []struct{ unknown, names, want string }{
		{"batch_size", flags, "batch-size"}, {"BatchSize", flags, "batch-size"}, {"learning.rate", flags, "learning-rate"},
		{"lr", flags, "learning-rate"}, {"n_embd", flags, "dim"}, {"hidden-size", flags, "dim"}, {"epochs", flags, "max-epochs"}, {"max_iters", flags, "max-steps"},
		{"batch", flags, "batch-size"}, // not watch, which is 2 edits away
		{"max", flags, ""}, {"clip", flags, "clip-norm"}, {"cli", flags, ""}, {"d", flags, ""}, {"di", flags, "dim"},
		{"dropuot", flags, "dropout"}, {"heds", flags, "heads"}, {"no_examples", flags, ""}, {"xyz", flags, ""}, {"", flags, ""}, {"device", flags, ""},
		{"output_dir", flags, "out"}, {"layernorm", "layer rms", "layer"}, {"RMSNorm", "layer rms", "rms"}, {"batchnorm", "layer rms", ""},
		{"tag", tasks, "tagging"}, {"ner", tasks, "tagging"}, {"se", tasks, ""}, {"classify", tasks, "classification"}, {"seq-2-seq", tasks, "seq2seq"}, {"xyz", tasks, ""},
		{"AdamW8bit", solvers, "adamw"}, {"ada", solvers, "adam"}, {"adan", solvers, "adam"}, {"newton", solvers, ""},
		{"trian", commands, "train"}, {"evaluate", commands, "eval"}, {"test", commands, "eval"}, {"servieren", commands, ""},
		{"größe", "grösse größen", "größen"}, {"lable", "text label", "label"}, {strings.Repeat("x", 1<<20), flags + " " + strings.Repeat("y", 1<<20), ""}, {"x", "", ""},
	} {
		if got := Nearest(test.unknown, strings.Fields(test.names)); got != test.want {
			t.Errorf("%.20q among %s: got %q, want %q", test.unknown, test.names, got, test.want)
		}
	}
	if got := DidYouMean("lr", []string{"learning_rate"}) + DidYouMean("xyz", []string{"learning_rate"}); got != "; did you mean learning_rate?" {
		t.Errorf("DidYouMean: got %q for a name that is near and one that isn't", got)
	}
}

// A name in the table that isn't plain would never be found.
func TestElsewhere(t *testing.T) {
	for ours, theirs := range elsewhere {
		for name := range strings.FieldsSeq(ours + " " + theirs) {
			if name != plain(name) {
				t.Errorf("%s: %q never occurs: it must be %q", ours, name, plain(name))
			}
		}
	}
}
