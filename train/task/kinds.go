package task

import (
	"slices"

	"github.com/heed-go/heed/data"
)

var kinds = []kind{textKind, maskedTextKind, seq2seqKind, classificationKind, multiLabelKind, taggingKind, regressionKind, embedKind, qaKind}

// kindOf returns the kind with this name. If there is none, it returns a kind without a name, which does nothing.
func kindOf(name data.Kind) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.about().name == name })
	if i < 0 {
		return common{}
	}
	return kinds[i]
}
