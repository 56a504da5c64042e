package task

import "slices"

// sources lists the sources of examples. A task learns from the first that it has.
var sources = []source{ruleSource, rowSource, chatSource, textSource}

// sourceOf returns the source that a configuration's task learns from.
func sourceOf(c *Config) source {
	return sources[slices.IndexFunc(sources, func(s source) bool { return s.has(c) })]
}
