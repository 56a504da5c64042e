package task

import (
	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/layers"
)

// maskedText predicts the masked symbols of a text (Devlin et al., 2018).
type maskedText struct{ common }

var maskedTextKind = maskedText{common{facts{
	name: data.KindMaskedText, help: "the masked characters of a file",
	symbols: true, maxLen: 64,
}}}

func (maskedText) defaults(c *Config) {
	textKind.defaults(c)
	c.Model.Dim = 64
	c.Model.Positions = layers.Rotary{} // a model that starts from this one may read longer sources
}
