package model

import (
	"strconv"
	"strings"
)

// Values of From.Tune besides "last:" with a number: all parameters, the last layer, or a low-rank adapter.
const (
	tuneAll  = "all"
	tuneHead = "head"
	tuneLoRA = "lora"
)

// tunedBlocks returns the number of blocks that a Tune of last:N trains, or 0 for another Tune.
func (c *Config) tunedBlocks() int {
	text, _ := strings.CutPrefix(c.From.Tune, "last:")
	n, _ := strconv.Atoi(text)
	return n
}

// Solved reports whether the run only solves a head.
func (c *Config) Solved() bool { return c.From.Tune == tuneHead && c.hasLinear() }

// tunesOwnWeights reports whether the run trains weights of blocks, and not only a head or an adapter.
func (c *Config) tunesOwnWeights() bool { return c.From.Tune != tuneHead && c.From.Tune != tuneLoRA }

// Partial reports whether the run trains only a part of the parameters. From has the rest.
func (c *Config) Partial() bool { return c.From.Tune != "" && c.From.Tune != tuneAll }

// needsBase reports whether a model with this configuration needs the one that it began from.
func (c *Config) needsBase() bool {
	return c.Partial() || c.From.Dir != "" && c.Mix && c.hasLinear()
}
