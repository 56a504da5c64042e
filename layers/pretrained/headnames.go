package pretrained

import "maps"

// Names of heads that architectures share, by Config.Head. A line with the word prefix says which prefix the names of
// the other tensors have with this head.
var (
	textHeads  = map[string][]string{"text": {"head lm_head"}, "classes": {"head score"}}
	scoreTags  = map[string][]string{"tags": {"head score"}}
	tokenHeads = map[string][]string{"tags": {"head classifier"}, "spans": {"head qa_outputs"}}
	spanHeads  = map[string][]string{"spans": {"head qa_outputs"}}
	oldSpans   = map[string][]string{"spans": {"prefix transformer.", "head qa_outputs"}}
)

// joined returns the names of all heads in some maps.
func joined(tables ...map[string][]string) map[string][]string {
	names := map[string][]string{}
	for _, m := range tables {
		maps.Copy(names, m)
	}
	return names
}
