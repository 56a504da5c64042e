package model

import "github.com/heed-go/heed/data"

// labels give each source one label.
type labels struct{}

var classificationKind = Kind{
	Name: data.KindClassification, Rows: true, Pairs: true, Classes: true, Linear: true,
	units: "characters, tokens, words, bpe", head: labels{},
}

func (labels) network(m *Model) (network, error) {
	net, err := pooled(m) // (B, Classes)
	return newClassifier(m, net), err
}
